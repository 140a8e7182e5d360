"""A flash-attention-like kernel: two GEMMs through one `_mfma` helper, softmax between them.

A workgroup of four waves takes 128 queries of one head; each wave takes 32. K comes through LDS
in tiles of 64 rows, double-buffered; V is kept transposed in memory and comes through LDS too.
Both GEMMs are computed transposed, so that one lane holds one query: the matrix layout of the
scores is then the operand layout that the second GEMM needs.
"""

from emit import Emitter

HEAD = 128          # elements of one row of Q, K and O
KV_TILE = 64        # rows of K, columns of transposed V, in one tile
WAVES = 4
ROW_BYTES = HEAD * 2
K_TILE_BYTES = KV_TILE * ROW_BYTES
V_TILE_BYTES = HEAD * KV_TILE * 2
DMA_PER_TILE = 16   # loads of 256 bytes that each wave makes for one tile

FLAGS = 0x27000     # of a raw buffer on gfx9

F16X4 = "vector<4xf16>"
F32X16 = "vector<16xf32>"


def flash_attention(e, q_ptr, k_ptr, v_ptr, o_ptr, kv_length):
    i32, add, mul = e.constant, e.add, e.mul

    def lds_at(offset):
        base = e.shared("lds", 2 * K_TILE_BYTES + V_TILE_BYTES)
        return e.address(base, offset)

    # DMA from memory to LDS

    def _dma_one(source, lds_offset, offset):
        e.op("rocdl.raw.ptr.buffer.load.lds", source, lds_at(lds_offset), i32(4), offset,
             i32(0), i32(0), i32(0))

    def coop_dma_k(tile, buffer):
        first_row = add(mul(tile, i32(KV_TILE)), mul(wave, i32(DMA_PER_TILE)))
        for row in range(DMA_PER_TILE):
            offset = add(mul(add(first_row, i32(row)), i32(ROW_BYTES)), mul(lane, i32(4)))
            in_tile = mul(add(mul(wave, i32(DMA_PER_TILE)), i32(row)), i32(ROW_BYTES))
            _dma_one(k_buffer, add(in_tile, mul(buffer, i32(K_TILE_BYTES))), offset)

    def coop_dma_v(tile):
        first = mul(wave, i32(2 * DMA_PER_TILE))
        for pair in range(DMA_PER_TILE):
            row = add(add(first, i32(2 * pair)), half)
            column = mul(tile, i32(KV_TILE * 2))
            offset = add(mul(row, mul(kv_length, i32(2))), add(column, mul(lane_in_half, i32(4))))
            in_tile = mul(add(first, i32(2 * pair)), i32(KV_TILE * 2))
            _dma_one(v_buffer, add(in_tile, i32(2 * K_TILE_BYTES)), offset)

    # Waits and barriers

    def _waitcnt_vm_n(count):
        e.op("rocdl.s.waitcnt", attributes=f"bitfield = {(count & 15) | (count >> 4) << 14 | 0xF70} : i32")

    def _wait_lds():
        e.asm("s_waitcnt lgkmcnt(0)")

    def _barrier():
        e.op("rocdl.sched.barrier", attributes="mask = 0 : i32")
        e.op("rocdl.s.barrier")

    def _prio(level):
        e.op("rocdl.s.setprio", attributes=f"priority = {level} : i16")

    # Matrix instructions and their operands

    def _mfma(a, b, c):
        zero = i32(0)
        return e.op("rocdl.mfma.f32.32x32x8f16", a, b, c, zero, zero, zero, result=F32X16)

    def mfma_acc(a, b, c):
        return _mfma(a, b, c)

    def _load_pack(offset):
        return e.load(lds_at(offset), F16X4, alignment=8)

    def _read_k_pack(buffer, row, step):
        column = add(mul(half, i32(8)), i32(step * 16))
        offset = add(mul(add(lane_in_half, i32(row)), i32(ROW_BYTES)), column)
        return _load_pack(add(offset, mul(buffer, i32(K_TILE_BYTES))))

    def _read_v_pack(d, kv):
        row = mul(add(lane_in_half, i32(d)), i32(KV_TILE * 2))
        return _load_pack(add(add(row, add(mul(half, i32(8)), i32(kv * 2))), i32(2 * K_TILE_BYTES)))

    def read_q(step):
        row = add(mul(group, i32(32 * WAVES)), add(mul(wave, i32(32)), lane_in_half))
        offset = add(mul(row, i32(ROW_BYTES)), add(mul(half, i32(8)), i32(step * 16)))
        return e.op("rocdl.raw.ptr.buffer.load", q_buffer, offset, i32(0), i32(0), result=F16X4)

    # Softmax

    def _fmax(a, b):
        return e.op("arith.maxnumf", a, b, result="f32")

    def _fadd(a, b):
        return e.op("arith.addf", a, b, result="f32")

    def _fsub(a, b):
        return e.op("arith.subf", a, b, result="f32")

    def _fmul(a, b):
        return e.op("arith.mulf", a, b, result="f32")

    def _exp2(a):
        return e.op("rocdl.exp2", a, result="f32")

    def _element(vector, at):
        return e.op("vector.extract", vector, result="f32", attributes=f"static_position = array<i64: {at}>")

    def elements(vector):
        return [_element(vector, at) for at in range(16)]

    def other_half(value):
        lane_bytes = mul(e.op("arith.xori", lane, i32(32), result="i32"), i32(4))
        bits = e.op("arith.bitcast", value, result="i32")
        moved = e.op("rocdl.ds_bpermute", lane_bytes, bits, result="i32")
        return e.op("arith.bitcast", moved, result="f32")

    def reduce(combine, values):
        while len(values) > 1:
            values = [combine(a, b) for a, b in zip(values[::2], values[1::2])]
        return combine(values[0], other_half(values[0]))

    def pack_f16(values):
        half_values = [e.op("arith.truncf", value, result="f16") for value in values]
        return e.op("vector.from_elements", *half_values, result=F16X4)

    def scale_all(vector, factor):
        factors = e.op("vector.broadcast", factor, result=F32X16)
        return e.op("arith.mulf", vector, factors, result=F32X16)

    # Where this lane stands

    thread = e.op("rocdl.workitem.id.x", result="i32")
    group = e.op("rocdl.workgroup.id.x", result="i32")
    wave, lane = e.split(thread, 64)
    wave = e.op("rocdl.readfirstlane", wave, result="i32")
    half, lane_in_half = e.split(lane, 32)
    q_buffer, k_buffer = e.resource(q_ptr, FLAGS), e.resource(k_ptr, FLAGS)
    v_buffer, o_buffer = e.resource(v_ptr, FLAGS), e.resource(o_ptr, FLAGS)

    q_packs = [read_q(step) for step in range(HEAD // 8)]
    log2e = e.constant("0.1275174", "f32")
    zero = i32(0)
    coop_dma_k(zero, zero)

    def kv_tile(tile, carried):
        row_max, row_sum, buffer, *o_acc = carried
        next_buffer = e.op("arith.xori", buffer, i32(1), result="i32")

        # V of this tile, then K of the next one: the waits below count on this order.
        coop_dma_v(tile)
        coop_dma_k(add(tile, i32(1)), next_buffer)
        _waitcnt_vm_n(2 * DMA_PER_TILE)
        _barrier()

        # GEMM 1: scores, 64 keys for each query.
        s_acc_lo = e.splat("0.0", F32X16)
        s_acc_hi = e.splat("0.0", F32X16)
        _prio(1)
        for step in range(HEAD // 8):
            k_lo = _read_k_pack(buffer, 0, step)
            k_hi = _read_k_pack(buffer, 32, step)
            s_acc_lo = mfma_acc(k_lo, q_packs[step], s_acc_lo)
            s_acc_hi = mfma_acc(k_hi, q_packs[step], s_acc_hi)
        _prio(0)

        # Online softmax.
        scores = elements(s_acc_lo) + elements(s_acc_hi)
        new_max = _fmax(row_max, reduce(_fmax, scores))
        scaled_max = _fmul(new_max, log2e)
        weights = [_exp2(_fsub(_fmul(score, log2e), scaled_max)) for score in scores]
        correction = _exp2(_fsub(_fmul(row_max, log2e), scaled_max))
        new_sum = _fadd(_fmul(row_sum, correction), reduce(_fadd, weights))
        p_packs = [pack_f16(weights[at:at + 4]) for at in range(0, 32, 4)]
        o_acc = [scale_all(acc, correction) for acc in o_acc]

        # V is visible to all waves before GEMM 2.
        _waitcnt_vm_n(DMA_PER_TILE)
        _barrier()
        e.op("rocdl.sched.group.barrier",
             attributes="mask = 256 : i32, size = 8 : i32, groupId = 0 : i32")

        # GEMM 2: the output, 32 elements of the head at a time.
        _prio(1)
        for part in range(HEAD // 32):
            for step in range(4):
                v_lo = _read_v_pack(part * 32, step * 8)
                v_hi = _read_v_pack(part * 32, 32 + step * 8)
                o_acc[part] = mfma_acc(v_lo, p_packs[step], o_acc[part])
                o_acc[part] = mfma_acc(v_hi, p_packs[4 + step], o_acc[part])
        _prio(0)
        _wait_lds()
        _barrier()
        return [new_max, new_sum, next_buffer, *o_acc]

    tiles, _ = e.split(kv_length, KV_TILE)
    start = [e.constant("-1.0e30", "f32"), e.constant("0.0", "f32"), zero]
    start += [e.splat("0.0", F32X16) for _ in range(HEAD // 32)]
    _, row_sum, _, *o_acc = e.loop(zero, tiles, i32(1), start, kv_tile)

    # Epilogue: divide by the sum and store.
    inverse = e.op("rocdl.rcp", row_sum, result="f32")
    row = add(mul(group, i32(32 * WAVES)), add(mul(wave, i32(32)), lane_in_half))
    for part, acc in enumerate(o_acc):
        values = elements(scale_all(acc, inverse))
        for at in range(0, 16, 4):
            column = add(mul(half, i32(8)), i32(part * 64 + at * 4))
            offset = add(mul(row, i32(ROW_BYTES)), column)
            e.op("rocdl.raw.ptr.buffer.store", pack_f16(values[at:at + 4]), o_buffer, offset, zero, zero)


def generate():
    """The kernel as MLIR text."""
    emitter = Emitter("attention")
    pointer = "!llvm.ptr<1>"
    emitter.kernel(flash_attention, [pointer] * 4 + ["i32"], threads=64 * WAVES)
    return emitter.text("// Made by generate.py from flash_attention.py.")
