"""One of a chip's several on-chip memories, and the `[[memory]]` tables that describe them in its file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from onchip.base.errors import ChipError
from onchip.base.units import MAX_BYTES

__all__ = ["MAX_MEMORIES", "Memory", "parse_memories"]

MAX_MEMORIES = 64
"""The most memories of one chip, every bank counted."""

_KEYS: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "bytes": int,
    "bytes_per_second": (int, float),
    "picojoules_per_byte": (int, float),
    "operands": bool,
    "banks": int,
    "interleaved": bool,
}


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory on chip: its `bytes`, its rate of reading and writing, and the cost of each byte.

    Where `operands` is False no operator reads or writes it: its content has to be moved first. A rate
    that is None is that of the chip's scratchpad.
    """

    name: str
    bytes: int
    operands: bool = True
    bytes_per_second: float | None = None
    picojoules_per_byte: float | None = None


def parse_memories(tables: Any, where: str) -> tuple[Memory, ...]:
    """Return the memories of a chip's file; `banks` banks of one are `NAME0`, `NAME1` and so on.

    A tensor lies within one bank; banks that are `interleaved` are one memory. Raises `ChipError` naming the
    file and the key.
    """
    if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) for t in tables):
        raise ChipError("must be tables: [[memory]]", where=where, item="memory")
    found: list[Memory] = []
    for number, table in enumerate(tables, 1):
        found += _banks(table, f"memory {number}", where)
    names = [m.name for m in found]
    for name in names:
        if names.count(name) > 1:
            raise ChipError(f"{name} is the name of two memories", where=where, item="memory")
    if len(found) > MAX_MEMORIES:
        raise ChipError(f"are {len(found)}, more than {MAX_MEMORIES}", where=where, item="memory")
    if sum(m.bytes for m in found) > MAX_BYTES:
        raise ChipError("have more than 1 TiB in all", where=where, item="memory")
    if not any(m.operands for m in found):
        raise ChipError("none of them holds operands", where=where, item="memory")
    return tuple(found)


def _banks(table: dict[str, Any], item: str, where: str) -> list[Memory]:
    def refuse(key: str, reason: str) -> ChipError:
        return ChipError(reason, where=where, item=f"{item} {key}")

    for key, value in table.items():
        if key not in _KEYS:
            raise refuse(key[:60], f"unknown key; there are {', '.join(_KEYS)}")
        kinds = _KEYS[key]
        if not isinstance(value, kinds) or (type(value) is bool and kinds is not bool):
            raise refuse(key, "has the wrong type")
    for key in ("name", "bytes"):
        if key not in table:
            raise refuse(key, "is missing")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,31}", table["name"]):
        raise refuse("name", "must be a letter and then letters, digits, '_' and '-'")
    banks, size = table.get("banks", 1), table["bytes"]
    if not 1 <= banks <= MAX_MEMORIES:
        raise refuse("banks", f"must be from 1 to {MAX_MEMORIES}")
    if not 1 <= size <= MAX_BYTES or size % banks:
        raise refuse("bytes", "must be a whole number from 1 to 1 TiB, and a multiple of the banks")
    if "interleaved" in table and banks == 1:
        raise refuse("interleaved", "means nothing without banks")
    for key in ("bytes_per_second", "picojoules_per_byte"):
        if key in table and not 0 < table[key] < 1e18:
            raise refuse(key, "must be a positive number")
    split = 1 if table.get("interleaved", False) else banks
    return [
        Memory(
            table["name"] if split == 1 else f"{table['name']}{bank}",
            size // split,
            table.get("operands", True),
            _rate(table, "bytes_per_second"),
            _rate(table, "picojoules_per_byte"),
        )
        for bank in range(split)
    ]


def _rate(table: dict[str, Any], key: str) -> float | None:
    return float(table[key]) if key in table else None
