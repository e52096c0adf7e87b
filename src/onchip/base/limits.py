"""The limits of what is read: larger input is a mistake, or an attempt to fill the memory.

Each limit has a default far beyond any real file, and an environment variable to raise it, or to lower it for
files from strangers: `ONCHIP_MAX_OPERATORS=2000 onchip plan ...`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields

from onchip.base.errors import UsageError
from onchip.base.units import MAX_BYTES, parse_bytes

__all__ = ["VARIABLE", "Limits", "limits"]

VARIABLE = "ONCHIP_MAX_"
"""The prefix of the environment variables; the field's name in capitals follows."""


@dataclass(frozen=True)
class Limits:
    """The fields are the limits; a size may be written as `64MiB`."""

    model_bytes: int = 4 << 30
    """Of a model file, weights and all (more of them belong in ONNX's external data)."""

    text_bytes: int = 256 << 20
    """Of a file of words: a plan, a schedule, a network as JSON, a profile, CSV, a chip."""

    toml_bytes: int = 1 << 20
    """Of a TOML file: a chip, a board, a SoC, a sweep's spec."""

    reading_bytes: int = 1536 << 20
    """Of memory that reading a file of 10 MB may take; a larger one may take eight times its size more."""

    reading_seconds: int = 15
    """Of processor time that reading a file of 10 MB may take; a larger one, in proportion."""

    operators: int = 50_000
    """Of a network; nodes of an ONNX file are four times as many."""

    tensors: int = 200_000
    """Of a network."""

    tensor_bytes: int = MAX_BYTES
    """Of one tensor, and of one operator's weights."""


def limits() -> Limits:
    """Return the limits in force; raises `UsageError` naming a variable that is no number, or below 1."""
    given = {}
    for f in fields(Limits):
        name = VARIABLE + f.name.upper()
        text = os.environ.get(name, "")
        if not text:
            continue
        if f.name.endswith("bytes"):
            value = parse_bytes(text, option=name)
        elif text.isascii() and text.isdigit() and len(text) < 10:
            value = int(text)
        else:
            raise UsageError(f"{text[:40]!r} is not a whole number below a billion", item=name)
        if value < 1:
            raise UsageError(f"{text[:40]!r} is below 1", item=name)
        given[f.name] = value
    return Limits(**given)
