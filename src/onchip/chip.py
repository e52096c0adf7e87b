"""Chips: what a planner may assume about the machine. TOML files with the unit in every key's name.

A chip must state its alignment and native element type; everything else is optional, and whoever needs a
missing figure says so through `Chip.require`.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

from onchip.errors import ChipError
from onchip.files import read_bytes
from onchip.units import MAX_BYTES

__all__ = ["RATES", "Chip", "builtin_chips", "load_chip"]

ELEMENTS = {"int8": 1, "int16": 2, "float16": 2, "bfloat16": 2, "float32": 4}
"""Native element types a chip may state, with their bytes."""

MAX_ALIGNMENT = 1 << 20

RATES = (
    "dram_bytes_per_second",
    "dram_picojoules_per_byte",
    "macs_per_second",
    "scratchpad_bytes_per_second",
    "mac_picojoules",
    "scratchpad_picojoules_per_byte",
)
"""The keys for time and energy: positive numbers, all optional."""


@dataclass(frozen=True, slots=True)
class Chip:
    """One chip. Sizes in bytes, bandwidths in bytes per second, energies in picojoules.

    `macs_per_second` is what all its multipliers together sustain. `scratchpad_bytes_per_second` is the
    bandwidth between scratchpad and multipliers: what bounds an operator without multiplications.
    """

    name: str
    alignment_bytes: int
    element: str = "int8"
    description: str = ""
    scratchpad_bytes: int | None = None
    dram_bytes_per_second: float | None = None
    dram_picojoules_per_byte: float | None = None
    macs_per_second: float | None = None
    scratchpad_bytes_per_second: float | None = None
    mac_picojoules: float | None = None
    scratchpad_picojoules_per_byte: float | None = None
    weight_scratchpad_bytes: int | None = None

    def round_up(self, size: int) -> int:
        """`size` bytes as they count in the scratchpad: rounded up to the alignment."""
        return -(-size // self.alignment_bytes) * self.alignment_bytes

    def require(self, key: str, purpose: str) -> int | float:
        """The figure `key`; raises `ChipError` saying what it is needed for when the chip has none."""
        value: int | float | None = getattr(self, key)
        if value is None:
            raise ChipError(f"does not state {key}, which {purpose} needs", where=f"chip {self.name}")
        return value


def builtin_chips() -> tuple[Chip, ...]:
    """The chips that come with onchip, `generic` first."""
    folder = resources.files("onchip") / "chips"
    chips = [
        parse_chip(entry.read_bytes(), entry.name)
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    ]
    return tuple(sorted(chips, key=lambda c: (c.name != "generic", c.name)))


def load_chip(name_or_path: str | Path) -> Chip:
    """A built-in chip by name, or a user's own by the path of its TOML file.

    Raises `ChipError` naming the file and key for anything missing, unknown, of the wrong type or absurd.
    """
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text:
        return parse_chip(read_bytes(Path(text), error=ChipError), text)
    known = builtin_chips()
    for chip in known:
        if chip.name == text:
            return chip
    names = ", ".join(c.name for c in known)
    raise ChipError(f"no such chip; built in: {names}; or give the path of a .toml file", where=text)


def parse_chip(content: bytes, where: str) -> Chip:
    """The chip in a TOML file's bytes; `where` names the file in errors."""
    try:
        table: dict[str, Any] = tomllib.loads(content.decode("utf-8"))
    except RecursionError:
        raise ChipError("is not TOML of a chip (nested too deeply)", where=where) from None
    except ValueError as problem:  # no UTF-8, no TOML, or a number of thousands of digits
        raise ChipError(f"is not TOML ({str(problem)[:200]})", where=where) from None
    allowed = {f.name for f in fields(Chip)}
    for key in table:
        if key not in allowed:
            raise ChipError(f"unknown key; known: {', '.join(sorted(allowed))}", where=where, item=key)
    for key in ("name", "alignment_bytes", "element"):
        if key not in table:
            raise ChipError("is missing", where=where, item=key)
    for key in ("name", "element", "description"):
        if not isinstance(table.get(key, ""), str):
            raise ChipError("must be a string", where=where, item=key)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", table["name"]):
        raise ChipError("must be letters, digits, '.', '_' and '-'", where=where, item="name")
    if table["element"] not in ELEMENTS:
        raise ChipError(f"must be one of {', '.join(ELEMENTS)}", where=where, item="element")
    for key, most in (
        ("alignment_bytes", MAX_ALIGNMENT),
        ("scratchpad_bytes", MAX_BYTES),
        ("weight_scratchpad_bytes", MAX_BYTES),
    ):
        value = table.get(key)
        if value is not None and (type(value) is not int or not 1 <= value <= most):
            raise ChipError(f"must be a whole number from 1 to {most:,}", where=where, item=key)
    for key in RATES:
        value = table.get(key)
        if value is not None and (type(value) not in (int, float) or not 0 < value < 1e18):
            raise ChipError("must be a positive number", where=where, item=key)
    return Chip(**table)
