"""A ping-pong GEMM: two LDS buffers, one filled by DMA while the other feeds the MFMA.

C = A * transposed B, in f16 with f32 accumulation. A workgroup of four waves makes a tile of
128 x 128 of C, each wave a quarter of 64 x 64, walking K in steps of 64: one half of the loop
body works on the ping buffer, the other on pong, through the same helpers.
"""

from emit import Emitter

WAVES = 4
TILE = 128                       # rows of A and of B in a workgroup's tile
STEP = 64                        # columns of A and B in one step
ROW_BYTES = STEP * 2             # of a row of a tile in LDS
TILE_BYTES = TILE * ROW_BYTES
BUFFER_BYTES = 2 * TILE_BYTES    # a tile of A, then one of B
DMA_PER_TILE = 16                # loads of 256 bytes that each wave makes for one tile
FLAGS = 0x27000                  # of a raw buffer on gfx9

F16X4 = "vector<4xf16>"
F32X16 = "vector<16xf32>"

PING, PONG = 0, 1


def pingpong_gemm(e, a_ptr, b_ptr, c_ptr, size_n, size_k):
    i32, add, mul = e.constant, e.add, e.mul

    def lds_at(offset):
        return e.address(e.shared("lds", 2 * BUFFER_BYTES), offset)

    # DMA from memory to LDS

    def _dma_one(source, lds_offset, offset):
        zero = i32(0)
        e.op("rocdl.raw.ptr.buffer.load.lds", source, lds_at(lds_offset), i32(4), offset,
             zero, zero, zero)

    def _dma_tile(source, first_row, step, lds_base):
        """Two rows of 128 bytes with each load."""
        mine = mul(wave, i32(2 * DMA_PER_TILE))
        for pair in range(DMA_PER_TILE):
            row = add(add(first_row, mine), add(half, i32(2 * pair)))
            column = add(mul(step, i32(ROW_BYTES)), mul(lane_in_half, i32(4)))
            in_tile = mul(add(mine, i32(2 * pair)), i32(ROW_BYTES))
            _dma_one(source, add(in_tile, i32(lds_base)), add(mul(row, mul(size_k, i32(2))), column))

    def coop_dma(step, buffer):
        _dma_tile(a_buffer, mul(group_m, i32(TILE)), step, buffer * BUFFER_BYTES)
        _dma_tile(b_buffer, mul(group_n, i32(TILE)), step, buffer * BUFFER_BYTES + TILE_BYTES)

    # Waits, barriers and scheduling

    def _waitcnt_vm_n(count):
        bits = (count & 15) | (count >> 4) << 14 | 0xF70
        e.op("rocdl.s.waitcnt", attributes=f"bitfield = {bits} : i32")

    def _barrier():
        e.op("rocdl.sched.barrier", attributes="mask = 0 : i32")
        e.op("rocdl.s.barrier")

    def wait_for_dma(outstanding):
        _waitcnt_vm_n(outstanding)
        _barrier()

    def wait_for_lds():
        e.asm("s_waitcnt lgkmcnt(0)")

    def _group(mask, size):
        e.op("rocdl.sched.group.barrier",
             attributes=f"mask = {mask} : i32, size = {size} : i32, groupId = 0 : i32")

    def interleave_reads_and_mfma():
        for _ in range(4):
            _group(0x100, 4)
            _group(0x8, 4)

    def high_priority():
        e.op("rocdl.s.setprio", attributes="priority = 1 : i16")

    def low_priority():
        e.op("rocdl.s.setprio", attributes="priority = 0 : i16")

    # Matrix instructions and their operands

    def _read_pack(base, row, k):
        column = add(mul(half, i32(8)), i32(k * 16))
        offset = add(mul(add(lane_in_half, row), i32(ROW_BYTES)), column)
        return e.load(lds_at(add(offset, i32(base))), F16X4, alignment=8)

    def read_a(buffer, part, k):
        row = add(mul(wave_m, i32(64)), i32(part * 32))
        return _read_pack(buffer * BUFFER_BYTES, row, k)

    def read_b(buffer, part, k):
        row = add(mul(wave_n, i32(64)), i32(part * 32))
        return _read_pack(buffer * BUFFER_BYTES + TILE_BYTES, row, k)

    def _mfma(a, b, c):
        zero = i32(0)
        return e.op("rocdl.mfma.f32.32x32x8f16", a, b, c, zero, zero, zero, result=F32X16)

    def mfma_acc(acc, a, b):
        """The four quarters of a wave's tile."""
        return [_mfma(a[m], b[n], acc[2 * m + n]) for m in range(2) for n in range(2)]

    def compute(buffer, acc):
        for k in range(STEP // 8):
            a = [read_a(buffer, part, k) for part in range(2)]
            b = [read_b(buffer, part, k) for part in range(2)]
            acc = mfma_acc(acc, a, b)
        interleave_reads_and_mfma()
        return acc

    # Where this lane stands

    thread = e.op("rocdl.workitem.id.x", result="i32")
    group_m = e.op("rocdl.workgroup.id.x", result="i32")
    group_n = e.op("rocdl.workgroup.id.y", result="i32")
    wave, lane = e.split(thread, 64)
    wave = e.op("rocdl.readfirstlane", wave, result="i32")
    wave_m, wave_n = e.split(wave, 2)
    half, lane_in_half = e.split(lane, 32)
    a_buffer, b_buffer = e.resource(a_ptr, FLAGS), e.resource(b_ptr, FLAGS)
    c_buffer = e.resource(c_ptr, FLAGS)

    zero = i32(0)
    steps, _ = e.split(size_k, STEP)
    coop_dma(zero, PING)

    def two_steps(step, acc):
        # Ping: compute on it while pong is filled.
        coop_dma(add(step, i32(1)), PONG)
        wait_for_dma(2 * DMA_PER_TILE)
        high_priority()
        acc = compute(PING, acc)
        low_priority()
        wait_for_lds()
        _barrier()

        # Pong: compute on it while ping is filled.
        coop_dma(add(step, i32(2)), PING)
        wait_for_dma(2 * DMA_PER_TILE)
        high_priority()
        acc = compute(PONG, acc)
        low_priority()
        wait_for_lds()
        _barrier()
        return acc

    start = [e.splat("0.0", F32X16) for _ in range(4)]
    acc = e.loop(zero, steps, i32(2), start, two_steps)

    # Epilogue: four rows of a quarter at a time.
    def store(value, row, column):
        offset = mul(add(mul(row, size_n), column), i32(4))
        e.op("rocdl.raw.ptr.buffer.store", value, c_buffer, offset, zero, zero)

    for quarter, values in enumerate(acc):
        m, n = divmod(quarter, 2)
        column = add(add(mul(group_n, i32(TILE)), mul(wave_n, i32(64))), add(lane_in_half, i32(n * 32)))
        first = add(add(mul(group_m, i32(TILE)), mul(wave_m, i32(64))), add(mul(half, i32(4)), i32(m * 32)))
        for at in range(16):
            value = e.op("vector.extract", values, result="f32",
                         attributes=f"static_position = array<i64: {at}>")
            store(value, add(first, i32(at // 4 * 8 + at % 4)), column)


def generate():
    """The kernel as MLIR text."""
    emitter = Emitter("gemm")
    emitter.kernel(pingpong_gemm, ["!llvm.ptr<1>"] * 3 + ["i32"] * 2, threads=64 * WAVES)
    return emitter.text("// Made by generate.py from pingpong_gemm.py.")
