"""A flash-attention-like kernel in FlyDSL: two GEMMs through one `_mfma`, softmax between them.

A workgroup of four waves takes 128 queries of one head; each wave takes 32. K comes through LDS
in tiles of 64 rows, double-buffered; V is kept transposed in memory and comes through LDS too.
Both GEMMs are computed transposed, so that one lane holds one query: the matrix layout of the
scores is then the operand layout that the second GEMM needs, up to the order of the keys.

    COMPILE_ONLY=1 ARCH=gfx942 FLYDSL_GPU_ARCH=gfx942 ROCM_PATH=.venv/rocm \
        .venv/flydsl-0.5.0/bin/python examples/flydsl/flash_attention.py
"""

import os

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

CHIP = os.environ.get("ARCH", "gfx942")
GFX950 = CHIP.startswith("gfx950")

HEAD = 128                          # elements of one row of Q, K and O
KV_TILE = 64                        # rows of K, columns of transposed V, in one tile
WAVES = 4
PACK = 8 if GFX950 else 4           # elements of a matrix operand in one lane
DMA = 8 if GFX950 else 2            # elements that one lane moves to LDS at once
TILE = KV_TILE * HEAD
DMA_PER_TILE = TILE // (WAVES * 64 * DMA)
VMCNT, LGKMCNT = 0xF70, 0xC07F      # of s_waitcnt, where the other counters do not wait
LOG2E = 1.4426950408889634 / HEAD ** 0.5


class Pack:
    """Four f16; FlyDSL 0.5 has the type by name, 0.1 has not."""

    ir_type = None

    def __new__(cls, value):
        return fx.Vector(value)


@flyc.kernel
def flash_attention(q: fx.Tensor, k: fx.Tensor, v: fx.Tensor, o: fx.Tensor, q_length: fx.Int32, kv_length: fx.Int32):
    # DMA from memory to LDS

    def _at(pointer, offset):
        return fx.add_offset(pointer, fx.make_int_tuple(offset))

    def _dma_one(source, offset, lds_offset):
        line = fx.make_layout(DMA, 1)
        fx.copy_atom_call(dma_atom, fx.make_view(_at(source, offset), line),
                          fx.make_view(_at(lds, lds_offset), line))

    def coop_dma_k(tile, buffer):
        for row in fx.range_constexpr(DMA_PER_TILE):
            in_tile = wave * (TILE // WAVES) + row * (64 * DMA)
            _dma_one(k_buffer, tile * TILE + in_tile + lane * DMA, in_tile + buffer * TILE)

    def coop_dma_v(tile):
        for row in fx.range_constexpr(DMA_PER_TILE):
            in_tile = wave * (TILE // WAVES) + row * (64 * DMA)
            at = in_tile + lane * DMA
            _dma_one(v_buffer, (at // KV_TILE) * kv_length + tile * KV_TILE + at % KV_TILE, in_tile + 2 * TILE)

    # Waits and barriers

    def _waitcnt_vm_n(count):
        fx.rocdl.s_waitcnt((count & 15) | (count >> 4) << 14 | VMCNT)

    def _wait_lds():
        fx.rocdl.s_waitcnt(LGKMCNT)

    def _barrier():
        fx.rocdl.sched_barrier(0)
        fx.gpu.barrier()

    def _prio(level):
        fx.rocdl.s_setprio(level)

    # Matrix instructions and their operands

    def _mfma(a, b, c):
        instruction = fx.rocdl.mfma_f32_32x32x16_f16 if GFX950 else fx.rocdl.mfma_f32_32x32x8f16
        return fx.Vector(instruction(fx.Vector.make_type(16, fx.Float32), [a, b, c, 0, 0, 0]))

    def mfma_acc(a, b, c):
        return _mfma(a, b, c)

    def _pack_at(pack):
        return fx.add_offset(lds, fx.int_tuple_mul(fx.make_int_tuple(pack), fx.make_int_tuple(4)))

    def _load_pack(pack):
        return Pack(fx.ptr_load(_pack_at(pack), Pack))

    def _copy_pack(pack):
        held = fx.make_rmem_tensor(4, fx.Float16)
        fx.copy_atom_call(lds_atom, fx.make_view(_pack_at(pack), fx.make_layout(4, 1)), held)
        return fx.Vector(held.load())

    def _join(low, high):
        return fx.Vector.from_elements([low[at] for at in range(4)] + [high[at] for at in range(4)], fx.Float16)

    def _read_k_pack(buffer, row, step):
        first = (buffer * TILE + (lane_in_half + row) * HEAD + half * PACK + step * 2 * PACK) // 4
        if fx.const_expr(GFX950):
            return _join(_copy_pack(first), _copy_pack(first + 1))
        return _copy_pack(first)

    def _read_v_pack(d, step):
        first = (2 * TILE + (lane_in_half + d) * KV_TILE + half * 4 + step * 2 * PACK) // 4
        if fx.const_expr(GFX950):
            return _join(_load_pack(first), _load_pack(first + 2))
        return _load_pack(first)

    def read_q(step):
        pack = fx.make_rmem_tensor(PACK, fx.Float16)
        offset = query * HEAD + half * PACK + step * 2 * PACK
        fx.copy_atom_call(q_atom, fx.make_view(_at(q_buffer, offset), fx.make_layout(PACK, 1)), pack)
        return fx.Vector(pack.load())

    # Softmax

    def _fmax(a, b):
        return a.maximumf(b)

    def _fadd(a, b):
        return a + b

    def _fsub(a, b):
        return a - b

    def _fmul(a, b):
        return a * b

    def _exp2(a):
        return a.exp2()

    def other_half(value):
        return value.shuffle_xor(32, 64)

    def reduce(combine, values):
        if fx.const_expr(len(values) > 1):
            return reduce(combine, [combine(a, b) for a, b in zip(values[::2], values[1::2])])
        return combine(values[0], other_half(values[0]))

    def pack_f16(values):
        return fx.Vector.from_elements([value.to(fx.Float16) for value in values], fx.Float16)

    def scale_all(vector, factor):
        return vector * factor

    # The output

    def store_pack(pack, column):
        held = fx.make_rmem_tensor(4, fx.Float16)
        held.store(pack)
        fx.copy_atom_call(o_atom, held, fx.make_view(_at(o_buffer, query * HEAD + column), fx.make_layout(4, 1)))

    def store_rows(accumulators, factor):
        for part, acc in enumerate(accumulators):
            scaled = scale_all(acc, factor)
            for at in fx.range_constexpr(0, 16, 4):
                store_pack(pack_f16([scaled[at + i] for i in range(4)]), part * 32 + at * 2 + half * 4)

    # Where this lane stands

    Pack.ir_type = fx.Vector.make_type(4, fx.Float16)
    thread = fx.Int32(fx.thread_idx.x)
    wave = fx.Int32(fx.rocdl.readfirstlane(fx.Int32.ir_type, thread // 64))
    lane = thread % 64
    half = lane // 32
    lane_in_half = lane % 32
    query = fx.Int32(fx.block_idx.x) * (32 * WAVES) + wave * 32 + lane_in_half
    q_buffer = fx.get_iter(fx.rocdl.make_buffer_tensor(q))
    k_buffer = fx.get_iter(fx.rocdl.make_buffer_tensor(k))
    v_buffer = fx.get_iter(fx.rocdl.make_buffer_tensor(v))
    o_buffer = fx.get_iter(fx.rocdl.make_buffer_tensor(o))
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 3 * TILE, 16]).peek().ptr
    dma_atom = fx.make_copy_atom(fx.rocdl.BufferCopyLDS(DMA * 16), fx.Float16)
    q_atom = fx.make_copy_atom(fx.rocdl.BufferCopy(PACK * 16), fx.Float16)
    o_atom = fx.make_copy_atom(fx.rocdl.BufferCopy64b(), fx.Float16)
    lds_atom = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16)

    q_packs = [read_q(step) for step in range(HEAD // (2 * PACK))]
    tiles = kv_length // KV_TILE
    buffer = fx.Int32(0)
    coop_dma_k(fx.Int32(0), buffer)

    row_max = fx.Float32(-1.0e30)
    row_sum = fx.Float32(0.0)
    o_0, o_1, o_2, o_3 = [fx.Vector.filled(16, 0.0, fx.Float32) for _ in range(HEAD // 32)]

    for tile in range(fx.Int32(0), tiles, fx.Int32(1)):
        next_buffer = 1 - buffer

        # V of this tile, then K of the next one: the waits below count on this order.
        coop_dma_v(tile)
        if tile + 1 < tiles:
            coop_dma_k(tile + 1, next_buffer)
        else:
            _waitcnt_vm_n(0)
        _waitcnt_vm_n(2 * DMA_PER_TILE)
        _barrier()

        # GEMM 1: scores, 64 keys for each query.
        s_acc_lo = fx.Vector.filled(16, 0.0, fx.Float32)
        s_acc_hi = fx.Vector.filled(16, 0.0, fx.Float32)
        _prio(1)
        for step in fx.range_constexpr(HEAD // (2 * PACK)):
            k_lo = _read_k_pack(buffer, 0, step)
            k_hi = _read_k_pack(buffer, 32, step)
            s_acc_lo = mfma_acc(k_lo, q_packs[step], s_acc_lo)
            s_acc_hi = mfma_acc(k_hi, q_packs[step], s_acc_hi)
        _prio(0)

        # Online softmax.
        scores = [s_acc_lo[at] for at in range(16)] + [s_acc_hi[at] for at in range(16)]
        new_max = _fmax(row_max, reduce(_fmax, scores))
        scaled_max = _fmul(new_max, LOG2E)
        weights = [_exp2(_fsub(_fmul(score, LOG2E), scaled_max)) for score in scores]
        correction = _exp2(_fsub(_fmul(row_max, LOG2E), scaled_max))
        row_sum = _fadd(_fmul(row_sum, correction), reduce(_fadd, weights))
        row_max = new_max
        p_packs = [pack_f16(weights[at:at + PACK]) for at in range(0, 32, PACK)]
        o_acc = [scale_all(acc, correction) for acc in (o_0, o_1, o_2, o_3)]

        # V is visible to all waves before GEMM 2.
        _waitcnt_vm_n(DMA_PER_TILE)
        _barrier()
        fx.rocdl.sched_group_barrier(0x100, 8, 0)

        # GEMM 2: the output, 32 elements of the head at a time.
        _prio(1)
        for part in fx.range_constexpr(HEAD // 32):
            for step in fx.range_constexpr(KV_TILE // (4 * PACK)):
                v_lo = _read_v_pack(part * 32, step)
                v_hi = _read_v_pack(part * 32, step + KV_TILE // (4 * PACK))
                o_acc[part] = mfma_acc(v_lo, p_packs[step], o_acc[part])
                o_acc[part] = mfma_acc(v_hi, p_packs[step + KV_TILE // (4 * PACK)], o_acc[part])
        _prio(0)
        _wait_lds()
        _barrier()
        buffer = next_buffer
        o_0, o_1, o_2, o_3 = o_acc

    # Epilogue: divide by the sum and store.
    inverse = 1.0 / row_sum
    if query < q_length:
        store_rows([o_0, o_1, o_2, o_3], inverse)


@flyc.jit
def attention(q: fx.Tensor, k: fx.Tensor, v: fx.Tensor, o: fx.Tensor, q_length: fx.Int32, kv_length: fx.Int32,
              stream: fx.Stream = fx.Stream(None)):
    blocks = (q_length + (32 * WAVES - 1)) // (32 * WAVES)
    flash_attention(q, k, v, o, q_length, kv_length).launch(grid=(blocks, 1, 1), block=(64 * WAVES, 1, 1), stream=stream)


def main(length=1024):
    rows = [torch.zeros(length * HEAD, dtype=torch.float16) for _ in range(4)]
    attention(*rows, length, length)


if __name__ == "__main__":
    main()
