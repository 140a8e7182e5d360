"""Writes the examples' MLIR from their Python sources; with --check, compares it.

python3 examples/generate.py [--check]
"""

import sys
from pathlib import Path

import flash_attention
import pingpong_gemm
import shared_helpers
import wmma_gemm

HERE = Path(__file__).parent

MADE = {
    "flash_attention.mlir": flash_attention.generate,
    "pingpong_gemm.mlir": pingpong_gemm.generate,
    "shared_helpers.mlir": lambda: shared_helpers.generate(noinline=False),
    "shared_helpers_noinline.mlir": lambda: shared_helpers.generate(noinline=True),
    "wmma_gemm_gfx1100.mlir": lambda: wmma_gemm.generate("gfx1100"),
    "wmma_gemm_gfx1201.mlir": lambda: wmma_gemm.generate("gfx1201"),
    "wmma_gemm_gfx1250.mlir": lambda: wmma_gemm.generate("gfx1250"),
}


def main():
    check = sys.argv[1:] == ["--check"]
    stale = []
    for name, generate in MADE.items():
        path, text = HERE / name, generate()
        if check and path.read_text() != text:
            stale.append(name)
        elif not check:
            path.write_text(text)
    if stale:
        sys.exit(f"not what the Python sources make: {', '.join(stale)}: run examples/generate.py")


if __name__ == "__main__":
    main()
