"""Layer normalisation of rows that are longer than one block."""

import triton
import triton.language as tl
from build import build


@triton.jit
def piece(base, start, width, BLOCK: tl.constexpr):
    at = start + tl.arange(0, BLOCK)
    return tl.load(base + at, mask=at < width, other=0.0).to(tl.float32)


@triton.jit
def moments(row, width, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, width, BLOCK):
        values = piece(row, start, width, BLOCK)
        total += values
        squares += values * values
    mean = tl.sum(total, axis=0) / width
    return mean, tl.sum(squares, axis=0) / width - mean * mean


@triton.jit
def scaled(values, mean, inverse, weight, bias):
    return (values - mean) * inverse * weight + bias


@triton.jit
def layer_norm(source, target, weights, biases, width, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0) * width
    mean, variance = moments(source + row, width, BLOCK)
    inverse = tl.rsqrt(variance + epsilon)
    for start in range(0, width, BLOCK):
        at = start + tl.arange(0, BLOCK)
        values = piece(source + row, start, width, BLOCK)
        weight = piece(weights, start, width, BLOCK)
        bias = piece(biases, start, width, BLOCK)
        tl.store(target + row + at, scaled(values, mean, inverse, weight, bias).to(tl.float16), mask=at < width)


if __name__ == "__main__":
    build(layer_norm, {"source": "*fp16", "target": "*fp16", "weights": "*fp16", "biases": "*fp16",
                       "width": "i32", "epsilon": "fp32"}, {"BLOCK": 1024})
