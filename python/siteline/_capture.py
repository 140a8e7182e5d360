"""Call stacks as locations, through the MLIR bindings' own `loc_tracebacks` settings."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Iterator

# The bindings' own limit on the depth of a call stack.
UNLIMITED = 512

_lock = threading.Lock()
_open: dict[int, "_Open"] = {}


@dataclass(frozen=True)
class CaptureReport:
    """What a binding's capture does, and what it cannot do."""

    binding: str
    """The binding, such as `flydsl._mlir.ir`."""
    enabled: bool
    """Whether operations get their call stacks."""
    overrides_explicit: bool
    """Whether locations that are given with `loc=` are replaced by the call stack."""
    limits: tuple[str, ...]
    """What the binding cannot do, in words."""


@dataclass
class _Open:
    """The settings that an open capture replaced, and how often it is open."""

    count: int
    report: CaptureReport
    saved: list[tuple[Any, Any]] = field(default_factory=list)


def bindings() -> list[ModuleType]:
    """The `ir` modules of all MLIR Python packages that are imported."""
    found = []
    for name, module in list(sys.modules.items()):
        if name.endswith(".ir") and hasattr(module, "_globals") and hasattr(module, "Operation"):
            found.append(module)
    return found


@contextmanager
def capture(*given: ModuleType) -> Iterator[list[CaptureReport]]:
    """Gives every operation that is built in the block its whole Python call stack as location.

    The arguments are `ir` modules of MLIR Python packages; without any, those of all that are
    imported. Where the binding can, locations given with `loc=` are replaced too. The depth is
    unlimited. Afterwards the settings are what they were. They belong to the process: what other
    threads build meanwhile is captured as well, and captures may overlap.

    Yields one `CaptureReport` for each binding.
    """
    chosen = given or bindings()
    reports = []
    opened = []
    try:
        for ir in chosen:
            reports.append(_enter(ir))
            opened.append(ir)
        yield reports
    finally:
        for ir in reversed(opened):
            _leave(ir)


def _enter(ir: ModuleType) -> CaptureReport:
    with _lock:
        state = _open.get(id(ir._globals))
        if state is None:
            state = _open[id(ir._globals)] = _turn_on(ir)
        state.count += 1
        return state.report


def _leave(ir: ModuleType) -> None:
    with _lock:
        state = _open[id(ir._globals)]
        state.count -= 1
        if state.count == 0:
            del _open[id(ir._globals)]
            for setter, value in reversed(state.saved):
                setter(value)


def _turn_on(ir: ModuleType) -> _Open:
    globals_, limits, saved = ir._globals, [], []

    def replace(getter: str, setter: str, value: Any) -> None:
        old = getattr(globals_, getter)()
        getattr(globals_, setter)(value)
        saved.append((getattr(globals_, setter), old))

    enabled = hasattr(globals_, "set_loc_tracebacks_enabled")
    explicit = enabled and hasattr(globals_, "set_traceback_action_on_explicit_loc")
    if enabled:
        replace("loc_tracebacks_frame_limit", "set_loc_tracebacks_frame_limit", UNLIMITED)
        if explicit:
            replace(
                "traceback_action_on_explicit_loc",
                "set_traceback_action_on_explicit_loc",
                ir.OnExplicitAction.USE_TRACEBACK,
            )
        replace("loc_tracebacks_enabled", "set_loc_tracebacks_enabled", True)
    else:
        limits.append("it has no loc_tracebacks: no call stack is captured")
    if enabled and not explicit:
        limits.append("locations that are given with loc= stay")
    return _Open(0, CaptureReport(ir.__name__, enabled, explicit, tuple(limits)), saved)
