"""Sums and maxima of the columns of a matrix, a strip of columns in each program."""

import triton
import triton.language as tl
from build import build


@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def strip(base, row, rows, columns, column, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, default):
    at_row = row + tl.arange(0, HEIGHT)
    at_column = column + tl.arange(0, WIDTH)
    inside = (at_row[:, None] < rows) & (at_column[None, :] < columns)
    return tl.load(base + at_row[:, None] * columns + at_column[None, :], mask=inside, other=default)


@triton.jit
def column_sums(source, sums, maxima, rows, columns, HEIGHT: tl.constexpr, WIDTH: tl.constexpr):
    column = tl.program_id(0) * WIDTH
    total = tl.zeros((WIDTH,), dtype=tl.float32)
    highest = tl.full((WIDTH,), -1.0e30, dtype=tl.float32)
    for row in range(0, rows, HEIGHT):
        values = strip(source, row, rows, columns, column, HEIGHT, WIDTH, 0.0)
        total += tl.sum(values, axis=0)
        values = strip(source, row, rows, columns, column, HEIGHT, WIDTH, -1.0e30)
        highest = larger(highest, tl.reduce(values, 0, larger))
    at = column + tl.arange(0, WIDTH)
    tl.store(sums + at, total, mask=at < columns)
    tl.store(maxima + at, highest, mask=at < columns)


if __name__ == "__main__":
    build(column_sums, {"source": "*fp32", "sums": "*fp32", "maxima": "*fp32", "rows": "i32", "columns": "i32"},
          {"HEIGHT": 64, "WIDTH": 64})
