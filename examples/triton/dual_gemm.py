"""A gated product, silu(A * B) * (A * C): one helper multiplies at two sites."""

import triton
import triton.language as tl
from build import build


@triton.jit
def tile(base, row, column, stride, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    return tl.load(base + (row + tl.arange(0, HEIGHT))[:, None] * stride + (column + tl.arange(0, WIDTH))[None, :])


@triton.jit
def multiply(a, base, row, column, stride, acc, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    return tl.dot(a, tile(base, row, column, stride, TILE_K, TILE_N), acc)


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def dual_gemm(a, b, c, d, columns, depth, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    row = tl.program_id(0) * TILE_M
    column = tl.program_id(1) * TILE_N
    gate = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    value = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for k in range(0, depth, TILE_K):
        left = tile(a, row, k, depth, TILE_M, TILE_K)
        gate = multiply(left, b, k, column, columns, gate, TILE_N, TILE_K)
        value = multiply(left, c, k, column, columns, value, TILE_N, TILE_K)
    rows = row + tl.arange(0, TILE_M)
    at = column + tl.arange(0, TILE_N)
    tl.store(d + rows[:, None] * columns + at[None, :], (silu(gate) * value).to(tl.float16))


if __name__ == "__main__":
    build(dual_gemm, {"a": "*fp16", "b": "*fp16", "c": "*fp16", "d": "*fp16", "columns": "i32", "depth": "i32"},
          {"TILE_M": 64, "TILE_N": 64, "TILE_K": 32})
