"""Labels of the fold: what stages from a cut to a group's end cost, and which rows they take when."""

from __future__ import annotations

from typing import NamedTuple

from onchip.microcontroller.segments.blocks import Staged
from onchip.microcontroller.segments.group import StageChoice

__all__ = ["Label", "Reaches"]


class Label(NamedTuple):
    """The stages from some cut to a group's end.

    `slower` is what stages of several layers take longer, and breaks ties of `work`. `rings` are bytes of
    row rings and sums, `columns` of the largest column rings. `upto` rows of what goes in are taken in all;
    `reach` says how many when each row of the output is being made (see `Reaches`).
    """

    work: int
    slower: int
    rings: int
    columns: int
    workspace: int
    upto: int
    reach: int
    block: Staged
    rest: Label | None

    @property
    def scratch(self) -> int:
        return self.rings + self.columns + self.workspace

    def all_stages(self) -> tuple[StageChoice, ...]:
        """The stages in their order."""
        found: list[StageChoice] = []
        label: Label | None = self
        while label is not None:
            found += label.block.stages
            label = label.rest
        return tuple(found)


class Reaches:
    """Tuples of rows, each known by a number: composed and compared once."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []
        self._number: dict[tuple[int, ...], int] = {}
        self._composed: dict[tuple[int, int], int] = {}
        self._ahead: dict[tuple[int, int], bool] = {}

    def number(self, rows: tuple[int, ...]) -> int:
        """The number of this tuple."""
        if rows not in self._number:
            self._number[rows] = len(self.rows)
            self.rows.append(rows)
        return self._number[rows]

    def composed(self, taken: int, reach: int) -> int:
        """What is taken of a block's input, row by row, when `reach` is of its output."""
        key = taken, reach
        if key not in self._composed:
            first = self.rows[taken]
            self._composed[key] = self.number(tuple(first[u] for u in self.rows[reach]))
        return self._composed[key]

    def ahead(self, one: int, other: int) -> bool:
        """Whether the one is never behind the other: what it has read may be overwritten as early."""
        key = one, other
        if key not in self._ahead:
            pairs = zip(self.rows[one], self.rows[other], strict=True)
            self._ahead[key] = all(a >= b for a, b in pairs)
        return self._ahead[key]
