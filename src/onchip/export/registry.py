"""The module of each format, and the one function that calls it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from onchip.base.errors import UsageError
from onchip.check import check
from onchip.plans import Plan

__all__ = ["FORMATS", "export"]

FORMATS = {
    "minimalloc": "onchip.export.minimalloc",
    "tflm": "onchip.export.tflm",
    "c": "onchip.export.c_header",
    "json": "onchip.export.json_table",
    "executorch": "onchip.export.executorch",
    "trace": "onchip.export.trace",
    "loops": "onchip.export.loops.json_loops",
    "program": "onchip.export.loops.c_program",
    "constants": "onchip.export.loops.constants",
    "threads": "onchip.export.threads.c_threads",
    "threads-constants": "onchip.export.threads.constants",
}
"""The module of each format. It has `write(plan, model) -> str | bytes`; `model` is the model file where it
is now, or None for the plan's path; `_READS_MODEL` read it."""

_EACH_ONCE = frozenset({"tflm", "executorch"})
"""The formats of runtimes that run the operators of a file, each once."""

_READS_MODEL = frozenset({"tflm", "loops", "program", "constants", "threads", "threads-constants"})


def export(plan: Plan, to: str, *, model: str | Path | None = None) -> bytes:
    """Return the plan in another format (a name in `FORMATS`), as the bytes of a file.

    Raises `IllegalPlan` when the plan is illegal, `UsageError` for an unknown format and for a plan that the
    format cannot express, `InputError` when the model that a format needs is missing or changed.
    """
    if to not in FORMATS:
        raise UsageError(f"{to!r} is none of {', '.join(FORMATS)}", item="--to")
    if model is not None and to not in _READS_MODEL:
        raise UsageError(f"the format {to} reads no model", item="--model")
    check(plan)
    again = next((op.name for op in plan.network.operators if op.repeats is not None), None)
    if again and to in _EACH_ONCE:
        raise UsageError(
            f"runs again in this plan, and {to} runs every operator once", item=f"operator {again}"
        )
    written: str | bytes = import_module(FORMATS[to]).write(plan, model)
    return written.encode() if isinstance(written, str) else written
