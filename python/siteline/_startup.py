"""What `SITELINE=1` does when Python starts: FlyDSL and Triton are hooked when they are imported.

`SITELINE_OPTIONS` holds the settings, as `siteline run` hands them to child processes; without
it they are the defaults.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import warnings
from types import ModuleType

from . import flydsl, triton


def start() -> None:
    """Hooks the front ends with the settings of the environment."""
    try:
        options = json.loads(os.environ.get("SITELINE_OPTIONS", "{}"))
        folder = os.environ.get("SITELINE_RECORDS")
        observer = None
        if folder:
            from ._record import Recorder

            observer = Recorder(folder, options.pop("save", None), options.pop("verify", False))
        options.pop("save", None)
        options.pop("verify", None)
        for front_end in (flydsl, triton):
            front_end.when_imported(functools.partial(_enable, front_end, options, observer))
    except Exception as error:
        warnings.warn(f"siteline is off: {error}", RuntimeWarning)


def _enable(front_end: ModuleType, options: dict, observer: object) -> None:
    try:
        front_end.enable(observer=observer, **options)
    except Exception as error:
        print(f"siteline: error: {error}", file=sys.stderr)


start()
