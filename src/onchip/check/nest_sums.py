"""Sums of a nest that are not complete: how wide a buffer of them is, and the accumulators beside it.

From the first loop below its home that goes over a sum, in several turns, an output holds partial sums. If no
loop between goes along a side of it, all of the buffer is summed at a time, and its elements are as wide
as its sums; else it stays as it is, and what is summed at a time has accumulators of its own beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from onchip.check.nest_homes import Home
from onchip.check.nest_sizes import Sizes
from onchip.check.nest_tree import Path, Turns
from onchip.check.rules import broken
from onchip.network.axes import GroupAxes

__all__ = ["Accumulators", "Widths"]


@dataclass(frozen=True)
class Accumulators:
    """Partial sums of a buffer beside it, inside the first `deep` loops and slices of its maker.

    `items` lead to the loop over a sum, or to the leaf that has a slice over one: they live as long as that
    runs. `sides` are the most indices along each side of the buffer. With `values` they are what the sums
    carry, so many for each index along sides that do not share it.
    """

    buffer: int
    maker: int
    items: tuple[int, ...]
    deep: int
    sides: tuple[int, ...]
    values: int = 0


class Widths:
    """The bytes of an element at every home, by its number, and the `accumulators` beside homes.

    A sum that is not complete takes `accumulator` bytes, and no less than an element; None: as an element.
    Raises `Broken` by the rules nest-over and nest-carried.
    """

    def __init__(
        self,
        group: str,
        axes: GroupAxes,
        paths: Sequence[Path],
        homes: Sequence[Home],
        sizes: Sizes,
        accumulator: int | None,
    ) -> None:
        self.group, self.axes, self.homes, self.sizes, self.accumulator = (
            group, axes, homes, sizes, accumulator
        )  # fmt: skip
        self.home = {use: n for n, home in enumerate(homes) for use in (*home.uses, *home.guests)}
        self.element = [axes.buffers[home.buffer].element for home in homes]
        self.accumulators = [found for path in paths for found in self.of(path)]

    def wide(self, buffer: int) -> int:
        """Return the bytes of a partial sum of a buffer."""
        return max(self.axes.buffers[buffer].element, self.accumulator or 0)

    def of(self, path: Path) -> Iterator[Accumulators]:
        """Yield what lies beside an operator's output, and note where its buffer is wide instead."""
        cut = self.axes.operators[path.at]
        buffer = cut.writes.buffer
        number = self.home.get((path.at, len(cut.uses) - 1))
        sums = [
            n
            for n, turn in enumerate(path.turns)
            if turn.over[path.at] in cut.sums and self.many(path.at, turn)
        ]
        above = 0 if number is None else len(self.homes[number].above)
        if not sums:
            return
        apart = any(turn.over[path.at] in cut.writes.axes for turn in path.turns[above : sums[0]])
        sides = self.sizes.left(buffer, [(path.at, cut.writes)], path.turns[: sums[0]])
        apart = apart or (
            number is not None and sides != self.sizes.held(number)
        )  # rows of a ring are finished
        made = Accumulators(buffer, path.at, path.items[: sums[0] + 1], sums[0], sides)
        if cut.carries and sums[0] < above:
            broken(
                "nest-carried",
                f"group {self.group} loops over a sum of {cut.name} around the home of"
                f" {self.axes.buffers[buffer].name}, and its sums carry a state that stays on chip",
            )
        if cut.carries:
            own = (1 if axis in cut.across else n for axis, n in zip(cut.writes.axes, sides, strict=True))
            yield replace(made, sides=tuple(own), values=cut.carries)
        if self.wide(buffer) == self.axes.buffers[buffer].element:
            return
        if number is not None and (sums[0] < above or not apart):
            if self.homes[number].buffer != buffer:
                self.refuse(buffer, number)
            self.element[number] = self.wide(buffer)
        else:
            yield made

    def many(self, at: int, turn: Turns) -> bool:
        """Return whether an operator sums in several turns of a loop, for some turn of one before it."""
        if turn in self.sizes.windows:
            return sum(length > 0 for length in self.sizes.windows[turn].made[at].lengths) > 1
        return self.sizes.entries([turn]) > (1 if turn.before is None else self.sizes.entries([turn.before]))

    def refuse(self, buffer: int, number: int) -> None:
        names = [self.axes.buffers[n].name for n in (buffer, self.homes[number].buffer)]
        broken(
            "nest-over",
            f"{names[1]} in group {self.group} is to be written in the place of {names[0]}, which holds wider"
            " sums there",
        )
