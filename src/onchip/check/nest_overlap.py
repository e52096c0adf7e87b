"""`alloc T @A over X by 0` for a group that runs as a nest: proof that X is read before it is overwritten.

Both lie whole on chip, and X dies with the group. What overwrites X are the operators that write in T's
range: the maker of T, and those of operands in whose place T is written. Each of them overwrites an element
of X when it makes it, so every read of that element has to come before: by the order of the leaves within
one turn of the loops around both, and over their turns because each loop goes on to elements that none
before it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onchip.check.nest_tree import Path, Turns, followed
from onchip.check.nest_windows import Windows
from onchip.check.nests import Layout
from onchip.check.rules import broken
from onchip.network import Network
from onchip.network.axes import ALL, Buffer, Cut, Use

__all__ = ["prove_nest_overlap"]

RULE = "nest-under"


def prove_nest_overlap(network: Network, group: str, layout: Layout, t: int, x: int, by: int) -> None:
    """Prove that a group in a nest may write tensor `t` with root tensor `x` lying `by` bytes above it.

    Neither is streamed. Raises `Broken` by the rule nest-under.
    """
    name, over = network.tensors[x].name, network.tensors[t].name
    if by:
        broken(RULE, f"{name} lies {by} bytes above {over}, which group {group} writes as a nest")
    if network.tensors[x].bytes != network.tensors[t].bytes:
        broken(RULE, f"{name} has not as many bytes as {over}, which group {group} writes as a nest")
    proof = _Proof(layout, t)
    for at, use in proof.reads(x):
        who = proof.cuts[at].name
        if not proof.same_elements(use):
            broken(RULE, f"{who} of group {group} reads {name} in other elements than {over} has")
        for writer in proof.writers:
            if reason := proof.late(at, use, writer):
                made = proof.cuts[writer].name
                broken(
                    RULE, f"{who} of group {group} reads {name} where {made} has written over it: {reason}"
                )


@dataclass
class _Proof:
    layout: Layout
    t: int

    def __post_init__(self) -> None:
        self.cuts, self.buffers = self.layout.axes.operators, self.layout.axes.buffers
        self.path = {path.at: path for path in self.layout.paths}
        self.windows = {windows.where: windows for windows in self.layout.windows}
        self.order = {path.at: n for n, path in enumerate(self.layout.paths)}
        self.made = next(n for n, b in enumerate(self.buffers) if b.maker is not None and b.tensor == self.t)
        self.writers = self._writers()

    def _writers(self) -> list[int]:
        """Return the maker of T, and those of operands that lie in its range before it."""
        found, maker = [], self.buffers[self.made].maker
        while maker is not None:
            found.append(maker)
            path = self.path[maker]
            reads = (self.buffers[use.buffer] for use in self.cuts[maker].reads)
            maker = next((b.maker for b in reads if path.over is not None and b.name == path.over), None)
        return found

    def reads(self, x: int) -> Iterator[tuple[int, Use]]:
        """Yield the uses of X with their operators."""
        for at, cut in enumerate(self.cuts):
            for use in cut.reads:
                if self.buffers[use.buffer].tensor == x:
                    yield at, use

    def same_elements(self, use: Use) -> bool:
        """Return whether X has T's elements, side by side, at the same addresses."""
        x, made = self.buffers[use.buffer], self.buffers[self.made]
        return (x.whole, x.element, x.offset) == (made.sides, made.element, 0)

    def late(self, at: int, use: Use, writer: int) -> str:
        """Return why a use may come after an element of it was overwritten; nothing if it never does."""
        cut = self.cuts[writer]
        if at == writer and not _element_by_element(cut, use, self.buffers[use.buffer]):
            return "not element by element"
        if at != writer and self.order[at] > self.order[writer]:
            return "it runs later"
        for turn in _around(self.path[at], self.path[writer]):
            if not self.goes_on(turn, at, use, writer):
                return "a later turn of a loop around both reads it again"
        return ""

    def goes_on(self, turn: Turns, at: int, use: Use, writer: int) -> bool:
        """Return whether no turn of a loop reads what an earlier one wrote over."""
        buffer, writes = self.buffers[use.buffer], self.cuts[writer].writes
        windows = self.windows.get(turn.where)
        if windows is not None:
            return _ahead(windows, turn, (at, use, buffer), (writer, writes))
        if turn.before is None and self.cuts[at].axes[turn.over[at]] <= turn.tile:
            return True  # a single turn
        mine, theirs = turn.over[at], turn.over[writer]
        return any(
            use.axes[side] == mine and writes.axes[side] == theirs and _complete(buffer, side)
            for side in range(len(use.axes))
        )


def _around(a: Path, b: Path) -> Iterator[Turns]:
    """Yield the loops around two leaves."""
    for one, other in zip(a.loops, b.loops, strict=False):
        if one is not other:
            return
        yield one


def _complete(buffer: Buffer, side: int) -> bool:
    """Return whether index i along a side of a part is index i of the tensor."""
    return buffer.sides[side] == buffer.whole[side]


def _element_by_element(cut: Cut, use: Use, buffer: Buffer) -> bool:
    """Return whether an operator reads an element, or a row that stays together, as it writes there."""
    if any(cut.axes[axis] > 1 for axis in cut.sums):
        return False
    return all(
        _complete(buffer, side) and (size == 1 or a == b != ALL or (a == ALL and b in cut.together))
        for side, (size, a, b) in enumerate(zip(buffer.whole, use.axes, cut.writes.axes, strict=True))
    )


def _ahead(windows: Windows, turn: Turns, read: tuple[int, Use, Buffer], written: tuple[int, Use]) -> bool:
    """Return whether every turn of a loop along windows reads beyond all that those before it wrote."""
    (at, use, buffer), (writer, writes) = read, written
    mine, theirs = followed(use, turn.over[at]), followed(writes, turn.over[writer])
    side = next((s for s in mine if s in theirs and _complete(buffer, s)), None)
    if side is None:
        return windows.turns <= 1
    window, end = mine[side], 0
    for j in range(windows.turns):
        here, there = windows.made[at][j], windows.made[writer][j]
        if here:
            first = (
                here.start if window is None else (here.start * window.stride - window.before) // window.per
            )
            if max(0, first) < end:
                return False
        if there:
            end = max(end, there.stop)
    return True
