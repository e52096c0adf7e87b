"""All nests of a small group with few loops, by force: every order, tree, tile, home and ring.

No bound, and no rule, leaves any out. Trees and homes are listed in another way than by the compiled search
for the front. A loop goes along axes that tensors link.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from math import prod

from onchip.network.axes import GroupAxes
from oracles.nest_cases import along

__all__ = ["Body", "Forced", "Placed", "TooMany", "linked"]

Node = int | tuple[int, int, tuple["Node", ...]]
"""An operator, or a loop: its axes (a number), tile, body."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body of a tree, the root or a loop's: number, axes, tile, items, all operators inside."""

    parent: int
    axes: int
    tile: int
    items: tuple[Node, ...]
    inside: frozenset[int]


@dataclass(frozen=True, slots=True)
class Placed:
    """A tree with its homes, by body the buffers kept, and its rings."""

    bodies: tuple[Body, ...]
    keep: tuple[tuple[int, ...], ...]
    ring: tuple[tuple[int, ...], ...]


class TooMany(Exception):
    """A group has more plans than are looked at."""


class Forced:
    """All plans of one group; `axes` without two linked axes of one operator."""

    def __init__(
        self,
        axes: GroupAxes,
        leaving: set[int],
        whole: frozenset[int],
        loops: int,
        copies: int,
        most: int,
        ways: tuple[int, int] = (1, 1),
    ) -> None:
        self.axes, self.loops, self.copies, self.most = axes, loops, copies, most
        self.choices = [copies * (ways[0] if b.maker is None else ways[0] * ways[1]) for b in axes.buffers]
        self.uses = [
            Counter(use.buffer for use in (*cut.reads, *cut.constants, cut.writes)) for cut in axes.operators
        ]
        self.moves = [
            n
            for n, b in enumerate(axes.buffers)
            if not (b.tensor in whole and (b.maker is None or b.tensor in leaving))
            and (b.maker is None or b.tensor in leaving)
        ]
        on_chip = [n for n, b in enumerate(axes.buffers) if b.tensor is not None and b.tensor in whole]
        self.inner = [n for n in range(len(axes.buffers)) if n not in self.moves and n not in on_chip]
        self.linked = linked(axes)
        self.sizes = [max(axes.operators[o].axes[a] for o, a in some) for some in self.linked]
        self.slides = [self._slides(some) for some in self.linked]
        self.count = 0

    def _slides(self, some: Sequence[tuple[int, int]]) -> bool:
        """Whether a window of some use goes along these axes."""
        return any(
            window is not None and window.axis == a
            for o, a in some
            for use in (*self.axes.operators[o].reads, *self.axes.operators[o].constants)
            for window in use.slides
        )

    def orders(self) -> Iterator[tuple[int, ...]]:
        """Yield the operators in every order in which makers come first."""
        before = [
            {self.axes.buffers[use.buffer].maker for use in cut.reads} - {None} for cut in self.axes.operators
        ]
        for order in permutations(range(len(before))):
            if all(before[o] <= set(order[:n]) for n, o in enumerate(order)):
                yield order

    def forests(
        self, ops: tuple[int, ...], loops: int, left: tuple[int, ...]
    ) -> Iterator[tuple[tuple[Node, ...], int]]:
        """Yield all items that run operators in this order, with how many loops they have."""
        if not ops:
            yield (), 0
            return
        for rest, used in self.forests(ops[1:], loops, left):
            yield (ops[0], *rest), used
        for count in range(1, len(ops) + 1 if loops else 0):
            for n, some in enumerate(self.linked):
                along_it = {o for o, a in some if self.axes.operators[o].axes[a] > 1}
                if not along_it.issuperset(ops[:count]):
                    continue
                for tile in range(1, left[n]):
                    inside = (*left[:n], tile, *left[n + 1 :])
                    for inner, more in self.forests(ops[:count], loops - 1, inside):
                        for rest, used in self.forests(ops[count:], loops - 1 - more, left):
                            yield ((n, tile, inner), *rest), used + more + 1

    def placed(self) -> Iterator[Placed]:
        """Yield all trees with all homes and rings. Raises `TooMany`."""
        for order in self.orders():
            for items, _ in self.forests(order, self.loops, tuple(self.sizes)):
                bodies = tuple(_bodies(items))
                for homes in product(*(self.homes(b, bodies) for b in self.moves)):
                    keep = tuple(
                        tuple(b for b, chosen in zip(self.moves, homes, strict=True) if n in chosen)
                        for n in range(len(bodies))
                    )
                    for ring in product(*(self.rings(n, body, keep[n]) for n, body in enumerate(bodies))):
                        self.count += prod(self.choices[b] for some in keep for b in some)
                        if self.count > self.most:
                            raise TooMany
                        yield Placed(bodies, keep, ring)

    def homes(self, buffer: int, bodies: Sequence[Body]) -> list[frozenset[int]]:
        """Return all sets of bodies that may keep a buffer, each for all uses inside."""
        found = []
        users = {o for o, uses in enumerate(self.uses) if uses[buffer]}
        made = self.axes.buffers[buffer].maker is not None
        ups = [set(_ups(bodies, n)) for n in range(len(bodies))]
        for bits in range(1 << len(bodies)):
            chosen = frozenset(n for n in range(len(bodies)) if bits >> n & 1)
            if any(not users & bodies[n].inside or ups[n] & chosen for n in chosen):
                continue
            if made:
                fits = len(chosen) == 1 and all(users <= bodies[n].inside for n in chosen)
            else:
                fits = all(
                    self.shared(buffer, body)
                    for n, body in enumerate(bodies)
                    if not (chosen & {n, *ups[n]})
                    if any(isinstance(item, int) and self.uses[item][buffer] for item in body.items)
                )
            if fits:
                found.append(chosen)
        return found

    def shared(self, buffer: int, body: Body) -> bool:
        """Whether two uses in a body, or one and a loop there, take a buffer."""
        parts = 0
        for item in body.items:
            if isinstance(item, int):
                parts += self.uses[item][buffer]
            else:
                parts += any(self.uses[o][buffer] for o in _inside(item[2]))
        return parts > 1

    def rings(self, number: int, body: Body, keep: Sequence[int]) -> list[tuple[int, ...]]:
        """Return all sets of buffers of which a loop may keep rows."""
        if not number or not self.slides[body.axes]:
            return [()]
        may = [*keep, *(b for b in self.inner if any(self.uses[o][b] for o in body.inside))]
        return [tuple(b for n, b in enumerate(may) if bits >> n & 1) for bits in range(1 << len(may))]


def linked(axes: GroupAxes) -> list[list[tuple[int, int]]]:
    """Return all axes (operator, axis) in parts: those that go along one side of a buffer are together."""
    part = {(o, a): {(o, a)} for o, cut in enumerate(axes.operators) for a in range(len(cut.axes))}
    sides: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for o, cut in enumerate(axes.operators):
        for use in (*cut.reads, *cut.constants, cut.writes):
            for side, a in enumerate(along(use)):
                if a >= 0:
                    sides.setdefault((use.buffer, side), []).append((o, a))
    for first, *others in sides.values():
        for other in others:
            both = part[first] | part[other]
            for one in both:
                part[one] = both
    return [sorted(some) for some in {id(some): some for some in part.values()}.values()]


def _inside(items: Sequence[Node]) -> Iterator[int]:
    for item in items:
        if isinstance(item, int):
            yield item
        else:
            yield from _inside(item[2])


def _bodies(
    items: tuple[Node, ...], axes: int = -1, tile: int = 0, first: int = 0, up: int = -1
) -> list[Body]:
    """Return a body and those inside it, in the order in which they are walked."""
    found = [Body(up, axes, tile, items, frozenset(_inside(items)))]
    for item in items:
        if not isinstance(item, int):
            found += _bodies(item[2], item[0], item[1], first + len(found), first)
    return found


def _ups(bodies: Sequence[Body], n: int) -> Iterator[int]:
    while bodies[n].parent >= 0:
        n = bodies[n].parent
        yield n
