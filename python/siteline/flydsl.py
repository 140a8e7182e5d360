"""FlyDSL: every kernel captured and rewritten after its frontend IR is built.

    import siteline.flydsl
    siteline.flydsl.enable()        # before the first kernel is compiled, or at any time
    siteline.flydsl.disable()       # FlyDSL as it was

While enabled, debug information is on, and siteline's settings are part of FlyDSL's cache keys,
so that one cache folder serves both modes. What is hooked are functions of FlyDSL's own, known
in versions 0.1.8 to 0.5.0; where a version lacks one, `enable` warns with its name and leaves
compilation alone.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import sys
import threading
import warnings
from contextlib import contextmanager
from typing import Any, Callable

from . import Settings, _settings, refine, rewrite, scopes
from ._capture import capture
from ._imports import when_imported as _when_imported

__all__ = ["disable", "enable", "enabled"]

DEBUG_INFO = "FLYDSL_DEBUG_ENABLE_DEBUG_INFO"
COMPILER = "flydsl.compiler.jit_function"

# FlyDSL's own scope pass, before which siteline's scopes are made.
SCOPE_PASS = "ensure-debug-info-scope-on-llvm-func"

_lock = threading.RLock()
# Parts of FlyDSL's tracing state belong to the process, so that threads have to take turns.
_tracing_turn = threading.RLock()
_tracing = threading.local()
_lowering = threading.local()
_active: "_Adapter | None" = None


class UnknownVersion(RuntimeError):
    """This FlyDSL lacks functions that siteline hooks."""


def enable(settings: Settings | None = None, *, observer: Any = None, **options: Any) -> bool:
    """Captures and rewrites every kernel that FlyDSL compiles from now on.

    The settings are those of `siteline.rewrite`. Enabling again replaces them. Returns whether
    FlyDSL is hooked: False, with a warning, for a version that siteline does not know. An
    observer's `rewriting(module)`, `rewritten(module, compile)` and `compiled(module)` are
    called around the work.
    """
    global _active
    settings = _settings(settings, options)
    with _lock:
        disable()
        adapter = _Adapter(settings, observer)
        try:
            adapter.install()
        except (UnknownVersion, ImportError) as error:
            adapter.remove()
            warnings.warn(f"siteline leaves FlyDSL alone: {error}", RuntimeWarning, stacklevel=2)
            return False
        _active = adapter
        return True


def disable() -> None:
    """Makes FlyDSL what it was before `enable`."""
    global _active
    with _lock:
        if _active is not None:
            _active.remove()
            _active = None


def enabled() -> bool:
    """Whether FlyDSL is hooked."""
    return _active is not None


def when_imported(action: Callable[[], Any]) -> None:
    """Runs the action as soon as FlyDSL's compiler is imported; now, where it is."""
    _when_imported(COMPILER, action)


@contextmanager
def without_debug_info():
    """Turns FlyDSL's debug information off for this thread's compilations in the block.

    Other threads compile on with it: what they compile meanwhile goes into the cache.
    """
    before = getattr(_lowering, "without_debug_info", False)
    _lowering.without_debug_info = True
    try:
        yield
    finally:
        _lowering.without_debug_info = before


@contextmanager
def as_shipped():
    """Compiles a module in the block as FlyDSL alone would: no scopes, no filled lines."""
    before = getattr(_lowering, "as_shipped", False)
    _lowering.as_shipped = True
    try:
        yield
    finally:
        _lowering.as_shipped = before


class _DebugInfo:
    """FlyDSL's option for debug information, off in threads that ask for it."""

    def __init__(self, original: Any):
        self._original = original

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        if owner is None:
            return self
        off = getattr(_lowering, "without_debug_info", False)
        return False if off else self._original.__get__(owner, kind)


class _Adapter:
    """The hooks in one FlyDSL, and what they replaced."""

    def __init__(self, settings: Settings, observer: Any):
        self._settings = settings
        # Lines of the finished object stay as they are, but for those that show no author's code.
        self._fill = Settings(policy="innermost", library=settings.library)
        self._observer = observer
        self._replaced: list[tuple[Any, str, Any]] = []
        self._debug_info: str | None = None
        self._installed = False

    def install(self) -> None:
        self._jit = importlib.import_module(COMPILER)
        self._kernel = importlib.import_module("flydsl.compiler.kernel_function")
        self._meta = importlib.import_module("flydsl.expr.meta")
        self._ir = importlib.import_module("flydsl._mlir.ir")
        self._check()
        self._hook(self._kernel.CompilationContext, "create", self._create)
        self._hook(self._kernel, "create_gpu_func", self._create_gpu_func)
        self._hook_compiler()
        self._hook(self._jit, "_run_pipeline", self._lower)
        self._hook(type(self._jit.env.debug), "enable_debug_info", _DebugInfo)
        self._hook_keys()
        self._hook_own_capture()
        self._debug_info = os.environ.get(DEBUG_INFO)
        os.environ[DEBUG_INFO] = "1"
        self._installed = True

    def remove(self) -> None:
        for owner, name, original in reversed(self._replaced):
            setattr(owner, name, original)
        self._replaced.clear()
        if self._installed:
            self._installed = False
            if self._debug_info is None:
                os.environ.pop(DEBUG_INFO, None)
            else:
                os.environ[DEBUG_INFO] = self._debug_info

    def _check(self) -> None:
        compiler = getattr(self._jit, "MlirCompiler", None)
        context = getattr(self._kernel, "CompilationContext", None)
        missing = []
        if not hasattr(compiler, "compile"):
            missing.append("jit_function.MlirCompiler.compile")
        if not hasattr(context, "create"):
            missing.append("kernel_function.CompilationContext.create")
        if not hasattr(self._jit, "_run_pipeline"):
            missing.append("jit_function._run_pipeline")
        if not hasattr(self._kernel, "create_gpu_func"):
            missing.append("kernel_function.create_gpu_func")
        debug = type(getattr(getattr(self._jit, "env", None), "debug", None))
        if "enable_debug_info" not in vars(debug):
            missing.append("env.debug.enable_debug_info")
        by_module = hasattr(self._jit, "_artifact_cache_key") and hasattr(compiler, "prepare")
        by_arguments = hasattr(getattr(self._jit, "JitFunction", None), "_make_cache_key")
        if not by_module and not by_arguments:
            missing.append("a cache key that siteline knows (jit_function._artifact_cache_key)")
        if missing:
            version = getattr(importlib.import_module("flydsl"), "__version__", "unknown")
            raise UnknownVersion(f"version {version} has no " + ", no ".join(missing))

    def _hook(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        self._replaced.append((owner, name, vars(owner)[name]))
        setattr(owner, name, make(getattr(owner, name)))

    def _create(self, original: Any) -> Any:
        """Captures what is traced inside a compilation context."""

        @contextmanager
        def create(cls: Any, *args: Any, **kwargs: Any) -> Any:
            before = getattr(_tracing, "on", False)
            with _tracing_turn, capture(self._ir), original(*args, **kwargs) as context:
                _tracing.on = True
                try:
                    yield context
                finally:
                    _tracing.on = before

        return classmethod(create)

    def _create_gpu_func(self, original: Any) -> Any:
        """Keeps the kernel's own line, which is no call stack, on the kernel's function."""

        @functools.wraps(original)
        def create_gpu_func(*args: Any, **kwargs: Any) -> Any:
            function = original(*args, **kwargs)
            location = kwargs.get("loc") or self._ir.Location.current
            function.operation.location = location
            return function

        return create_gpu_func

    def _hook_compiler(self) -> None:
        compiler = self._jit.MlirCompiler
        prepares = hasattr(compiler, "prepare")
        if prepares:
            self._hook(compiler, "prepare", self._before_lowering)
        self._hook(compiler, "compile", self._after_lowering if prepares else self._around)

    def _before_lowering(self, original: Any) -> Any:
        """For versions that render the module, with its key, before they compile the text."""

        def prepare(cls: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
            def again(other: Any) -> Any:
                text, config = original(other, *args, **kwargs)
                return compile_(cls, text, func_name="siteline", config=config)

            compile_ = next(o for _, name, o in self._replaced if name == "compile").__func__
            self._rewrite(module, again)
            return original(module, *args, **kwargs)

        return classmethod(prepare)

    def _after_lowering(self, original: Any) -> Any:
        def compile(cls: Any, *args: Any, **kwargs: Any) -> Any:
            return self._observed(original(*args, **kwargs))

        return classmethod(compile)

    def _around(self, original: Any) -> Any:
        """For versions that compile the module that was traced."""

        def compile(cls: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
            self._rewrite(module, lambda other: original(other, *args, **kwargs))
            return self._observed(original(module, *args, **kwargs))

        return classmethod(compile)

    def _lower(self, original: Any) -> Any:
        """Lowering with debug information: scopes before FlyDSL's own, and lines for the
        instructions of the finished object that LLVM left without."""

        @functools.wraps(original)
        def run(module: Any, fragments: list, *args: Any, **kwargs: Any) -> None:
            at = next((i for i, text in enumerate(fragments) if text.startswith(SCOPE_PASS)), None)
            if at is None or getattr(_lowering, "as_shipped", False):
                return original(module, fragments, *args, **kwargs)
            original(module, fragments[:at], *args, **kwargs)
            self._try("make the scopes of", lambda: scopes(module, self._settings))
            original(module, fragments[at:], *args, **kwargs)
            if self._settings.infer:
                self._try("fill the lines of", lambda: self._refine(module))

        return run

    def _refine(self, module: Any) -> None:
        gpu = importlib.import_module("flydsl._mlir.dialects.gpu")
        for op in module.body.operations:
            if op.operation.name != "gpu.binary":
                continue
            with op.operation.context:
                refined = [
                    gpu.ObjectAttr.get(
                        object_.target, object_.format, refine(object_.object, self._fill, fill=True),
                        object_.properties, object_.kernels)
                    for object_ in map(gpu.ObjectAttr, op.operation.attributes["objects"])
                ]
                op.operation.attributes["objects"] = self._ir.ArrayAttr.get(refined)

    def _try(self, what: str, work: Callable[[], Any]) -> None:
        """What goes wrong in siteline never stops the user's compilation."""
        try:
            work()
        except Exception as error:
            warnings.warn(f"siteline did not {what} a kernel: {error}", RuntimeWarning)

    def _rewrite(self, module: Any, again: Callable[[Any], Any]) -> None:
        def work() -> None:
            if self._observer is not None:
                self._observer.rewriting(module)
            rewrite(module, self._settings)
            if self._observer is not None:
                self._observer.rewritten(module, again)

        self._try("rewrite", work)

    def _observed(self, module: Any) -> Any:
        if self._observer is not None:
            self._try("record", lambda: self._observer.compiled(module))
        return module

    def _hook_keys(self) -> None:
        mark = repr(self._settings)
        if hasattr(self._jit, "_artifact_cache_key"):
            def of_module(original: Any) -> Any:
                @functools.wraps(original)
                def key(*args: Any, **kwargs: Any) -> str:
                    text = f"{original(*args, **kwargs)}\n{mark}"
                    return hashlib.sha256(text.encode()).hexdigest()
                return key
            self._hook(self._jit, "_artifact_cache_key", of_module)
        else:
            def of_arguments(original: Any) -> Any:
                @functools.wraps(original)
                def key(function: Any, *args: Any, **kwargs: Any) -> tuple:
                    return original(function, *args, **kwargs) + (("_siteline_", mark),)
                return key
            self._hook(self._jit.JitFunction, "_make_cache_key", of_arguments)

    def _hook_own_capture(self) -> None:
        """FlyDSL's own look at the call stack is slow, and replaced by the captured one."""
        unknown = self._ir.Location.unknown

        def none_while_tracing(original: Any) -> Any:
            @functools.wraps(original)
            def location(*args: Any, **kwargs: Any) -> Any:
                return unknown() if getattr(_tracing, "on", False) else original(*args, **kwargs)
            return location

        for name in ("capture_user_location", "_caller_location"):
            original = getattr(self._meta, name, None)
            if original is None:
                continue
            for module in list(sys.modules.values()):
                if getattr(module, "__name__", "").startswith("flydsl.expr"):
                    if vars(module).get(name) is original:
                        self._hook(module, name, none_while_tracing)
