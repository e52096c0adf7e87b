"""Plans as files: JSON for `.json`, the text form for everything else.

JSON is read in `json.py`, text in `text_reading.py`.
"""

from __future__ import annotations

from pathlib import Path

from onchip.base.errors import PlanFormatError
from onchip.base.files import read_bytes, write_atomically
from onchip.plans.file_limits import FORMAT, NESTS
from onchip.plans.json import from_json, to_json
from onchip.plans.program import Plan
from onchip.plans.text_writing import from_text, to_text

__all__ = ["FORMAT", "NESTS", "read_plan", "write_plan"]


MODELS = (".onnx", ".pt2", ".tflite")
"""The ends of names of models, which are no plans whatever is in them."""


def read_plan(path: Path | str) -> Plan:
    """Return the plan in a file of either form, told apart by its first character.

    Raises `PlanFormatError` naming the file and the key or line.
    """
    if Path(path).suffix.lower() in MODELS and Path(path).is_file():
        raise PlanFormatError(
            "is a model, and a plan is needed: `onchip plan` makes one, with -o plan.json", where=str(path)
        )
    content = read_bytes(Path(path), error=PlanFormatError)
    if content.lstrip()[:1] == b"{":
        return from_json(content, where=str(path))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise PlanFormatError("is neither JSON nor text", where=str(path)) from None
    return from_text(text, where=str(path))


def write_plan(plan: Plan, path: Path | str) -> None:
    """Write the plan atomically: as JSON if the name ends in `.json`, else as text."""
    path = Path(path)
    write_atomically(path, to_json(plan) if path.suffix == ".json" else to_text(plan))
