"""The complete search for bases: it decides which of two bodies lies above the other, and the least bases.

Two bodies share no byte if and only if the difference of their bases avoids a few open intervals
(`forbidden`); to avoid one is to be at its lower end or below, or at its upper end or above. The search
decides that, one interval at a time. The decisions, and the range of every base, are bounds `x_v - x_u >= w`;
`D[u, v]` holds the greatest bound that follows from them (longest paths; node 0 is address 0).
Complete: any legal layout is on one side of every interval, so some branch never contradicts it. Sound: the
least bases `D[0, v]` satisfy every bound (longest paths obey the triangle inequality), hence all decisions;
once they also avoid every undecided interval, they are a legal layout, and the search branches on an interval
that they do not avoid. It ends, as no interval is decided twice on a path. So no positions need be listed,
whatever the gaps within clusters and wherever given pieces lie; all bounds are whole units, so the bases are
too: everything rests on a given piece, on address 0, or on something else.

Rules, each a switch of `RegionRules`:
- forced: if every difference still possible is above an interval's lower end, it must be at the upper end or
  above, and the other way round; if neither is possible, there is no layout.
- section bound: at a step, the parts that start at level L or higher are disjoint and lie in [L, room), so
  their sizes add up to at most room - L; so with the parts that end at level L or lower, and L.
- symmetry: two free pieces alike in size and steps may be exchanged in any layout, so that the earlier one in
  the list lies lower; exchanges sort each class of such pieces, all classes at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from onchip.planners.branches.region_body import Body, RegionRules, forbidden

__all__ = ["search"]

MANY = 64
"""With this many bodies or more, a node counts for more than one."""

Matrix = npt.NDArray[np.int64]


def search(
    bodies: Sequence[Body], room: int, most_nodes: int, rules: RegionRules
) -> tuple[list[int] | None, bool, int]:
    """Return bases or None, whether that is proved (found, or none exists), and the nodes spent.

    With many bodies a node counts for more than one, in proportion to its work, so that `most_nodes` bounds
    both time and memory.
    """
    if any(b.impossible for b in bodies):
        return None, True, 0
    price = 1 + (len(bodies) // MANY) ** 3
    if price > most_nodes:
        return None, False, 0
    problem = _Problem(bodies, room, rules)
    root = problem.root()
    stack = [] if root is None else [root]
    nodes = 0
    while stack:
        if nodes + price > most_nodes:
            return None, False, nodes
        nodes += price
        bounds = stack.pop()
        if not problem.settle(bounds):
            continue
        split = problem.violated(bounds)
        if split is None:
            return [int(x) for x in bounds[0, 1:]], True, nodes
        (first, second), copy = split, bounds.copy()
        if _add(copy, *second):
            stack.append(copy)
        if _add(bounds, *first):
            stack.append(bounds)
    return None, True, nodes


Bound = tuple[int, int, int]
"""u, v, w: the base of v is at least that of u plus w."""


def _add(bounds: Matrix, u: int, v: int, w: int) -> bool:
    """Add a bound; return False if it contradicts the others."""
    if w <= bounds[u, v]:
        return True
    if w + bounds[v, u] > 0:
        return False
    np.maximum(bounds, bounds[:, u, None] + (w + bounds[None, v, :]), out=bounds)
    return True


class _Problem:
    """The intervals between bodies and the parts live at each step, as arrays. Body i is node i + 1."""

    def __init__(self, bodies: Sequence[Body], room: int, rules: RegionRules) -> None:
        self.bodies, self.room, self.rules = bodies, room, rules
        rows = [
            (i + 1, j + 1, low, high)
            for j, upper in enumerate(bodies)
            for i, lower in enumerate(bodies[:j])
            for low, high in forbidden(lower, upper)
        ]
        table = np.array(rows, np.int64).reshape(-1, 4)
        self.u, self.v, self.low, self.high = table.T
        parts = [(i + 1, p) for i, b in enumerate(bodies) for p in b.parts if p.size]
        self.body = np.array([i for i, _ in parts], np.int64)
        self.offset = np.array([p.offset for _, p in parts], np.int64)
        self.size = np.array([p.size for _, p in parts], np.int64)
        # If a step's parts all live at another step too, its bound follows from the other's.
        crowds = {
            frozenset(k for k, (_, p) in enumerate(parts) if p.start <= t < p.end) for t in _starts(bodies)
        }
        most = [c for c in crowds if not any(c < other for other in crowds)]
        there = [[k in c for k in range(len(parts))] for c in most]
        self.there = np.array(there, bool).reshape(len(most), len(parts))
        self.there_t = self.there.T.copy()
        self.weights = (self.there * self.size).T.copy()

    def root(self) -> Matrix | None:
        """Return the bounds that follow from ranges and symmetry; None if they contradict each other."""
        lows = np.array([0, *(b.low for b in self.bodies)], np.int64)
        highs = np.array([0, *(b.high for b in self.bodies)], np.int64)
        bounds = lows[None, :] - highs[:, None]
        np.fill_diagonal(bounds, 0)
        if self.rules.symmetry:
            last: dict[tuple[int, int, int], int] = {}
            for i, b in enumerate(self.bodies):
                if b.cluster is None and len(b.parts) == 1 and b.low < b.high and b.parts[0].size:
                    (part,) = b.parts
                    alike = (part.size, part.start, part.end)
                    if alike in last and not _add(bounds, last[alike], i + 1, part.size):
                        return None
                    last[alike] = i + 1
        return bounds

    def settle(self, bounds: Matrix) -> bool:
        """Add all bounds that the rules imply; return False if there is no layout."""
        while self.rules.forced:
            least, most = bounds[self.u, self.v], -bounds[self.v, self.u]
            above = (least > self.low) & (least < self.high)
            below = (most < self.high) & (most > self.low)
            if (above & below).any():
                return False
            todo = np.flatnonzero(above | below)
            if not len(todo):
                break
            for k in todo:
                u, v, low, high = int(self.u[k]), int(self.v[k]), int(self.low[k]), int(self.high[k])
                if not (_add(bounds, u, v, high) if above[k] else _add(bounds, v, u, -low)):
                    return False
        return not (self.rules.section_bound and self._crowded(bounds))

    def _crowded(self, bounds: Matrix) -> bool:
        """Return whether at some step the parts above or below a level do not fit there."""
        bottom = bounds[0, self.body] + self.offset
        top = -bounds[self.body, 0] + self.offset + self.size
        above = (bottom[None, :] >= bottom[:, None]) @ self.weights  # part by step: parts that start no lower
        if ((above > (self.room - bottom)[:, None]) & self.there_t).any():
            return True
        below = (top[None, :] <= top[:, None]) @ self.weights
        return bool(((below > top[:, None]) & self.there_t).any())

    def violated(self, bounds: Matrix) -> tuple[Bound, Bound] | None:
        """Return the two sides of an interval that the least bases violate, the likelier first, or None."""
        base = bounds[0]
        gap = base[self.v] - base[self.u]
        open_ = np.flatnonzero((gap > self.low) & (gap < self.high))
        if not len(open_):
            return None
        below = (self.low - bounds[self.u, self.v])[open_]
        above = (-bounds[self.v, self.u] - self.high)[open_]
        at = int(np.argmin(np.minimum(below, above)))
        k = open_[at]
        u, v, low, high = int(self.u[k]), int(self.v[k]), int(self.low[k]), int(self.high[k])
        up, down = (u, v, high), (v, u, -low)
        return (up, down) if above[at] >= below[at] else (down, up)


def _starts(bodies: Sequence[Body]) -> set[int]:
    return {p.start for b in bodies for p in b.parts if p.size}
