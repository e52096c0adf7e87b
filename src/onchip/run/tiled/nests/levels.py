"""The records of a nest as it runs: loops, levels of items, and the homes of buffers among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onchip.run.tiled.nests.forms import Span
from onchip.run.tiled.nests.windows import Windows

__all__ = ["Beside", "Compute", "Home", "Level", "Turns", "UseKey"]

UseKey = tuple[int, int]
"""An operator of the group, and the position of its use: operands, then weights, then the output."""


@dataclass(eq=False)
class Turns:
    """A loop over an axis of each operator in it, by operator; `span` is the range of the current turn.

    `outer` is the loop around it over the same axes, of whose turn it makes parts. Where `windows` slide
    along it, turn number `turn` has another range for every operator, and `rings` are kept between turns.
    """

    over: dict[int, int]
    sizes: dict[int, int]
    tile: int
    level: Level
    outer: Turns | None
    ring: tuple[str, ...] = ()
    span: Span = (0, 0)
    windows: Windows | None = None
    turn: int = 0
    rings: list[Home] = field(default_factory=list)

    def most(self, o: int) -> int:
        """Return the most positions of an operator's axis in a turn."""
        if self.windows is not None:
            return max(high - low for low, high in self.windows.made[o])
        return min(self.tile, self.sizes[o] if self.outer is None else self.outer.most(o))


@dataclass(eq=False)
class Compute:
    """One operator makes one box. `cut` are its axes that loops cut, `over` is an operand's position."""

    operator: int
    over: int | None
    cut: frozenset[int] = frozenset()


@dataclass(eq=False)
class Home:
    """A place for the buffers `buffers` that share its bytes, the last of them the one it is named for.

    `sides` has for every side the loop whose turn cuts it, or None for all of it. `sums` are the loops above
    it over which the output is summed. It is alive from item `first` of its level to `last`; as a `ring` of
    the loop of its level in all turns of that. Where it is `redone`, turns make some of it again.
    """

    number: int
    buffers: tuple[int, ...]
    level: Level
    uses: tuple[UseKey, ...]
    sides: tuple[Turns | None, ...] = ()
    sums: tuple[tuple[int, int], ...] = ()
    ring: Turns | None = None
    redone: bool = False
    first: int = 0
    last: int = 0
    wide: bool = False
    """All of it is summed at a time, so its elements are as wide as partial sums."""
    copies: int = 1
    """With two or more it owns so many slots as long as the nest runs, and fills lie in them by turns."""

    @property
    def slots(self) -> int:
        """Return its slots: what the whole nest keeps is filled once, and a ring has room for its rows."""
        return self.copies if self.level.above and self.ring is None else 1

    def region(self, sizes: Sequence[int]) -> tuple[Span, ...]:
        """Return the part of the buffer that is here in this turn."""
        return tuple(
            (0, size) if turns is None else self._span(turns)
            for turns, size in zip(self.sides, sizes, strict=True)
        )

    def moved(self, sizes: Sequence[int]) -> tuple[Span, ...]:
        """Return the part that is made, or comes, in this turn."""
        return tuple(
            turns.windows.moved[self.number][turns.turn] if turns and turns.windows else span
            for turns, span in zip(self.sides, self.region(sizes), strict=True)
        )

    def _span(self, turns: Turns) -> Span:
        return turns.windows.there[self.number][turns.turn] if turns.windows else turns.span

    def most(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the most positions along each side."""
        found = list(sizes)
        for side, turns in enumerate(self.sides):
            if turns is not None and turns.windows:
                found[side] = max(high - low for low, high in turns.windows.there[self.number])
            elif turns is not None:
                found[side] = turns.most(self.uses[0][0])
        return tuple(found)

    @property
    def turning(self) -> int | None:
        """The side along which it is a ring."""
        return self.sides.index(self.ring) if self.ring in self.sides and self.ring is not None else None


@dataclass(eq=False)
class Beside:
    """The accumulators of an operator beside its output: as long as item number `item` of a level runs.

    `sides` has for every side of the output the loop whose turn cuts it, or None for all of it. With `values`
    it is what the sums carry, so many for every index along the sides that are not `shared`.
    """

    operator: int
    buffer: int
    level: Level
    item: int
    sides: tuple[Turns | None, ...]
    values: int = 0
    shared: frozenset[int] = frozenset()

    def most(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the most positions along each side."""
        return tuple(
            1 if n in self.shared else size if turns is None else turns.most(self.operator)
            for n, (turns, size) in enumerate(zip(self.sides, sizes, strict=True))
        )


@dataclass(eq=False)
class Level:
    """Items in order; `above` are the loops around it, `path` the levels from the root to it."""

    above: tuple[Turns, ...]
    path: tuple[Level, ...]
    keep: frozenset[str]
    items: list[Turns | Level | Compute] = field(default_factory=list)
    inside: list[set[int]] = field(default_factory=list)
    """The operators in each item."""
    begin: list[list[Home]] = field(default_factory=list)
    end: list[list[Home]] = field(default_factory=list)
    beside: dict[int, list[Beside]] = field(default_factory=dict)
    """Accumulators, by the item as long as which they live."""
    copies: Mapping[str, int] = field(default_factory=dict)
    """Of what it keeps, by name."""
    start: int = 0
    """The first leaf in it, in the order of the leaves; `stop` is one past the last."""
    stop: int = 0
