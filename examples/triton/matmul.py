"""C = A * B in tiles, with a helper for each step of the schedule."""

import triton
import triton.language as tl
from build import build


@triton.jit
def tile_of(program, columns, TILE_M: tl.constexpr, TILE_N: tl.constexpr):
    across = tl.cdiv(columns, TILE_N)
    return program // across * TILE_M, program % across * TILE_N


@triton.jit
def load_tile(base, row, column, stride, limit, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    rows = row + tl.arange(0, HEIGHT)
    columns = column + tl.arange(0, WIDTH)
    return tl.load(base + rows[:, None] * stride + columns[None, :], mask=columns[None, :] < limit, other=0.0)


@triton.jit
def multiply(a, b, acc):
    return tl.dot(a, b, acc)


@triton.jit
def store_tile(base, value, row, column, stride, limit, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    rows = row + tl.arange(0, HEIGHT)
    columns = column + tl.arange(0, WIDTH)
    tl.store(base + rows[:, None] * stride + columns[None, :], value.to(tl.float16), mask=columns[None, :] < limit)


@triton.jit
def matmul(a, b, c, columns, depth, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    row, column = tile_of(tl.program_id(0), columns, TILE_M, TILE_N)
    acc = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for k in range(0, depth, TILE_K):
        left = load_tile(a, row, k, depth, depth, TILE_M, TILE_K)
        right = load_tile(b, k, column, columns, columns, TILE_K, TILE_N)
        acc = multiply(left, right, acc)
    store_tile(c, acc, row, column, columns, columns, TILE_M, TILE_N)


if __name__ == "__main__":
    build(matmul, {"a": "*fp16", "b": "*fp16", "c": "*fp16", "columns": "i32", "depth": "i32"},
          {"TILE_M": 128, "TILE_N": 128, "TILE_K": 64})
