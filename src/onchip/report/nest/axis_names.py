"""Words for the axes of a group: heads, rows, features, sums, channels, as far as the reaches tell.

A loop goes over one axis of each operator in it. Each operator gives its axis a word by what the axis does
there; the loop takes the word that tells most. Where no operator has one, the axis goes by its number.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from onchip.network import Network, Operator, Reach
from onchip.network.axes import Cut, GroupAxes
from onchip.network.reaches import reach_for
from onchip.planners.fused_group import TIMES

__all__ = ["AxisNames"]

TELLS = (
    *("heads", "hidden features", "queries", "channels", "input channels", "images", "columns"),
    *("features", "batch", "rows"),
)
"""The words for axes, those that tell most of a loop first; any other comes behind them."""

WINDOWED = ("conv", "depthwise", "pool", "pad", "concat")
"""The kinds of geometries whose outputs are maps."""


class AxisNames:
    """The words for the axes of one group; operators go by their positions in it."""

    def __init__(self, network: Network, axes: GroupAxes) -> None:
        self.cuts = axes.operators
        self.ops = [network.operators[cut.operator] for cut in axes.operators]
        found = [reach_for(network, op) for op in self.ops]
        self.reaches = [reach or Reach(cut.axes, ()) for reach, cut in zip(found, self.cuts, strict=True)]
        self.pieces = [_pieces(cut, reach) for cut, reach in zip(self.cuts, self.reaches, strict=True)]
        self.attends = any("Softmax" in op.type or "Attention" in op.type for op in self.ops)

    def size(self, at: int, axis: int) -> int:
        """Return the number of indices of an operator's axis."""
        return self.cuts[at].axes[axis]

    def of(self, at: int, axis: int) -> str:
        """Return the word for one axis of an operator; empty where nothing tells."""
        if self.size(at, axis) == 1:
            return ""
        whole = self.pieces[at][axis]
        word = self._word(self.ops[at], self.reaches[at], whole)
        parts = [n for n, one in enumerate(self.pieces[at]) if one == whole and self.size(at, n) > 1]
        if len(parts) > 1 and word:  # a part of an axis that other operators see in several
            sides = [f"[{self.size(at, n):,}]" if n == axis else f"{self.size(at, n):,}" for n in parts]
            return f"{word} {f' {TIMES} '.join(sides)}"
        return word

    def loop(self, over: Sequence[tuple[int, int]]) -> str:
        """Return the word for a loop over an axis of each of some operators."""
        words = {self.of(at, axis) for at, axis in over}
        if any(self._sums(at, axis) for at, axis in over) and any(_plain(w) == "features" for w in words):
            made = [w for (at, axis) in over if not self._sums(at, axis) and _plain(w := self.of(at, axis))]
            if made and "heads" not in words:
                return "hidden features"
        return min(words, key=lambda word: (_rank(word), word)) if words else ""

    def _sums(self, at: int, axis: int) -> bool:
        return axis in self.cuts[at].sums

    def _word(self, op: Operator, reach: Reach, axis: int) -> str:
        g, sides = op.geometry, len(reach.output)
        if g is not None and g.kind in WINDOWED and len(g.output) == 4 <= sides:
            deep = ["groups"] * (sides - 4) + ["channels"]
            plane = ["rows", "columns"]
            order = ["images", *deep, *plane] if g.layout == "NCHW" else ["images", *plane, *deep]
            return "input channels" if axis >= sides else order[axis]
        if axis >= sides:
            return "sum"
        if "Attention" in op.type and not reach.sums:
            return {0: "rows", len(reach.output) - 1: "features"}.get(axis, "heads")
        if not reach.sums:
            plain = {len(reach.output) - 1: "features", len(reach.output) - 2: "rows"}
            tells = len(reach.output) > 1 and "Transpose" not in op.type
            return plain.get(axis, "batch") if tells else ""
        first, *others = _along(reach)
        constants: set[int] = set()
        for one in others:
            constants |= one
        if axis in first and axis in constants:
            return "heads" if self.attends else "batch"
        if axis in first:
            return "queries" if self.attends and len(reach.reads) > 1 else "rows"
        return "features" if axis in constants else ""


def _along(reach: Reach) -> list[set[int]]:
    """Return the axes that each operand, and each constant that is summed over, goes along."""
    reads = [{side.axis for side in sides} for sides in reach.reads]
    sums = range(len(reach.output), len(reach.extents))
    constants = [{side.axis for side in constant.sides} for constant in reach.weights]
    return reads + [one for one in constants if not one.isdisjoint(sums)]


def _pieces(cut: Cut, reach: Reach) -> list[int]:
    """Return for every refined axis of an operator the axis of its reach that it is a part of."""
    found: list[int] = []
    sizes = list(cut.axes)
    for axis, extent in enumerate(reach.extents):
        taken = sizes[:1]
        while prod(taken) < extent and len(taken) < len(sizes):
            taken = sizes[: len(taken) + 1]
        found += [axis] * len(taken)
        sizes = sizes[len(taken) :]
    return found


def _plain(word: str) -> str:
    return word.partition(" ")[0]


def _rank(word: str) -> int:
    known: Collection[str] = TELLS
    plain = word if word in known else _plain(word)
    return TELLS.index(plain) if plain in TELLS else len(TELLS) + (0 if word else 1)
