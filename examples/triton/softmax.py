"""The softmax of one row in one program, with the row kept in registers."""

import triton
import triton.language as tl
from build import build


@triton.jit
def shifted_exp(row):
    return tl.exp(row - tl.max(row, axis=0))


@triton.jit
def normalised(row):
    weights = shifted_exp(row)
    return weights / tl.sum(weights, axis=0)


@triton.jit
def softmax(source, target, width, WIDTH: tl.constexpr):
    at = tl.arange(0, WIDTH)
    start = tl.program_id(0) * width
    row = tl.load(source + start + at, mask=at < width, other=-float("inf")).to(tl.float32)
    tl.store(target + start + at, normalised(row).to(tl.float16), mask=at < width)


if __name__ == "__main__":
    build(softmax, {"source": "*fp16", "target": "*fp16", "width": "i32"}, {"WIDTH": 4096})
