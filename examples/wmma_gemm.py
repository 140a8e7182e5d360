"""A GEMM with WMMA for the wave32 chips: gfx1100, gfx1201 and gfx1250.

C = A * transposed B, in f16 with f32 accumulation. A workgroup of four waves makes a tile of
64 x 64 of C, each wave 16 rows of it. A and B come through LDS. The generations differ in how
many elements of A and B a lane holds and in their waits, so the chip is a parameter.
"""

from emit import Emitter

WAVES = 4
TILE = 64
FLAGS = 0x31004000    # of a raw buffer from gfx11 on
F32X8 = "vector<8xf32>"


class Chip:
    """What differs between the generations."""

    def __init__(self, depth, elements, halves, intrinsic, immediates):
        self.depth = depth            # columns of A and B in one WMMA
        self.elements = elements      # elements of A and B in a lane
        self.halves = halves          # whether the halves of a wave hold different columns
        self.intrinsic = intrinsic
        self.immediates = immediates


CHIPS = {
    "gfx1100": Chip(16, 16, False, "rocdl.wmma.f32.16x16x16.f16", False),
    "gfx1201": Chip(16, 8, True, "rocdl.wmma.f32.16x16x16.f16", False),
    "gfx1250": Chip(32, 16, True, "rocdl.wmma.f32.16x16x32.f16", True),
}


def kernel_for(chip):
    step = 2 * chip.depth
    row_bytes = step * 2
    tile_bytes = TILE * row_bytes
    pack = f"vector<{chip.elements}xf16>"

    def wmma_gemm(e, a_ptr, b_ptr, c_ptr, size_n, size_k):
        i32, add, mul = e.constant, e.add, e.mul

        def lds_at(offset):
            return e.address(e.shared("lds", 2 * tile_bytes), offset)

        def _copy_one(source, offset, lds_offset):
            value = e.op("rocdl.raw.ptr.buffer.load", source, offset, i32(0), i32(0),
                         result="vector<4xf32>")
            e.op("llvm.store", value, lds_at(lds_offset),
                 attributes="alignment = 16 : i64, ordering = 0 : i64")

        def copy_tile(source, first_row, k, lds_base):
            """16 bytes with each load, all threads side by side."""
            for part in range(tile_bytes // (16 * 32 * WAVES)):
                at = add(mul(thread, i32(16)), i32(part * 16 * 32 * WAVES))
                row, column = e.split(at, row_bytes)
                row_in_memory = mul(add(first_row, row), mul(size_k, i32(2)))
                offset = add(row_in_memory, add(mul(k, i32(2)), column))
                _copy_one(source, offset, add(at, i32(lds_base)))

        def sync():
            e.op("gpu.barrier")

        def _read_pack(base, row, k):
            per_half = 2 * chip.elements if chip.halves else 0
            column = add(mul(half, i32(per_half)), i32(k * chip.depth * 2))
            offset = add(mul(add(lane_in_half, row), i32(row_bytes)), add(column, i32(base)))
            return e.load(lds_at(offset), pack, alignment=16)

        def _wmma(a, b, c):
            # The layout of gfx1250 differs in which columns a half holds; A and B agree.
            if chip.immediates:
                attributes = ("signA = false, signB = false, modC = 0 : i16, reuseA = false, "
                              "reuseB = false")
                return e.op(chip.intrinsic, a, b, c, result=F32X8, attributes=attributes)
            return e.op(chip.intrinsic, a, b, c, result=F32X8)

        def wmma_acc(acc, a, packs):
            return [_wmma(a, b, c) for b, c in zip(packs, acc)]

        def compute(k, acc):
            a = _read_pack(0, mul(wave, i32(16)), k)
            packs = [_read_pack(tile_bytes, i32(16 * part), k) for part in range(TILE // 16)]
            return wmma_acc(acc, a, packs)

        thread = e.op("rocdl.workitem.id.x", result="i32")
        group_m = e.op("rocdl.workgroup.id.x", result="i32")
        group_n = e.op("rocdl.workgroup.id.y", result="i32")
        wave, lane = e.split(thread, 32)
        half, lane_in_half = e.split(lane, 16)
        a_buffer, b_buffer = e.resource(a_ptr, FLAGS), e.resource(b_ptr, FLAGS)
        c_buffer = e.resource(c_ptr, FLAGS)

        def one_step(k, acc):
            copy_tile(a_buffer, mul(group_m, i32(TILE)), k, 0)
            copy_tile(b_buffer, mul(group_n, i32(TILE)), k, tile_bytes)
            sync()
            acc = compute(0, acc)
            acc = compute(1, acc)
            sync()
            return acc

        start = [e.splat("0.0", F32X8) for _ in range(TILE // 16)]
        acc = e.loop(i32(0), size_k, i32(step), start, one_step)

        zero = i32(0)
        for part, values in enumerate(acc):
            column = add(mul(group_n, i32(TILE)), add(lane_in_half, i32(16 * part)))
            first = add(mul(group_m, i32(TILE)), mul(wave, i32(16)))
            for at in range(8):
                # gfx11 interleaves the rows of the two halves; later chips hold eight each.
                row = add(mul(half, i32(8)), i32(at)) if chip.halves else add(half, i32(2 * at))
                value = e.op("vector.extract", values, result="f32",
                             attributes=f"static_position = array<i64: {at}>")
                offset = mul(add(mul(add(first, row), size_n), column), i32(4))
                e.op("rocdl.raw.ptr.buffer.store", value, c_buffer, offset, zero, zero)

    return wmma_gemm


def generate(chip):
    """The kernel for a chip as MLIR text."""
    emitter = Emitter("gemm")
    emitter.kernel(kernel_for(CHIPS[chip]), ["!llvm.ptr<1>"] * 3 + ["i32"] * 2, threads=32 * WAVES)
    return emitter.text(f"// Made by generate.py from wmma_gemm.py, for {chip}.")
