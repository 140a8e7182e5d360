"""`python -m siteline run`: a script under siteline, without an edit of it."""

from __future__ import annotations

import argparse
import json
import os
import runpy
import shutil
import sys
import tempfile
from pathlib import Path

from . import Settings, __version__

USAGE = "python -m siteline run [options] script.py|-m module [arguments]"


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m siteline", description=__doc__.splitlines()[0])
    parser.add_argument("--version", action="version", version=f"siteline {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", usage=USAGE, help="run a script with its FlyDSL and Triton kernels at their sites")
    run.add_argument("--policy", default="distinct", help="how sites are chosen")
    run.add_argument("--leaves", default="all", help="classes that get a site, separated by commas")
    run.add_argument("--library", action="append", default=[], metavar="GLOB",
                     help="paths of code that the kernel's author did not write; may be repeated")
    run.add_argument("--leaf", action="append", default=[], metavar="CLASS=GLOB",
                     help="count operations of that name to a leaf class; may be repeated")
    run.add_argument("--origin", choices=("keep", "drop"), default="keep",
                     help="what becomes of original locations")
    run.add_argument("--no-infer", dest="infer", action="store_false",
                     help="leave operations without a usable location as they are")
    run.add_argument("--save", metavar="DIR",
                     help="keep IR before and after, code objects and a report of each kernel")
    run.add_argument("--verify", action="store_true",
                     help="compile each kernel again with debug off, and compare the machine code")
    run.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    run.add_argument("script", help="the script, or with -m the module")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own arguments")
    given = parser.parse_args(arguments)
    options = {name: getattr(given, name) for name in ("policy", "leaves", "library", "leaf", "origin", "infer")}
    try:
        Settings(**options)
    except ValueError as error:
        run.error(str(error))
    _run(given, options)


def _run(given: argparse.Namespace, options: dict) -> None:
    records = tempfile.mkdtemp(prefix="siteline-")
    save = os.path.abspath(given.save) if given.save else None
    handed = options | {"save": save, "verify": given.verify}
    ours = {"SITELINE": "1", "SITELINE_OPTIONS": json.dumps(handed), "SITELINE_RECORDS": records}
    before = {name: os.environ.get(name) for name in ours}
    os.environ.update(ours)
    from . import flydsl, triton

    if "siteline._startup" in sys.modules:
        sys.modules["siteline._startup"].start()
    else:
        from . import _startup  # noqa: F401  (hooks the front ends)
    try:
        _execute(given)
    except BaseException as error:
        _show(error)
        raise
    finally:
        flydsl.disable()
        triton.disable()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
        sys.stdout.flush()
        _print_table(Path(records), given.verify)
        shutil.rmtree(records, ignore_errors=True)


def _show(error: BaseException) -> None:
    """Shows the script's own error before anything of siteline's, as Python would; what Python
    does with it later, its exit status among it, stays, but for showing it again."""
    sys.stdout.flush()
    if isinstance(error, SystemExit):
        if error.code is not None and not isinstance(error.code, int):
            print(error.code, file=sys.stderr)
            error.code = 1
        return
    frames = error.__traceback__
    own = (__file__, runpy.__file__, "<frozen runpy>")
    while frames is not None and frames.tb_frame.f_code.co_filename in own:
        frames = frames.tb_next
    hook = sys.excepthook
    hook(type(error), error.with_traceback(frames), frames)
    sys.excepthook = lambda kind, value, at: None if value is error else hook(kind, value, at)


def _execute(given: argparse.Namespace) -> None:
    """Runs the script as Python itself would."""
    sys.argv = [given.script, *given.arguments]
    if given.module:
        sys.path[0] = os.getcwd()
        runpy.run_module(given.script, run_name="__main__", alter_sys=True)
        return
    if not os.path.exists(given.script):
        sys.exit(f"siteline: error: there is no '{given.script}'")
    sys.path[0] = os.path.dirname(os.path.abspath(given.script))
    runpy.run_path(given.script, run_name="__main__")


def _print_table(records: Path, verified: bool) -> None:
    kernels = [json.loads(path.read_text()) for path in sorted(records.glob("*.json"))]
    if not kernels:
        print("siteline: no kernel was compiled (each may have come from a cache)", file=sys.stderr)
        return
    columns = {"lines": "lines", "effective lines": "effective_lines", "MFMA lines": "mfma_lines"}
    rows = [["kernel", "chip", *columns] + ["machine code"] * verified]
    for kernel in kernels:
        row = [kernel["kernel"], kernel["chip"]]
        row += [" -> ".join(_cell(side[key]) for side in kernel["sides"]) for key in columns.values()]
        rows.append(row + [kernel["verdict"]] * verified)
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip(), file=sys.stderr)


def _cell(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
