"""What `SITELINE=1` does when Python starts: FlyDSL is hooked as soon as it is imported.

`SITELINE_OPTIONS` holds the settings, as `siteline run` hands them to child processes; without
it they are the defaults.
"""

from __future__ import annotations

import json
import os
import sys
import warnings

from . import flydsl


def start() -> None:
    """Hooks FlyDSL with the settings of the environment."""
    try:
        options = json.loads(os.environ.get("SITELINE_OPTIONS", "{}"))
        folder = os.environ.get("SITELINE_RECORDS")
        observer = None
        if folder:
            from ._record import Recorder

            observer = Recorder(folder, options.pop("save", None), options.pop("verify", False))
        options.pop("save", None)
        options.pop("verify", None)
        flydsl.when_imported(lambda: _enable(options, observer))
    except Exception as error:
        warnings.warn(f"siteline is off: {error}", RuntimeWarning)


def _enable(options: dict, observer: object) -> None:
    try:
        flydsl.enable(observer=observer, **options)
    except Exception as error:
        print(f"siteline: error: {error}", file=sys.stderr)


start()
