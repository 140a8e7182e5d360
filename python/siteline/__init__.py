"""The kernel author's line on every AMDGPU instruction, from inside the Python process.

    import siteline

    with siteline.capture(ir):            # every operation built here gets its call stack
        build_kernel()
    siteline.rewrite(module)              # every location becomes its site

`ir` is the `ir` module of any MLIR Python package whose library exports MLIR's C API. For
FlyDSL, `siteline.flydsl.enable()` does both for every kernel, and
`python -m siteline run script.py` does so without an edit of the script. Where no MLIR can be
reached, `siteline.refine(code_object)` works on what was compiled.

An operation must not be used by another thread while one of these functions works on it; work
on operations of different contexts may run side by side.
"""

from __future__ import annotations

import json as _json

from ._capture import CaptureReport, capture
from ._siteline import ProviderError, Settings, __version__
from ._siteline import Rewritten as Report
from ._siteline import provider
from ._siteline import refine as _refine
from ._siteline import report as _report
from ._siteline import restore as _restore
from ._siteline import rewrite as _rewrite
from ._siteline import scopes as _scopes
from ._siteline import waits as _waits

__all__ = [
    "CaptureReport",
    "ProviderError",
    "Report",
    "Settings",
    "__version__",
    "capture",
    "provider",
    "refine",
    "report",
    "restore",
    "rewrite",
    "scopes",
    "waits",
]


def _capsule(op):
    """The C API capsule of an operation, of an operation's view or of a module."""
    operation = getattr(op, "operation", op)
    try:
        return operation._CAPIPtr
    except AttributeError:
        raise TypeError(
            f"an operation or a module of an MLIR Python package is needed, not {type(op).__name__}"
        ) from None


def _settings(given, options):
    if given is None:
        return Settings(**options)
    if options:
        raise TypeError("give either settings or " + ", ".join(options) + ", not both")
    return given


def rewrite(op, settings=None, **options):
    """Sets the location of every operation at and below `op` to its site."""
    return _rewrite(_capsule(op), _settings(settings, options))


def restore(op):
    """Puts back the locations that `rewrite` replaced; returns how many operations changed."""
    return _restore(_capsule(op))


def scopes(op, settings=None, **options):
    """Makes the debug-info scopes of the LLVM-dialect functions at and below `op`, late in a
    pipeline; first gives a line to what lowering added without one, unless `infer=False`."""
    return _scopes(_capsule(op), _settings(settings, options))


def refine(content, settings=None, *, fill=False, **options):
    """A finished code object (or bundle, fat binary, MLIR with one in it) whose every line row
    shows its site; all that is loaded stays as it is."""
    return _refine(content, _settings(settings, options), fill=fill)


def waits(content, settings=None, **options):
    """What each wait of the kernels in a code object waits for; needs a disassembler."""
    return _json.loads(_waits(content, _settings(settings, options)))


def report(op, settings=None, **options):
    """The chains, sites and coverage of the device functions at and below `op`."""
    return _json.loads(_report(_capsule(op), _settings(settings, options)))
