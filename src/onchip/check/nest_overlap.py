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

from onchip.check.nest_reads import element_by_element, read_late
from onchip.check.nests import Layout
from onchip.check.rules import broken
from onchip.network import Network
from onchip.network.axes import Use

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
        if at == writer and not element_by_element(cut, use, self.buffers[use.buffer]):
            return "not element by element"
        return read_late(self.layout.axes, self.path, self.windows, (at, use), writer)
