"""Waiting for the import of a front end."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, Callable


def when_imported(module: str, action: Callable[[], Any]) -> None:
    """Runs the action as soon as the module is imported; now, where it is."""
    if module in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Finder(module, action))


class _Finder:
    """Finds the module as Python would, and acts when it was loaded."""

    def __init__(self, module: str, action: Callable[[], Any]):
        self._module = module
        self._action = action

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self._module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                load(module)
                self._action()

            spec.loader.exec_module = exec_module
        return spec
