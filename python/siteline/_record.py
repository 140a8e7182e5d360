"""What `siteline run` keeps of each kernel: its IR, its code object, and a report."""

from __future__ import annotations

import functools
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
        state.again = None
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
        if getattr(state, "verifying", False) or getattr(state, "again", None) is None:
            return
        text = module.operation.get_asm().encode()
        kernels = json.loads(measure("module", text, Settings()))
        compiled = functools.partial(_compiled, type(module), state.again)
        verdict = None
        state.verifying = True
        try:
            with as_shipped():
                unsited = compiled(state.before)
            before = {kernel["name"]: kernel for kernel in json.loads(measure("module", unsited, Settings()))}
            if self._verify:
                verdict = verdict_of(
                    without=lambda: _without_debug_info(compiled, state.plain),
                    sites=lambda: _without_debug_info(compiled, state.after),
                    debug=lambda: objects(compiled(state.after)),
                    made=objects(text),
                    shipped=objects(unsited),
                )
        finally:
            state.verifying = False
        self._record(before, kernels, verdict)
        if self._save:
            code = {f"object{at or ''}.hsaco": code for at, code in enumerate(objects(text))}
            texts = {"before.mlir": state.before.encode(), "after.mlir": state.after.encode()}
            self._keep(kernels, texts | code, state.report)
        state.again = None

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


def _compiled(module_type: Any, again: Callable[[Any], Any], text: str) -> bytes:
    """The text of the lowered module, which holds the code objects."""
    return again(module_type.parse(text)).operation.get_asm().encode()


def _without_debug_info(compiled: Callable[[str], bytes], text: str) -> list[bytes]:
    from .flydsl import without_debug_info

    with without_debug_info():
        return objects(compiled(text))


Leg = Callable[[], list[bytes]]


def verdict_of(
    without: Leg, sites: Leg, debug: Leg, made: list[bytes], shipped: list[bytes]
) -> str:
    """Whether sites changed machine code, in words.

    The legs compile the kernel anew: debug off without and with sites, whose code objects must be
    equal, and debug on with sites, as the code objects `made` are, which must be equal in what is
    loaded. A difference is believed only when neither side differs from itself in control legs.
    `shipped` are the code objects with debug on and without sites: where they differ as well, it
    is not siteline's doing.
    """
    first = without()
    for leg, loaded in ((sites, False), (debug, True)):
        other = made if loaded else leg()
        difference = _difference(first, other, loaded)
        if difference is None:
            continue
        counts = [_results(side, again, loaded) for side, again in ((first, without), (other, leg))]
        if max(counts) > 1:
            return "nondeterministic compiler: {} and {} results in {} compilations each".format(
                *counts, CONTROL_LEGS + 1)
        if not loaded:
            return f"different with sites: {difference}"
        by_flag = _difference(first, shipped, loaded) is not None
        return f"different with {'-g, also without sites' if by_flag else '-g and sites'}: {difference}"
    return "identical"


def _difference(one: list[bytes], other: list[bytes], loaded: bool) -> str | None:
    """The first difference of two sets of code objects; None when there is none."""
    if len(one) != len(other):
        return f"{len(one)} code objects against {len(other)}"
    differences = (compare(a, b, loaded=loaded) for a, b in zip(one, other))
    return next((difference for difference in differences if difference is not None), None)


def _results(first: list[bytes], again: Leg, loaded: bool) -> int:
    """How many different results a leg has in control legs, the first result among them."""
    found = [first]
    for _ in range(CONTROL_LEGS):
        result = again()
        if all(_difference(known, result, loaded) is not None for known in found):
            found.append(result)
    return len(found)
