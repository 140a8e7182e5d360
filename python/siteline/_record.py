"""What `siteline run` keeps of each kernel: its IR, its code object, and a report."""

from __future__ import annotations

import json
import os
import re
import threading
import time
from pathlib import Path
from typing import Any, Callable

from . import Settings, report
from ._siteline import compare, measure, objects

CONTROL_LEGS = 8


class Recorder:
    """Observes compilations of FlyDSL and Triton and writes one record for each kernel.

    Records go to a folder that all processes of a run share.
    """

    def __init__(self, folder: str, save: str | None, verify: bool):
        self._folder = Path(folder)
        self._save = Path(save) if save else None
        self._verify = verify
        self._thread = threading.local()

    def rewriting(self, module: Any) -> None:
        """The module as it was captured, before its locations are rewritten."""
        state = self._thread
        if getattr(state, "verifying", False):
            return
        state.before = _text(module)
        state.plain = module.operation.get_asm(enable_debug_info=False) if self._verify else None

    def rewritten(self, module: Any, again: Callable[[Any], Any]) -> None:
        """The module with its sites."""
        state = self._thread
        if getattr(state, "verifying", False):
            return
        state.after = _text(module) if self._save or self._verify else None
        state.report = report(module) if self._save else None
        state.again = again

    def compiled(self, module: Any) -> None:
        """The module with its code objects."""
        from .flydsl import as_shipped

        state = self._thread
        if getattr(state, "verifying", False) or not hasattr(state, "again"):
            return
        text = module.operation.get_asm().encode()
        kernels = json.loads(measure("module", text, Settings()))
        verdict = None
        state.verifying = True
        try:
            with as_shipped():
                unsited = state.again(type(module).parse(state.before)).operation.get_asm().encode()
            before = {kernel["name"]: kernel for kernel in json.loads(measure("module", unsited, Settings()))}
            if self._verify:
                verdict = _verify(module, text, state.plain, state.after, state.again)
        finally:
            state.verifying = False
        self._record(before, kernels, verdict)
        if self._save:
            code = {f"object{at or ''}.hsaco": code for at, code in enumerate(objects(text))}
            texts = {"before.mlir": state.before.encode(), "after.mlir": state.after.encode()}
            self._keep(kernels, texts | code, state.report)
        del state.again

    def refined(self, before: bytes, after: bytes) -> None:
        """A finished code object, as it was and with its sites."""
        measured = [json.loads(measure("object", code, Settings())) for code in (before, after)]
        difference = compare(before, after, loaded=True)
        verdict = "identical" if difference is None else f"different: {difference}"
        self._record({kernel["name"]: kernel for kernel in measured[0]}, measured[1], verdict)
        if self._save:
            self._keep(measured[1], {"before.hsaco": before, "object.hsaco": after}, None)

    def _record(self, before: dict[str, dict], kernels: list[dict], verdict: str | None) -> None:
        for kernel in kernels:
            sides = [_measures(side) for side in (before.get(kernel["name"]), kernel)]
            self._write({"kernel": kernel["name"], "chip": kernel["chip"], "sides": sides, "verdict": verdict})

    def _write(self, record: dict) -> None:
        name = f"{time.time_ns()}-{os.getpid()}-{threading.get_ident()}"
        partial = self._folder / f"{name}.partial"
        partial.write_text(json.dumps(record))
        partial.rename(self._folder / f"{name}.json")

    def _keep(self, kernels: list[dict], files: dict[str, bytes], ir: dict | None) -> None:
        name = "+".join(kernel["name"] for kernel in kernels) or "module"
        folder = _new_folder(self._save, re.sub(r"[^\w.+-]", "_", name)[:100])
        for file, content in files.items():
            (folder / file).write_bytes(content)
        (folder / "report.json").write_text(json.dumps({"ir": ir, "kernels": kernels}, indent=2) + "\n")


def _measures(kernel: dict | None) -> dict:
    """What the table shows of one side of a kernel; None where it is not known."""
    if kernel is None:
        return dict.fromkeys(("instructions", "lines", "effective_lines", "definition_line", "mfma_lines"))
    mfma = len(kernel["class_lines"].get("mfma", {})) if kernel["disassembler"] else None
    plain = {name: kernel[name] for name in ("instructions", "lines", "effective_lines", "definition_line")}
    return plain | {"mfma_lines": mfma}


def _text(module: Any) -> str:
    return module.operation.get_asm(enable_debug_info=True)


def _new_folder(root: Path, name: str) -> Path:
    """A folder of that name below the root; where there is one, with a number behind it."""
    number = 0
    while True:
        folder = root / (f"{name}-{number}" if number else name)
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            number += 1


def _verify(
    module: Any, compiled: bytes, plain: str, after: str, again: Callable[[Any], Any]
) -> str:
    """Compiles the kernel again with debug off, with and without sites, and compares.

    A difference is believed only when neither side differs from itself in control legs.
    """

    def leg(text: str) -> bytes:
        return _compiled_without_debug(type(module), text, again)

    with_debug = objects(compiled)[0]
    without, sites = leg(plain), leg(after)
    for other, loaded in ((sites, False), (with_debug, True)):
        difference = compare(without, other, loaded=loaded)
        if difference is None:
            continue
        repeated = plain, (plain if loaded else after)
        results = [{leg(text) for _ in range(CONTROL_LEGS)} for text in repeated]
        if any(len(found) > 1 for found in results) or without not in results[0]:
            return "nondeterministic compiler"
        return f"different: {difference}" + (" (debug on and off)" if loaded else "")
    return "identical"


def _compiled_without_debug(module_type: Any, text: str, again: Callable[[Any], Any]) -> bytes:
    from .flydsl import without_debug_info

    with without_debug_info():
        lowered = again(module_type.parse(text))
    return objects(lowered.operation.get_asm().encode())[0]
