"""A product with a bias for chips with WMMA, unrolled by hand through one step helper."""

import triton
import triton.language as tl
from build import build


@triton.jit
def step(a_tile, b_tile, acc, k, a_stride, b_stride):
    return tl.dot(tl.load(a_tile + k), tl.load(b_tile + k * b_stride), acc)


@triton.jit
def wmma_matmul(a, b, bias, c, columns, depth, TILE: tl.constexpr, TILE_K: tl.constexpr):
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)
    across = tl.program_id(1) * TILE + tl.arange(0, TILE)
    inner = tl.arange(0, TILE_K)
    a_tile = a + rows[:, None] * depth + inner[None, :]
    b_tile = b + inner[:, None] * columns + across[None, :]
    acc = tl.zeros((TILE, TILE), dtype=tl.float32) + tl.load(bias + across)[None, :]
    for k in range(0, depth, 2 * TILE_K):
        acc = step(a_tile, b_tile, acc, k, depth, columns)
        acc = step(a_tile, b_tile, acc, k + TILE_K, depth, columns)
    tl.store(c + rows[:, None] * columns + across[None, :], acc.to(tl.float16))


if __name__ == "__main__":
    build(wmma_matmul, {"a": "*fp16", "b": "*fp16", "bias": "*fp32", "c": "*fp16", "columns": "i32", "depth": "i32"},
          {"TILE": 64, "TILE_K": 32}, default_chip="gfx1201")
