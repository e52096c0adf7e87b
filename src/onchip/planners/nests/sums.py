"""Sums of a nest that are not complete, by the sizes of first tiles: the buffers that are as wide, and the
accumulators beside others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onchip.network.axes import GroupAxes
from onchip.plans.nest import Leaf, Loop, Nest

__all__ = ["PartialSums"]

Above = tuple[tuple[Mapping[int, int], int], ...]
"""Loops around something, outermost first: the axis by operator, and the tile."""


class PartialSums:
    """The partial sums of one group: of `accumulator` bytes each, and no less than an element."""

    def __init__(self, group: GroupAxes, accumulator: int | None) -> None:
        self.group, self.accumulator = group, accumulator or 0
        self.place = {op.name: i for i, op in enumerate(group.operators)}
        self.path: dict[int, Above] = {}

    def follow(self, nest: Nest) -> None:
        """Take the loops of a nest."""
        self._follow(nest.body, ())

    def _follow(self, items: Sequence[Loop | Leaf], above: Above) -> None:
        for item in items:
            if isinstance(item, Leaf):
                at = self.place[item.operator]
                self.path[at] = (*above, *(({at: axis}, tile) for axis, tile in item.slices))
            else:
                over = {self.place[name]: axis for name, axis in item.over}
                self._follow(item.body, (*above, (over, item.tile)))

    def wide(self, buffer: int) -> int:
        """Return the bytes of a partial sum of a buffer."""
        return max(self.group.buffers[buffer].element, self.accumulator)

    def widens(self, buffer: int) -> bool:
        """Return whether a partial sum of a buffer is wider than its elements."""
        return self.wide(buffer) > self.group.buffers[buffer].element

    def first(self, buffer: int) -> int | None:
        """Return the loop around the maker of a buffer, by its place in the path, with which it holds partial
        sums; None if it never does."""
        maker = self.group.buffers[buffer].maker
        if maker is None:
            return None
        op = self.group.operators[maker]
        left = list(op.axes)
        for n, (over, tile) in enumerate(self.path[maker]):
            if over[maker] in op.sums and tile < left[over[maker]]:
                return n
            left[over[maker]] = min(left[over[maker]], tile)
        return None

    def all_of(self, buffer: int, deep: int) -> bool:
        """Return whether all of a buffer inside so many loops is summed at a time: it is as wide then."""
        first, maker = self.first(buffer), self.group.buffers[buffer].maker
        if first is None or maker is None or not self.widens(buffer):
            return False
        sides = self.group.operators[maker].writes.axes
        return not any(over[maker] in sides for over, _ in self.path[maker][deep:first])
