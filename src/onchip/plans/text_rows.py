"""The rows of a group in the text form: a block of lines behind the group's own, from `rows` to its `end`.

rows
  map x fetch at 0 16 32
  map y rows by pad conv relu from 0 workspace 96 at 48 64
  steps 0 0 1 0 1
end
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onchip.plans.rows import DOES, RowMap, Rows
from onchip.plans.text_words import Word, integer, word, words

__all__ = ["RowsBlock", "rows_lines"]

_MAP = ("by", "from", "workspace", "at", "columns")


def rows_lines(rows: Rows) -> list[str]:
    """Return the lines of a group's rows, from `rows` to `end`."""
    found = ["  rows"]
    for one in rows.maps:
        line = f"    map {word(one.tensor, _MAP)} {one.does}"
        line += f" by{words(one.operators, _MAP)}" if one.operators else ""
        line += _numbers("columns", one.columns)
        line += _numbers("from", one.reads)
        line += _numbers("workspace", one.workspace)
        found.append(line + _numbers("at", one.addresses))
    return [*found, f"    steps{''.join(f' {n}' for n in rows.steps)}", "  end"]


def _numbers(key: str, numbers: Sequence[int]) -> str:
    return f" {key} {' '.join(map(str, numbers))}" if numbers else ""


class RowsBlock:
    """Rows that are being read line by line. Raises `ValueError` with the reason for a wrong line."""

    def __init__(self, first: Sequence[Word]) -> None:
        """Begin with the words behind `rows`."""
        if first:
            raise ValueError("rows take no words of their own")
        self.maps: list[RowMap] = []
        self.steps: tuple[int, ...] | None = None

    def line(self, line: Sequence[Word]) -> Rows | None:
        """Take the words of a line; return the rows if that was their `end`."""
        match line:
            case [("end", False)]:
                if self.steps is None:
                    raise ValueError("rows have no steps")
                return Rows(tuple(self.maps), self.steps)
            case [("steps", False), *rest]:
                if self.steps is not None:
                    raise ValueError("steps are given twice")
                self.steps = tuple([integer(text) for text, _ in rest])
            case [("map", False), (tensor, _), (does, False), *rest] if does in DOES:
                self.maps.append(_map(tensor, does, rest))
            case _:
                shown = " ".join(text for text, _ in line)[:80]
                raise ValueError(f"{shown} is no line of rows: map, steps or end")
        return None


def _map(tensor: str, does: Any, rest: Sequence[Word]) -> RowMap:
    found: dict[str, list[str]] = {}
    for text, quoted in rest:
        if not quoted and text in _MAP:
            if text in found:
                raise ValueError(f"{text} is given twice")
            found[text] = []
        elif not found:
            raise ValueError(f"expected {', '.join(_MAP)}; found {text[:60]!r}")
        else:
            found[list(found)[-1]].append(text)
    space, reads, at, columns = (
        tuple([integer(n) for n in found.get(key, ())]) for key in ("workspace", "from", "at", "columns")
    )
    return RowMap(tensor, at, tuple(found.get("by", ())), reads, does, space, columns)
