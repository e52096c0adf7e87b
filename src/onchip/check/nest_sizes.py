"""The sizes of a nest's buffers at their homes, and the bytes that cross: counted from tiles and turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import ceil, prod

from onchip.check.nest_homes import Home
from onchip.check.nest_tree import Turns
from onchip.check.nest_windows import Windows
from onchip.network.axes import GroupAxes, Use

__all__ = ["Sizes"]


class Sizes:
    """The sizes of the homes of a nest, each by its number. `windows` are the loops that some slide along."""

    def __init__(self, axes: GroupAxes, homes: Sequence[Home], windows: Mapping[Turns, Windows]) -> None:
        self.axes, self.homes, self.windows = axes, homes, windows
        self.known: dict[Turns, Mapping[int, int]] = {}

    def held(self, i: int) -> tuple[int, ...]:
        """Return the sizes of a buffer's sides at its home: the most that a turn needs."""
        home = self.homes[i]
        left = list(self.axes.buffers[home.buffer].sides)
        for turn in _ends(home.above):
            windows = self.windows.get(turn)
            if windows is None:
                most = max(self.tiles(turn), default=0)
                for side in self.cuts(home, turn):
                    left[side] = most
            elif i in windows.side:
                left[windows.side[i]] = max(windows.there[i].lengths)
        return tuple(left)

    def left(self, buffer: int, uses: Sequence[tuple[int, Use]], above: Sequence[Turns]) -> tuple[int, ...]:
        """Return the most indices of a buffer's sides that some loops leave for uses that make it."""
        left = list(self.axes.buffers[buffer].sides)
        for turn in _ends(above):
            windows = self.windows.get(turn)
            for side in range(len(left)):
                if turn.cuts(uses, side):
                    lengths = self.tiles(turn) if windows is None else windows.made[uses[0][0]].lengths
                    left[side] = max(lengths, default=0)
        return tuple(left)

    def moved(self, i: int) -> tuple[int, int]:
        """Return the bytes of a buffer in all turns above its home, and those without turns of its sums.

        A late constant comes for the last turns of its operator's sums alone.
        """
        home = self.homes[i]
        buffer = self.axes.buffers[home.buffer]
        sums = range(0) if buffer.maker is None else self.axes.operators[buffer.maker].sums
        left, total, again = list(buffer.sides), buffer.element, 1
        [(at, n), *_] = home.uses
        late = at if self.axes.operators[at].uses[n].late else None
        for turn in _ends(home.above):
            windows, sides = self.windows.get(turn), list[int]()
            if windows is None:
                sides = self.cuts(home, turn)
                count = sum(n * length ** len(sides) for length, n in self.tiles(turn).items())
            elif i in windows.side:
                sides, count = [windows.side[i]], sum(windows.moved[i].lengths)
            else:
                count = windows.turns
            for side in sides:
                left[side] = 1
            if late is not None and turn.over.get(late) in self.axes.operators[late].sums:
                continue
            if buffer.maker is not None and turn.over.get(buffer.maker) in sums:
                again *= count
            else:
                total *= count
        total *= prod(left)
        return total * again, total

    def cuts(self, home: Home, turn: Turns) -> list[int]:
        """Return the sides of a buffer along which a loop or slice goes index by index in all of its uses."""
        uses = [(at, self.axes.operators[at].uses[n]) for at, n in home.uses]
        sides = range(len(self.axes.buffers[home.buffer].sides))
        return [side for side in sides if turn.cuts(uses, side)]

    def tiles(self, turn: Turns) -> Mapping[int, int]:
        """Return how many tiles of each length there are in all turns of a whole chain together."""
        if turn not in self.known:
            at, axis = next(iter(turn.over.items()))
            outer: Mapping[int, int] = {self.axes.operators[at].axes[axis]: 1}
            if turn.before is not None and turn.before in self.windows:
                outer = Counter(self.windows[turn.before].made[at].lengths)
            elif turn.before is not None:
                outer = self.tiles(turn.before)
            found = Counter[int]()
            for length, count in outer.items():
                full, rest = divmod(length, turn.tile)
                found[turn.tile] += full * count
                found[rest] += count
            self.known[turn] = {length: n for length, n in found.items() if length and n}
        return self.known[turn]

    def turns(self, turn: Turns) -> set[int]:
        """Return the numbers of turns that a loop, along which no windows slide, takes at a time."""
        outer = [self.axes.operators[at].axes[axis] for at, axis in turn.over.items()][:1]
        if turn.before is not None:
            outer = list(self.tiles(turn.before))
        return {-(-length // turn.tile) for length in outer}

    def entries(self, above: Sequence[Turns]) -> int:
        """Return how often everything inside some loops, outermost first, is begun."""
        counts = (
            self.windows[turn].turns if turn in self.windows else sum(self.tiles(turn).values())
            for turn in _ends(above)
        )
        return prod(counts)

    def work(self, at: int, work: int) -> int:
        """Return the multiply-accumulates of an operator that has `work` if it makes every index once."""
        share = Fraction(1)
        for turn, windows in self.windows.items():
            if at in turn.over:
                size = self.axes.operators[at].axes[turn.over[at]]
                share *= Fraction(sum(windows.made[at].lengths), size)
        return ceil(work * share)


def _ends(above: Sequence[Turns]) -> list[Turns]:
    """Return the last loop of every chain."""
    inner = {turn.before for turn in above}
    return [turn for turn in above if turn not in inner]
