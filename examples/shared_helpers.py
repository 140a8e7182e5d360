"""A gated GEMM whose helpers are real functions, each called from two sites or more.

out = silu(A * transposed G) * (A * transposed U), in f16 with f32 accumulation. A workgroup of
four waves makes 32 rows and 128 columns of `out`, each wave 32 x 32. Here the helpers are
private functions in the IR, so inlining, MLIR's or LLVM's, has to make the chains; the second
variant forbids it for the helpers that the loop calls.
"""

from emit import Emitter

WAVES = 4
ROWS = 32                        # that one call of `load_rows` brings
STEP = 64                        # columns of A, G and U in one step
ROW_BYTES = STEP * 2
A_BASE = 0
GATE_BASE = ROWS * ROW_BYTES
UP_BASE = 5 * ROWS * ROW_BYTES
LDS_BYTES = 9 * ROWS * ROW_BYTES
FLAGS = 0x27000                  # of a raw buffer on gfx9

F16X4 = "vector<4xf16>"
F32X16 = "vector<16xf32>"


def lanes(e):
    """The wave, and for a lane the half of the wave and the place in it."""
    thread = e.op("rocdl.workitem.id.x", result="i32")
    wave, lane = e.split(thread, 64)
    wave = e.op("rocdl.readfirstlane", wave, result="i32")
    return wave, *e.split(lane, 32)


def lds_at(e, offset):
    return e.address(e.shared("lds", LDS_BYTES), offset)


# The functions


def load_rows(e, source, first_row, k, size_k, lds_base):
    """32 rows of one step from memory to LDS, two rows of 128 bytes with each load."""
    i32, add, mul = e.constant, e.add, e.mul
    wave, half, lane_in_half = lanes(e)
    mine = mul(wave, i32(ROWS // WAVES))
    zero = i32(0)
    for pair in range(0, ROWS // WAVES, 2):
        row = add(add(first_row, mine), add(half, i32(pair)))
        column = add(mul(k, i32(2)), mul(lane_in_half, i32(4)))
        offset = add(mul(row, mul(size_k, i32(2))), column)
        in_tile = mul(add(mine, i32(pair)), i32(ROW_BYTES))
        e.op("rocdl.raw.ptr.buffer.load.lds", source, lds_at(e, add(lds_base, in_tile)), i32(4),
             offset, zero, zero, zero)


def sync(e):
    """All DMA and all LDS reads of this wave are done, then all waves meet."""
    e.asm("s_waitcnt vmcnt(0) lgkmcnt(0)")
    e.op("rocdl.sched.barrier", attributes="mask = 0 : i32")
    e.op("rocdl.s.barrier")


def gemm_step(e, acc, weights_base):
    """Adds one step of A times the transposed weights."""
    i32, add, mul = e.constant, e.add, e.mul
    wave, half, lane_in_half = lanes(e)

    def _read_pack(base, row, k):
        column = add(mul(half, i32(8)), i32(k * 16))
        offset = add(mul(row, i32(ROW_BYTES)), column)
        return e.load(lds_at(e, add(offset, base)), F16X4, alignment=8)

    zero = i32(0)
    for k in range(STEP // 8):
        a = _read_pack(i32(A_BASE), lane_in_half, k)
        w = _read_pack(weights_base, add(mul(wave, i32(32)), lane_in_half), k)
        acc = e.op("rocdl.mfma.f32.32x32x8f16", a, w, acc, zero, zero, zero, result=F32X16)
    return acc


def gated(e, gate, up):
    """silu(gate) * up"""
    minus_log2e = e.constant("-1.44269504", "f32")
    one = e.constant("1.0", "f32")
    scaled = e.op("arith.mulf", gate, minus_log2e, result="f32")
    power = e.op("rocdl.exp2", scaled, result="f32")
    inverse = e.op("rocdl.rcp", e.op("arith.addf", power, one, result="f32"), result="f32")
    silu = e.op("arith.mulf", gate, inverse, result="f32")
    return e.op("arith.mulf", silu, up, result="f32")


# The kernel


def kernel_for(load_rows, sync, gemm_step, gated):
    def shared_helpers(e, a_ptr, gate_ptr, up_ptr, out_ptr, size_n, size_k):
        i32, add, mul = e.constant, e.add, e.mul

        group_m = e.op("rocdl.workgroup.id.x", result="i32")
        group_n = e.op("rocdl.workgroup.id.y", result="i32")
        wave, half, lane_in_half = lanes(e)
        a_buffer, gate_buffer = e.resource(a_ptr, FLAGS), e.resource(gate_ptr, FLAGS)
        up_buffer, out_buffer = e.resource(up_ptr, FLAGS), e.resource(out_ptr, FLAGS)
        first_row, first_column = mul(group_m, i32(ROWS)), mul(group_n, i32(4 * ROWS))

        def load_weights(source, k, base):
            for part in range(4):
                row = add(first_column, i32(part * ROWS))
                load_rows(source, row, k, size_k, i32(base + part * ROWS * ROW_BYTES))

        def one_step(k, carried):
            gate, up = carried
            load_rows(a_buffer, first_row, k, size_k, i32(A_BASE))
            load_weights(gate_buffer, k, GATE_BASE)
            load_weights(up_buffer, k, UP_BASE)
            sync()
            gate = gemm_step(gate, i32(GATE_BASE))
            up = gemm_step(up, i32(UP_BASE))
            sync()
            return [gate, up]

        start = [e.splat("0.0", F32X16), e.splat("0.0", F32X16)]
        gate, up = e.loop(i32(0), size_k, i32(STEP), start, one_step)

        def element(vector, at):
            return e.op("vector.extract", vector, result="f32",
                        attributes=f"static_position = array<i64: {at}>")

        def store(value, at):
            in_tile = add(mul(half, i32(4)), i32(at // 4 * 8 + at % 4))
            column = add(add(first_column, mul(wave, i32(32))), lane_in_half)
            offset = mul(add(mul(add(first_row, in_tile), size_n), column), i32(4))
            e.op("rocdl.raw.ptr.buffer.store", value, out_buffer, offset, i32(0), i32(0))

        for at in range(0, 16, 2):
            even = gated(element(gate, at), element(up, at))
            odd = gated(element(gate, at + 1), element(up, at + 1))
            store(even, at)
            store(odd, at + 1)

    return shared_helpers


def generate(noinline):
    """The kernel as MLIR text; with `noinline`, the loop's helpers stay functions."""
    emitter = Emitter("gated_gemm")
    resource = "!llvm.ptr<8>"
    kernel = kernel_for(
        emitter.function(load_rows, [resource] + ["i32"] * 4, uniform=range(5), noinline=noinline),
        emitter.function(sync, [], noinline=noinline),
        emitter.function(gemm_step, [F32X16, "i32"], F32X16, uniform=[1], noinline=noinline),
        emitter.function(gated, ["f32", "f32"], "f32"),
    )
    emitter.kernel(kernel, ["!llvm.ptr<1>"] * 4 + ["i32"] * 2, threads=64 * WAVES)
    return emitter.text("// Made by generate.py from shared_helpers.py.")
