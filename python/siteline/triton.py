"""Triton: the line table of every HIP code object rewritten when it is made.

    import siteline.triton
    siteline.triton.enable()        # before the first kernel is compiled, or at any time
    siteline.triton.disable()       # Triton as it was

Triton's library exports no MLIR C API, so that its IR cannot be reached; the chain of every
instruction is in the code object's debug information all the same. While enabled, Triton's own
stage hook refines each code object behind the last stage, and siteline's settings are part of
Triton's cache keys, so that what comes from the cache is refined as well, and nothing of it is
left when siteline is off. Stages of other back ends are not touched.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import threading
import warnings
from typing import Any, Callable

from . import Settings, _settings, refine
from ._imports import when_imported as _when_imported

__all__ = ["disable", "enable", "enabled"]

KNOBS = "triton.knobs"
# The stage that ends in a code object, in Triton's HIP back end only.
STAGE = "hsaco"

_lock = threading.RLock()
_active: "_Hook | None" = None


def enable(settings: Settings | None = None, *, observer: Any = None, **options: Any) -> bool:
    """Refines every HIP code object that Triton makes from now on.

    The settings are those of `siteline.rewrite`; with `infer`, instructions without a line of use
    get that of the instruction they serve. Enabling again replaces them. Returns whether Triton is
    hooked: False, with a warning, for a version without a stage hook. An observer's
    `refined(before, after)` is called with both code objects.
    """
    global _active
    settings = _settings(settings, options)
    with _lock:
        disable()
        knobs = importlib.import_module(KNOBS)
        if not hasattr(knobs.runtime, "add_stages_inspection_hook"):
            version = getattr(importlib.import_module("triton"), "__version__", "unknown")
            warnings.warn(
                f"siteline leaves Triton alone: version {version} has no "
                "knobs.runtime.add_stages_inspection_hook", RuntimeWarning, stacklevel=2)
            return False
        if os.environ.get("TRITON_DISABLE_LINE_INFO", "0").lower() in ("1", "true", "on", "yes"):
            warnings.warn(
                "TRITON_DISABLE_LINE_INFO is set: Triton's code objects have no lines to refine",
                RuntimeWarning, stacklevel=2)
        _active = _Hook(knobs.runtime, settings, observer)
        return True


def disable() -> None:
    """Makes Triton what it was before `enable`."""
    global _active
    with _lock:
        if _active is not None:
            _active.remove()
            _active = None


def enabled() -> bool:
    """Whether Triton is hooked."""
    return _active is not None


def when_imported(action: Callable[[], Any]) -> None:
    """Runs the action as soon as Triton is imported; now, where it is."""
    _when_imported(KNOBS, action)


class _Hook:
    """Triton's stage hook, around the one that was there before."""

    def __init__(self, runtime: Any, settings: Settings, observer: Any):
        self._runtime = runtime
        self._settings = settings
        self._observer = observer
        self._before = runtime.add_stages_inspection_hook
        runtime.add_stages_inspection_hook = self._hook = self._inspect

    def remove(self) -> None:
        # A hook that somebody set meanwhile holds this one, which then does nothing.
        if self._runtime.add_stages_inspection_hook == self._hook:
            self._runtime.add_stages_inspection_hook = self._before
        self._settings = None

    def _inspect(self, *given: Any) -> Any:
        """Without arguments, what the hook adds to cache keys; else the stages are changed."""
        if given:
            if self._before is not None:
                self._before(*given)
            if self._settings is not None:
                self._add(given[1])
            return None
        key, digest = self._before() if self._before is not None else ("", "")
        if self._settings is None:
            return key, digest
        key += repr(self._settings)
        # Triton writes the digest into a key that it reads back as Python.
        return key, repr(hashlib.sha256(f"{key}{digest}".encode()).hexdigest())

    def _add(self, stages: dict) -> None:
        last = stages.get(STAGE)
        if last is None:
            return
        settings, observer = self._settings, self._observer

        def refined(source: Any, metadata: Any) -> bytes:
            before = last(source, metadata)
            try:
                after = refine(before, settings, fill=settings.infer)
                if observer is not None:
                    observer.refined(before, after)
                return after
            except Exception as error:
                warnings.warn(f"siteline did not refine a kernel: {error}", RuntimeWarning)
                return before

        stages[STAGE] = refined
