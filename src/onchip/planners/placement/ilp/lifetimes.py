"""The possible steps of every tensor: the paper's tensor overlap analysis (III-F), which keeps the ILP small.

A step is the run of one operator. With `before` operators that must run earlier and `after` that must run
later, an operator's step lies in [before, n - 1 - after]; a given order leaves one step. A tensor can be
resident from its producer's first possible step to its last reader's last one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from onchip.network import bits, mask
from onchip.planners.placement.problem import Problem

__all__ = ["Item", "Lifetimes"]


@dataclass(frozen=True, slots=True)
class Item:
    """An occupant of scratchpad: a tensor, or the workspace of an operator (`tensor` is None then).

    `producer` is None for a network input, which is created (loaded first) at the step of its first reader.
    Created at a step of [`first`, `newest`], resident within [`first`, `last`]. `begins` holds the operators
    at one of which it appears, `touched` all operators at which it is resident: bitsets.
    """

    tensor: int | None
    producer: int | None
    readers: tuple[int, ...]
    size: int
    first: int
    newest: int
    last: int
    begins: int
    touched: int

    @property
    def momentary(self) -> bool:
        """True if it lives during its producer's step alone."""
        return self.producer is not None and not self.readers


@dataclass(frozen=True)
class Lifetimes:
    """The earliest and latest step of every operator, and the items with theirs."""

    problem: Problem
    ancestors: tuple[int, ...]
    earliest: tuple[int, ...]
    latest: tuple[int, ...]

    @classmethod
    def of(cls, problem: Problem) -> Lifetimes:
        """Return ASAP and ALAP over the data dependencies; both the given step if the order is given."""
        count = len(problem.inputs)
        ancestors = [0] * count
        if problem.order is not None:
            done = 0
            for v in problem.order:
                ancestors[v] = done
                done |= 1 << v
        else:
            producer = {t: v for v in range(count) for t in problem.outputs[v]}
            direct = [mask(producer[t] for t in problem.inputs[v] if t in producer) for v in range(count)]
            for v in _sorted(direct):
                ancestors[v] = direct[v]
                for p in bits(direct[v]):
                    ancestors[v] |= ancestors[p]
        after = [0] * count
        for v in range(count):
            for p in bits(ancestors[v]):
                after[p] += 1
        return cls(
            problem,
            tuple(ancestors),
            tuple(a.bit_count() for a in ancestors),
            tuple(count - 1 - n for n in after),
        )

    @cached_property
    def steps(self) -> int:
        """The number of steps: one an operator."""
        return len(self.earliest)

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """Every tensor that some operator touches, then every workspace."""
        p, found = self.problem, []
        producer = {t: v for v in range(self.steps) for t in p.outputs[v]}
        for t in sorted({t for row in (*p.inputs, *p.outputs) for t in row}):
            made, readers = producer.get(t), tuple(bits(p.readers[t]))
            begins = readers if made is None else (made,)
            found.append(
                Item(
                    tensor=t,
                    producer=made,
                    readers=readers,
                    size=p.size[t],
                    first=min(self.earliest[v] for v in begins),
                    newest=min(self.latest[v] for v in begins),
                    last=max(self.latest[v] for v in (*begins, *readers)),
                    begins=mask(begins),
                    touched=mask((*begins, *readers)),
                )
            )
        for v, size in enumerate(p.workspace):
            if size:
                window = self.earliest[v], self.latest[v], self.latest[v]
                found.append(Item(None, v, (), size, *window, 1 << v, 1 << v))
        return tuple(found)

    def never_meet(self, a: Item, b: Item) -> bool:
        """Return whether the data dependencies alone keep the two from ever being resident together."""
        if a.momentary and b.momentary:
            return a.producer != b.producer
        return self._dies_before(a, b) or self._dies_before(b, a)

    def _dies_before(self, a: Item, b: Item) -> bool:
        """Return whether every operator that touches `a` runs before any at which `b` could appear."""
        return all(not a.touched & ~self.ancestors[v] for v in bits(b.begins))

    def shared_steps(self, a: Item, b: Item) -> range:
        """Return the steps at which both could be resident.

        At such a step both have appeared, so everything that either needs has run; and both are still needed,
        so everything that needs their readers has not.
        """
        if self.never_meet(a, b):
            return range(0)
        begun = min(
            ((self.ancestors[v] | 1 << v) | (self.ancestors[w] | 1 << w)).bit_count()
            for v in bits(a.begins)
            for w in bits(b.begins)
        )
        left = min(
            (self.descendants[v] | self.descendants[w]).bit_count()
            for v in a.readers or bits(a.touched)
            for w in b.readers or bits(b.touched)
        )
        first, last = max(a.first, b.first, begun - 1), min(a.last, b.last, self.steps - left)
        return range(first, max(first, last + 1))

    @cached_property
    def descendants(self) -> tuple[int, ...]:
        """The bitset of each operator and all that must run after it."""
        result = [1 << v for v in range(self.steps)]
        for v, ancestors in enumerate(self.ancestors):
            for p in bits(ancestors):
                result[p] |= 1 << v
        return tuple(result)

    def pairs(self) -> Iterator[tuple[int, int, range]]:
        """Yield pairs of items (i < j) that could be resident together, with their common steps."""
        items = self.items
        open_: list[int] = []
        for j in sorted(range(len(items)), key=lambda i: items[i].first):
            b = items[j]
            open_ = [i for i in open_ if items[i].last >= b.first]
            for i in open_:
                steps = self.shared_steps(items[i], b)
                if steps:
                    yield min(i, j), max(i, j), steps
            open_.append(j)


def _sorted(direct: list[int]) -> list[int]:
    """Return the operators in an order that respects their direct predecessors (bitsets)."""
    readers: list[list[int]] = [[] for _ in direct]
    waiting = [d.bit_count() for d in direct]
    for v, predecessors in enumerate(direct):
        for p in bits(predecessors):
            readers[p].append(v)
    order = [v for v, n in enumerate(waiting) if n == 0]
    for v in order:
        for r in readers[v]:
            waiting[r] -= 1
            if waiting[r] == 0:
                order.append(r)
    return order
