#!/usr/bin/python3
"""Compiles a FlyDSL example without a GPU and keeps its frontend IR and its code object.

    tools/frontend_dump.py examples/flydsl/flash_attention.py --chip gfx942 \
        [--flydsl 0.5.0] [--ir FILE] [--hsaco FILE] [--no-debug]

The frontend IR is written in generic form, so that MLIR without FlyDSL's dialects can read it,
with locations, and with paths that are the same on every machine: relative to the repository for
the example, below /usr/lib/python3/site-packages for the package.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = "/usr/lib/python3/site-packages"


def print_generic(dump):
    """Runs inside FlyDSL's environment, where its own MLIR can read what its printer wrote."""
    from flydsl._mlir import ir
    import flydsl.expr  # noqa: F401  (registers the dialects)

    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        text = pathlib.Path(dump).read_text()
        module = ir.Module.parse(text, context)
        sys.stdout.write(module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True))


def code_object(text):
    """The bytes of the one object in a `gpu.binary`, from MLIR's string escapes."""
    found = re.search(r'bin = "((?:[^"\\]|\\.)*)"', text)
    if not found:
        sys.exit("frontend_dump.py: the dump holds no code object")
    escape = re.compile(rb'\\([0-9A-Fa-f]{2}|["\\nt])')
    named = {b'"': b'"', b"\\": b"\\", b"n": b"\n", b"t": b"\t"}
    return escape.sub(lambda at: named.get(at[1]) or bytes.fromhex(at[1].decode()),
                      found[1].encode("utf-8", "surrogateescape"))


def normalise(text, venv):
    text = re.sub(r'"[^"]*/site-packages/', f'"{PACKAGES}/', text)
    return text.replace(f'"{ROOT}/', '"').replace(f'"{venv}/', '"')


def compile_example(example, chip, venv, dump, debug):
    shown = os.environ | {
        "COMPILE_ONLY": "1", "ARCH": chip, "FLYDSL_GPU_ARCH": chip,
        "ROCM_PATH": str(venv.parent / "rocm"),
        "FLYDSL_DEBUG_ENABLE_DEBUG_INFO": "1" if debug else "0",
        "FLYDSL_DUMP_IR": "1", "FLYDSL_DUMP_DIR": dump,
        "FLYDSL_RUNTIME_CACHE_DIR": os.path.join(dump, "cache"),
    }
    ran = subprocess.run([venv / "bin/python", example], env=shown, cwd=ROOT,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ran.returncode:
        sys.exit(ran.stdout + f"frontend_dump.py: {example} does not compile for {chip}")
    origins = sorted(pathlib.Path(dump).glob("*/00_origin.mlir"))
    if len(origins) != 1:
        sys.exit(f"frontend_dump.py: one kernel was expected, the dump holds {len(origins)}")
    return origins[0].parent


def write(path, data):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data)
    partial.replace(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("example")
    parser.add_argument("--flydsl", default="0.5.0", metavar="VERSION")
    parser.add_argument("--chip", default="gfx942")
    parser.add_argument("--ir", metavar="FILE", help="where the frontend IR goes")
    parser.add_argument("--hsaco", metavar="FILE", help="where the code object goes")
    parser.add_argument("--no-debug", action="store_true", help="compile without debug info")
    given = parser.parse_args()
    subprocess.run([ROOT / "tools/venv.sh", f"flydsl-{given.flydsl}"], check=True)
    venv = pathlib.Path(os.environ.get("VENV_ROOT", ROOT / ".venv")).absolute() / f"flydsl-{given.flydsl}"
    with tempfile.TemporaryDirectory() as dump:
        example = pathlib.Path(given.example).absolute()
        stages = compile_example(example, given.chip, venv, dump, not given.no_debug)
        if given.ir:
            inside = [venv / "bin/python", __file__, "--print-generic", stages / "00_origin.mlir"]
            text = subprocess.run(inside, check=True, stdout=subprocess.PIPE, text=True).stdout
            write(given.ir, normalise(text, venv).encode())
        if given.hsaco:
            binary = next(stages.glob("*_gpu_module_to_binary.mlir"))
            write(given.hsaco, code_object(binary.read_text(errors="surrogateescape")))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--print-generic"]:
        print_generic(sys.argv[2])
    else:
        main()
