"""Labels of the fold: the cost of the stages from a cut to a group's end, and when they take which rows."""

from __future__ import annotations

from typing import NamedTuple

from onchip.microcontroller.segments.blocks import Staged
from onchip.microcontroller.segments.group import StageChoice

__all__ = ["Label", "Reaches"]


class Label(NamedTuple):
    """The stages from some cut to a group's end.

    `slower` is the extra time of stages of several layers, and breaks ties of `work`. `rings` are bytes of
    row rings and sums, `columns` of the largest column rings. The stages take `upto` rows of their input in
    all; `reach` states how many they have taken while each row of the output is made (see `Reaches`).
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
        """Return the stages in their order."""
        found: list[StageChoice] = []
        label: Label | None = self
        while label is not None:
            found += label.block.stages
            label = label.rest
        return tuple(found)


class Reaches:
    """Tuples of rows, each with a number: every pair is composed and compared once."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []
        self._number: dict[tuple[int, ...], int] = {}
        self._composed: dict[tuple[int, int], int] = {}
        self._ahead: dict[tuple[int, int], bool] = {}

    def number(self, rows: tuple[int, ...]) -> int:
        """Return the number of this tuple."""
        if rows not in self._number:
            self._number[rows] = len(self.rows)
            self.rows.append(rows)
        return self._number[rows]

    def composed(self, taken: int, reach: int) -> int:
        """Return the rows taken of a block's input, by output row, when `reach` is of the block's output."""
        key = taken, reach
        if key not in self._composed:
            first = self.rows[taken]
            self._composed[key] = self.number(tuple(first[u] for u in self.rows[reach]))
        return self._composed[key]

    def ahead(self, one: int, other: int) -> bool:
        """Return whether `one` is never behind `other`: its rows may be overwritten as early."""
        key = one, other
        if key not in self._ahead:
            pairs = zip(self.rows[one], self.rows[other], strict=True)
            self._ahead[key] = all(a >= b for a, b in pairs)
        return self._ahead[key]
