"""A ping-pong GEMM in FlyDSL: while one LDS buffer is multiplied, DMA fills the other.

C = A * B^T with rows of f16. A workgroup of four waves makes a tile of 128 by 128; each wave
makes 64 by 64 of it. One turn of the loop is one half of the schedule on each buffer, and both
halves go through the same helpers. Matrix instructions and copies are FlyDSL's atoms.

    COMPILE_ONLY=1 ARCH=gfx942 FLYDSL_GPU_ARCH=gfx942 ROCM_PATH=.venv/rocm \
        .venv/flydsl-0.5.0/bin/python examples/flydsl/pingpong_gemm.py
"""

import os

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

CHIP = os.environ.get("ARCH", "gfx942")
GFX950 = CHIP.startswith("gfx950")

BLOCK = 128                         # rows of A and of B in one tile
K_TILE = 64                         # elements of each row in one tile
WAVES = 4
MMA_K = 16 if GFX950 else 8
PACK = MMA_K // 2                   # elements of a matrix operand in one lane
DMA = 8 if GFX950 else 2            # elements that one lane moves to LDS at once
TILE = BLOCK * K_TILE
DMA_PER_TILE = TILE // (WAVES * 64 * DMA)
VMCNT, LGKMCNT = 0xF70, 0xC07F      # of s_waitcnt, where the other counters do not wait


@flyc.kernel
def pingpong_gemm(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, rows: fx.Int32, columns: fx.Int32, depth: fx.Int32):
    def _at(pointer, offset):
        return fx.add_offset(pointer, fx.make_int_tuple(offset))

    # DMA from memory to LDS

    def _dma_one(source, offset, lds_offset):
        line = fx.make_layout(DMA, 1)
        fx.copy_atom_call(dma_atom, fx.make_view(_at(source, offset), line), fx.make_view(_at(lds, lds_offset), line))

    def coop_dma(source, first_row, k_tile, lds_offset):
        for line in fx.range_constexpr(DMA_PER_TILE):
            in_tile = wave * (TILE // WAVES) + line * (64 * DMA)
            at = in_tile + lane * DMA
            _dma_one(source, (first_row + at // K_TILE) * depth + k_tile * K_TILE + at % K_TILE, lds_offset + in_tile)

    def fill(buffer, k_tile):
        coop_dma(a_buffer, block_row, k_tile, buffer * 2 * TILE)
        coop_dma(b_buffer, block_column, k_tile, buffer * 2 * TILE + TILE)

    # Waits and barriers

    def wait_for_dma(count):
        fx.rocdl.s_waitcnt((count & 15) | (count >> 4) << 14 | VMCNT)

    def wait_for_lds():
        fx.rocdl.s_waitcnt(LGKMCNT)

    def _barrier():
        fx.rocdl.sched_barrier(0)
        fx.gpu.barrier()

    def hand_over(count):
        wait_for_dma(count)
        _barrier()

    # Matrix instructions and their operands

    def _read(first_row, step):
        pack = fx.make_rmem_tensor(PACK, fx.Float16)
        index = (first_row + lane % 32) * (K_TILE // PACK) + step * 2 + lane // 32
        source = _at(lds, fx.int_tuple_mul(fx.make_int_tuple(index), fx.make_int_tuple(PACK)))
        fx.copy_atom_call(lds_atom, fx.make_view(source, fx.make_layout(PACK, 1)), pack)
        return pack

    def read_a(buffer, part, step):
        return _read(buffer * 2 * BLOCK + wave_row + part * 32, step)

    def read_b(buffer, part, step):
        return _read(buffer * 2 * BLOCK + BLOCK + wave_column + part * 32, step)

    def _mma(acc, x, y):
        fx.mma_atom_call(mma_atom, acc, x, y, acc)

    def multiply(buffer):
        for step in fx.range_constexpr(K_TILE // MMA_K):
            left = [read_a(buffer, part, step) for part in range(2)]
            right = [read_b(buffer, part, step) for part in range(2)]
            for at in fx.range_constexpr(4):
                _mma(acc[at], left[at // 2], right[at % 2])

    # The output

    def store(at):
        values = fx.Vector(acc[at].load())
        column = block_column + wave_column + (at % 2) * 32 + lane % 32
        for i in fx.range_constexpr(16):
            held = fx.make_rmem_tensor(1, fx.Float16)
            held.store(fx.Vector.from_elements([values[i].to(fx.Float16)], fx.Float16))
            row = block_row + wave_row + (at // 2) * 32 + i // 4 * 8 + lane // 32 * 4 + i % 4
            fx.copy_atom_call(c_atom, held, fx.make_view(_at(c_buffer, row * columns + column), fx.make_layout(1, 1)))

    # Where this lane stands

    thread = fx.Int32(fx.thread_idx.x)
    wave = fx.Int32(fx.rocdl.readfirstlane(fx.Int32.ir_type, thread // 64))
    lane = thread % 64
    block_row = fx.Int32(fx.block_idx.x) * BLOCK
    block_column = fx.Int32(fx.block_idx.y) * BLOCK
    wave_row = wave // 2 * 64
    wave_column = wave % 2 * 64
    a_buffer = fx.get_iter(fx.rocdl.make_buffer_tensor(a))
    b_buffer = fx.get_iter(fx.rocdl.make_buffer_tensor(b))
    c_buffer = fx.get_iter(fx.rocdl.make_buffer_tensor(c))
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 4 * TILE, 16]).peek().ptr
    dma_atom = fx.make_copy_atom(fx.rocdl.BufferCopyLDS(DMA * 16), fx.Float16)
    lds_atom = fx.make_copy_atom(fx.UniversalCopy128b() if GFX950 else fx.UniversalCopy64b(), fx.Float16)
    c_atom = fx.make_copy_atom(fx.rocdl.BufferCopy16b(), fx.Float16)
    mma_atom = fx.make_mma_atom(fx.rocdl.MFMA(32, 32, MMA_K, fx.Float16))

    acc = [fx.make_rmem_tensor(16, fx.Float32) for _ in range(4)]
    for at in fx.range_constexpr(4):
        acc[at].store(fx.Vector.filled(16, 0.0, fx.Float32))

    fill(0, fx.Int32(0))
    pairs = depth // (2 * K_TILE)
    for pair in range(fx.Int32(0), pairs, fx.Int32(1)):
        # Ping: the second buffer fills while the first is multiplied.
        fill(1, pair * 2 + 1)
        hand_over(2 * DMA_PER_TILE)
        fx.rocdl.s_setprio(1)
        multiply(0)
        fx.rocdl.s_setprio(0)
        wait_for_lds()
        _barrier()

        # Pong: and the other way round.
        if pair + 1 < pairs:
            fill(0, pair * 2 + 2)
        else:
            wait_for_dma(0)
        hand_over(2 * DMA_PER_TILE)
        fx.rocdl.s_setprio(1)
        multiply(1)
        fx.rocdl.s_setprio(0)
        wait_for_lds()
        _barrier()

    if block_row < rows:
        for at in fx.range_constexpr(4):
            store(at)


@flyc.jit
def gemm(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, rows: fx.Int32, columns: fx.Int32, depth: fx.Int32,
         stream: fx.Stream = fx.Stream(None)):
    grid = ((rows + (BLOCK - 1)) // BLOCK, (columns + (BLOCK - 1)) // BLOCK, 1)
    pingpong_gemm(a, b, c, rows, columns, depth).launch(grid=grid, block=(64 * WAVES, 1, 1), stream=stream)


def main(size=1024):
    matrices = [torch.zeros(size * size, dtype=torch.float16) for _ in range(3)]
    gemm(*matrices, size, size, size)


if __name__ == "__main__":
    main()
