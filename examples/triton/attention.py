"""A flash-attention-like kernel: two products through one helper, online softmax between them."""

import triton
import triton.language as tl
from build import build


@triton.jit
def rows_of(base, first, HEIGHT: tl.constexpr, HEAD: tl.constexpr):
    rows = first + tl.arange(0, HEIGHT)
    return base + rows[:, None] * HEAD + tl.arange(0, HEAD)[None, :]


@triton.jit
def product(x, y, acc):
    return tl.dot(x, y, acc)


@triton.jit
def masked(scores, first_query, first_key, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    query = first_query + tl.arange(0, QUERIES)
    key = first_key + tl.arange(0, KEYS)
    return tl.where(query[:, None] >= key[None, :], scores, -1.0e30)


@triton.jit
def rescale(row_max, scores):
    new_max = tl.maximum(row_max, tl.max(scores, axis=1))
    return new_max, tl.exp2(row_max - new_max), tl.exp2(scores - new_max[:, None])


@triton.jit
def attention(q, k, v, o, length, scale, QUERIES: tl.constexpr, KEYS: tl.constexpr, HEAD: tl.constexpr,
              CAUSAL: tl.constexpr):
    first_query = tl.program_id(0) * QUERIES
    base = tl.program_id(1) * length * HEAD
    queries = tl.load(rows_of(q + base, first_query, QUERIES, HEAD))
    row_max = tl.full((QUERIES,), -1.0e30, dtype=tl.float32)
    row_sum = tl.zeros((QUERIES,), dtype=tl.float32)
    acc = tl.zeros((QUERIES, HEAD), dtype=tl.float32)
    for key in range(0, length, KEYS):
        keys = tl.load(rows_of(k + base, key, KEYS, HEAD))
        scores = product(queries, tl.trans(keys), tl.zeros((QUERIES, KEYS), dtype=tl.float32)) * scale
        if CAUSAL:
            scores = masked(scores, first_query, key, QUERIES, KEYS)
        row_max, correction, weights = rescale(row_max, scores)
        row_sum = row_sum * correction + tl.sum(weights, axis=1)
        values = tl.load(rows_of(v + base, key, KEYS, HEAD))
        acc = product(weights.to(tl.float16), values, acc * correction[:, None])
    tl.store(rows_of(o + base, first_query, QUERIES, HEAD), (acc / row_sum[:, None]).to(tl.float16))


if __name__ == "__main__":
    build(attention, {"q": "*fp16", "k": "*fp16", "v": "*fp16", "o": "*fp16", "length": "i32", "scale": "fp32"},
          {"QUERIES": 128, "KEYS": 64, "HEAD": 128, "CAUSAL": True})
