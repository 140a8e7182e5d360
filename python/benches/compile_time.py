"""What siteline costs in FlyDSL's compile time of the flash-attention example.

    make bench-python

Runs in each FlyDSL's environment with the wheel. Compilations as shipped and with siteline take
turns in one process, so that both see the same machine; medians are printed.
"""

import os
import pathlib
import runpy
import statistics
import sys
import tempfile
import time

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples/flydsl/flash_attention.py"
ROUNDS = 9

os.environ |= {
    "COMPILE_ONLY": "1", "ARCH": "gfx950", "FLYDSL_GPU_ARCH": "gfx950",
    "FLYDSL_RUNTIME_ENABLE_CACHE": "0", "FLYDSL_RUNTIME_CACHE_DIR": tempfile.mkdtemp(),
}

import flydsl  # noqa: E402
import siteline  # noqa: E402
import siteline.flydsl  # noqa: E402

spent = {}


def timed(name, original):
    """The function, with its time added to what `name` took."""

    def run(*args, **kwargs):
        started = time.perf_counter()
        try:
            return original(*args, **kwargs)
        finally:
            spent[name] = spent.get(name, 0.0) + time.perf_counter() - started

    return run


def compile_once():
    """The time of one compilation; everything is made anew."""
    main = runpy.run_path(os.fspath(EXAMPLE))["main"]
    started = time.perf_counter()
    main()
    return time.perf_counter() - started


def main():
    for name in ("rewrite", "scopes", "refine"):
        setattr(siteline.flydsl, name, timed(name, getattr(siteline.flydsl, name)))
    # As shipped without debug information, with it, and with siteline, which turns it on.
    plain, shipped, sites = [], [], []
    parts = {}
    compile_once()
    for _ in range(ROUNDS):
        plain.append(compile_once())
        os.environ["FLYDSL_DEBUG_ENABLE_DEBUG_INFO"] = "1"
        shipped.append(compile_once())
        del os.environ["FLYDSL_DEBUG_ENABLE_DEBUG_INFO"]
        siteline.flydsl.enable()
        spent.clear()
        sites.append(compile_once())
        siteline.flydsl.disable()
        for name, seconds in spent.items():
            parts.setdefault(name, []).append(seconds)
    base = statistics.median(shipped)

    def line(name, seconds):
        print(f"{name:34} {1000 * seconds:9.2f} ms {100 * seconds / base:8.2f} %")

    print(f"FlyDSL {getattr(flydsl, '__version__', '?')}, flash attention, gfx950; medians of {ROUNDS}")
    line("as shipped, debug info off", statistics.median(plain))
    line("as shipped, debug info on", base)
    line("with siteline", statistics.median(sites))
    line("  more than as shipped", statistics.median(sites) - base)
    for name, seconds in parts.items():
        line(f"  {name}", statistics.median(seconds))


if __name__ == "__main__":
    sys.exit(main())
