"""Compiles one Triton kernel to a code object, on a machine without a GPU."""

import argparse
import pathlib

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def build(kernel, signature, constants, default_chip="gfx942"):
    """Reads the command line and writes NAME_CHIP.hsaco, NAME being the kernel's.

    `signature` gives the type of each run-time argument; pointers and integers are taken to be
    multiples of 16, as they are for any sensible tensor.
    """
    parser = argparse.ArgumentParser(description=f"Compiles {kernel.__name__}.")
    parser.add_argument("--chip", default=default_chip)
    parser.add_argument("-o", dest="folder", type=pathlib.Path, default=pathlib.Path("."))
    given = parser.parse_args()

    names = kernel.arg_names
    types = {name: signature.get(name, "constexpr") for name in names}
    aligned = {(at,): [["tt.divisibility", 16]] for at, name in enumerate(names)
               if types[name] == "i32" or types[name].startswith("*")}
    source = ASTSource(kernel, types, {(names.index(name),): value for name, value in constants.items()}, aligned)
    wave = 64 if given.chip.startswith("gfx9") else 32
    compiled = triton.compile(source, target=GPUTarget("hip", given.chip, wave),
                              options={"enable_fp_fusion": True})

    given.folder.mkdir(parents=True, exist_ok=True)
    path = given.folder / f"{kernel.__name__}_{given.chip}.hsaco"
    path.write_bytes(compiled.asm["hsaco"])
    print(path)
