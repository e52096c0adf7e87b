"""The partition into groups of neighbouring operators whose costs together are least: time, or another aim.

Groups of fewest bytes are not the fastest. Intervals of the network's order that hang together are searched
for their fastest nests, or for those that cost an aim least; as groups run one after the other, their times
and bytes add up, and the best partition follows operator by operator. A tensor between groups goes through
DRAM, or lies whole on chip from the group that makes it to the last one that reads it: the groups meanwhile
have so much less room, and move none of it. Whole tensors are chosen one by one, each where the whole plan
gets better.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from onchip.network import bits, mask
from onchip.network.axes import axes_of
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint import candidates
from onchip.planners.joint.candidates import Kinds, closed
from onchip.planners.joint.timed.bound import least_work
from onchip.planners.joint.timed.hasten import Fastest
from onchip.planners.joint.timed.joined import joined, seamed
from onchip.planners.joint.timed.pricing import Priced
from onchip.planners.packing import Buffer, pack
from onchip.plans import Alloc, Free, Group, Instruction, Nest, Plan, Run

__all__ = ["Efforts", "partitioned_plan", "streamed_of"]

SMALL, LARGEST = 4, 7
"""Most operators of any group, and of one that is `closed`, or in a network of few operators."""

FEW = 16
"""Most operators of a network in which every group is tried."""

WITH_WHOLE = 3
"""Groups that tensors leave less room are searched for so much less at first."""

ROUNDS = 5
"""Times that the best partition is searched longer, and made again."""

OPTIMISM = 24
"""A group that was searched for a short time may still get better by one part in so many."""

FIRST_SHARE = 0.4
"""The share of the time that is left in which all groups that a partition may have are searched once."""

FIRST_END = 0.6
"""The share of that time after which no further group of several operators is searched before there is a
partition: larger groups come last."""

FEW_ALIKE = 3
"""Of more equal tensors none is tried whole where the first is no better: the others are of equal layers."""

JOINED = 2
"""The most pairs of parts of a group with whose nests the search for its nest begins."""

PACKING_NODES = 20_000
"""The nodes of the search for addresses."""


def streamed_of(problem: FusionProblem, operators: tuple[int, ...]) -> frozenset[int]:
    """Return all operands of a group from outside, and all that leave it."""
    members = mask(operators)
    return frozenset(bits(problem.external(members) | problem.escaping(members)))


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups, as ends of intervals of the order, the tensors that lie whole between them, and their cost."""

    cost: int
    ends: tuple[int, ...]
    whole: frozenset[int]


@dataclass(frozen=True, slots=True)
class Efforts:
    """The efforts of searches for nests.

    `first` is the most for a group that a partition may have, `first_together` for all of them that differ in
    more than names; `long` and `long_together` are the same for the groups of the best partition. None gets
    less than `least`. No more tensors are tried whole once `most` is spent.
    """

    first: int
    long: int
    least: int
    first_together: int
    long_together: int
    most: int

    def of_first(self, groups: int) -> int:
        """Return the effort for one of so many different groups."""
        return max(self.least, min(self.first, self.first_together // max(1, groups)))

    def of_long(self, groups: int) -> int:
        """Return the effort for one of so many different groups of a partition."""
        return max(self.least, min(self.long, self.long_together // max(1, groups)))


def partitioned_plan(plan: Plan, problem: FusionProblem, fastest: Fastest, efforts: Efforts) -> Plan | None:
    """Return a plan of the best partition, in the nests found; None where an operator has none."""
    return _Partitions(plan, problem, fastest, efforts).plan()


class _Partitions:
    def __init__(self, plan: Plan, problem: FusionProblem, fastest: Fastest, efforts: Efforts) -> None:
        self.given, self.problem, self.fastest, self.efforts = plan, problem, fastest, efforts
        network = problem.network
        self.network, self.order = network, network.order
        position = {v: n for n, v in enumerate(self.order)}
        self.maker: dict[int, int] = {}
        self.last: dict[int, int] = {}
        for v in self.order:
            for t in bits(network.writes[v]):
                readers = [position[r] for r in bits(network.readers[t])]
                if readers and not network.output_roots >> t & 1:
                    self.maker[t], self.last[t] = position[v], max(readers)
        self.size = {t: plan.chip.round_up(network.tensors[t].bytes) for t in self.maker}
        assert plan.chip.tiles is not None
        least = least_work(network, plan.chip.tiles)
        work = [least[v] for v in self.order]
        self.rest = [sum(work[n:]) for n in range(len(work) + 1)]
        kinds = Kinds(network).kind
        self.kind = {
            t: (self.size[t], kinds[self.order[n]], tuple(kinds[r] for r in bits(network.readers[t])))
            for t, n in self.maker.items()
        }
        self.may: dict[tuple[int, int], bool] = {}
        self.searched: set[object] = set()
        self.kinds: dict[tuple[int, int, frozenset[int]], object] = {}
        self.known: dict[object, Priced | None] = {}
        self.whole: frozenset[int] = frozenset()
        self.different = len({self.kind_of(first, end, frozenset()) for first, end in self.intervals()})
        self.first = efforts.of_first(self.different)
        self.began, self.seconds = fastest.limits.spent(), fastest.limits.left()
        self.complete = True

    def intervals(self) -> Iterator[tuple[int, int]]:
        """Yield the intervals that may be groups."""
        for end in range(1, len(self.order) + 1):
            for first in range(end - 1, max(-1, end - LARGEST - 1), -1):
                if self.may_be(first, end):
                    yield first, end

    def kind_of(self, first: int, end: int, there: frozenset[int]) -> object:
        """Return what tells an interval from others but names, with some tensors whole."""
        key = first, end, there
        if key not in self.kinds:
            operators = self.order[first:end]
            same = self.fastest.key(operators, streamed_of(self.problem, operators) - there)
            self.kinds[key] = None if same is None else (same[1], self.room(there))
        return self.kinds[key]

    def room(self, there: Iterable[int]) -> int:
        """Return the bytes that some whole tensors leave."""
        return self.problem.budget - sum(self.size[t] for t in there)

    # -- the best partition --------------------------------------------------------------------------------

    def plan(self) -> Plan | None:
        self.look_at_all()
        best = self.settled(frozenset(), None)
        if best is None:
            return None
        tried: set[int] = set()
        alone: set[object] = set()  # kinds of tensors that are tried one by one
        while not self.fastest.limits.over() and self.fastest.spent < self.efforts.most:
            between = [t for t in self.between(best) if t not in tried and t not in best.whole]
            if not between:
                break
            saved = {t: self.saved(best, t) for t in between}
            t = max(between, key=lambda t: (saved[t], -t))
            kind = self.kind[t]
            alike = [other for other in between if self.kind[other] == kind]
            together = len(alike) > 1 and kind not in alone
            better = self.better(best, alike if together else [t])
            if together and better is None:  # some of them may have room, or pay
                alone.add(kind)
                continue
            tried.update(alike if together or (better is None and len(alike) > FEW_ALIKE) else [t])
            best = better or best
        return self.program(best)

    def look_at_all(self) -> None:
        """Search every group once, small ones first: so there is a partition when time is short."""
        for first, end in sorted(self.intervals(), key=lambda one: one[1] - one[0]):
            late = (
                self.seconds is not None
                and self.fastest.limits.spent() - self.began > FIRST_END * self.seconds
            )
            if late and end - first > 1:
                self.complete = False
                break
            self.group(first, end, frozenset())

    def better(self, best: Partition, whole: Iterable[int]) -> Partition | None:
        """Return the best partition with more tensors whole; None if it is no better, or has no addresses."""
        other = self.settled(best.whole.union(whole), best.cost)
        if other is None or other.cost >= best.cost or self.addresses(other) is None:
            return None
        return other

    def saved(self, partition: Partition, t: int) -> int:
        """Return the bytes that do not cross if a tensor is whole between groups: stored once, and fetched by
        every group that reads it."""
        position = {v: n for n, v in enumerate(self.order)}
        groups = {bisect_right(partition.ends, position[r]) for r in bits(self.network.readers[t])}
        return self.size[t] * (1 + len(groups - {bisect_right(partition.ends, self.maker[t])}))

    def between(self, partition: Partition) -> list[int]:
        """Return the tensors that go from one group to another."""
        return [
            t
            for t in self.maker
            if any(self.maker[t] < end <= self.last[t] for end in partition.ends[:-1])
            and self.size[t] < self.problem.budget
        ]

    def settled(self, whole: frozenset[int], below: int | None) -> Partition | None:
        """Return the best partition with some tensors whole, its groups searched longer than others."""
        for _ in range(ROUNDS):
            found = self.best(whole, below)
            if found is None:
                return None
            if self.fastest.limits.over():
                break
            groups = self.groups(found)
            short = [one for one in groups if not self.long(*one)]
            if not short:
                break
            different = {self.kind_of(*one, self.alive(*one, whole)) for one in groups}
            longer = self.efforts.of_long(len(different))
            for first, end in short:
                kind = self.kind_of(first, end, self.alive(first, end, whole))
                if kind not in self.searched:
                    self.group(first, end, whole, effort=longer)
                    self.searched.add(kind)
        return self.best(whole, below, hope=False)

    def best(self, whole: frozenset[int], below: int | None, *, hope: bool = True) -> Partition | None:
        """Return the best partition with some tensors whole; None if it is not below some cost.

        With `hope` groups that were not searched long cost a little less than is known of them.
        """
        count = len(self.order)
        best: list[tuple[int, int] | None] = [(0, 0)]  # the cost up to an operator, the last group's first
        self.whole = whole
        for end in range(1, count + 1):
            options = []
            for first in range(end - 1, max(-1, end - LARGEST - 1), -1):
                before = best[first]
                if before is None or not self.may_be(first, end):
                    continue
                least = before[0] + self.rest[first]
                if below is not None and least >= below:
                    continue
                found = self.group(first, end, whole)
                if found is not None:
                    cost = self.fastest.cost(found)
                    if hope and not self.long(first, end):
                        cost -= cost // OPTIMISM
                    options.append((before[0] + cost, first))
            best.append(min(options, default=None))
        last = best[-1]
        if last is None or (below is not None and last[0] >= below):
            return None
        ends, at = [], count
        while at:
            ends.append(at)
            one = best[at]
            assert one is not None
            at = one[1]
        return Partition(last[0], tuple(reversed(ends)), whole)

    def groups(self, partition: Partition) -> list[tuple[int, int]]:
        return list(pairwise((0, *partition.ends)))

    def long(self, first: int, end: int) -> bool:
        return self.kind_of(first, end, self.alive(first, end, self.whole)) in self.searched

    # -- groups --------------------------------------------------------------------------------------------

    def alive(self, first: int, end: int, whole: Iterable[int]) -> frozenset[int]:
        """Return the whole tensors that lie on chip while an interval runs, but for its inner ones."""
        return frozenset(
            t
            for t in whole
            if self.maker[t] < end
            and self.last[t] >= first
            and not (self.maker[t] >= first and self.last[t] < end)
        )

    def group(self, first: int, end: int, whole: frozenset[int], effort: int | None = None) -> Priced | None:
        """Return the best nest found for an interval, in the names of one that is equal."""
        there = self.alive(first, end, whole)
        if self.room(there) < 1:
            return None
        key = self.kind_of(first, end, there)
        if key in self.known and effort is None:
            return self.known[key]
        if effort is None and not there and not self.complete:
            return None
        if self.fastest.limits.over():  # only groups that are known
            return self.known.get(key)
        if effort is None:
            self.fastest.effort = max(self.efforts.least, self.hurried() // (WITH_WHOLE if there else 1))
        self.known[key] = self.named(first, end, there, effort)
        return self.known[key]

    def hurried(self) -> int:
        """Return the effort for one more kind of group: the least where the first ones took longer than their
        share of the time."""
        searched, left = len(self.known), self.seconds
        if left is None or searched >= self.different:
            return self.first
        spent = self.fastest.limits.spent() - self.began
        late = spent * self.different > left * FIRST_SHARE * (searched + 1)
        return self.efforts.least if late else self.first

    def named(self, first: int, end: int, there: frozenset[int], effort: int | None = None) -> Priced | None:
        """Return the same in its own names, `there` being whole."""
        operators = self.order[first:end]
        streamed = streamed_of(self.problem, operators) - there
        return self.fastest.of(
            operators,
            streamed,
            self.room(there),
            effort=effort,
            others=lambda: self.joined(first, end, there),
        )

    def joined(self, first: int, end: int, there: frozenset[int]) -> Iterator[Nest]:
        """Yield the nests of two parts of an interval as one, of those parts that together cost least."""
        whole = self.whole | there
        halves = []
        for mid in range(first + 1, end):
            two = [(first, mid), (mid, end)]
            found = [self.known.get(self.kind_of(*one, self.alive(*one, whole))) for one in two]
            if all(found):
                halves.append((sum(self.fastest.cost(one) for one in found if one), mid))
        for _, mid in sorted(halves)[:JOINED]:
            two = [(first, mid), (mid, end)]
            named = [self.named(*one, self.alive(*one, whole)) for one in two]
            parts = [self.fastest.key(self.order[a:b], ()) for a, b in two]
            of_all = self.fastest.key(self.order[first:end], ())
            if of_all is None or None in named or None in parts:
                continue
            one, other = named
            assert one is not None
            assert other is not None
            nest = joined(one.nest, other.nest, of_all[0], [part[0] for part in parts if part is not None])
            if nest is not None:
                yield nest
                yield from seamed(nest, len(one.nest.body))

    def may_be(self, first: int, end: int) -> bool:
        if (first, end) not in self.may:
            self.may[first, end] = _may_be(self.problem, self.order[first:end])
        return self.may[first, end]

    # -- the plan ------------------------------------------------------------------------------------------

    def addresses(self, partition: Partition) -> dict[int, int] | None:
        """Return an address for every whole tensor, so that the scratch of every group fits; None if none
        was found."""
        groups = self.groups(partition)
        buffers, tensors = [], []
        for t in sorted(partition.whole):
            inside = [n for n, (first, end) in enumerate(groups) if t in self.alive(first, end, {t})]
            if inside:
                buffers.append(Buffer(inside[0], inside[-1] + 1, self.size[t]))
                tensors.append(t)
        for n, (first, end) in enumerate(groups):
            found = self.group(first, end, partition.whole)
            assert found is not None
            if found.scratch:
                buffers.append(Buffer(n, n + 1, found.scratch))
        packed = pack(
            buffers,
            self.problem.budget,
            alignment=self.given.chip.alignment_bytes,
            node_limit=PACKING_NODES,
        )
        if packed.status != "packed":
            return None
        return dict(zip(tensors, packed.offsets, strict=False))

    def program(self, partition: Partition) -> Plan | None:
        """Return the plan. It is to be hastened: the scratch of its groups has no addresses yet."""
        at = self.addresses(partition)
        if at is None:
            return None
        network, plan = self.network, self.given
        groups: list[Group] = []
        program: list[Instruction] = []
        here: set[int] = set()
        for n, (first, end) in enumerate(self.groups(partition), 1):
            operators = self.order[first:end]
            there = self.alive(first, end, at)
            streamed = streamed_of(self.problem, operators) - there
            found = self.named(first, end, there)
            assert found is not None
            name = f"g{n}"
            while name in network.operator_id:
                name = "_" + name
            group = self.fastest.group(operators, streamed)
            groups.append(group.group(found.nest, name, found.scratch))
            crossing = group.law(found.nest).crossing
            for t in sorted(there - here):
                program.append(Alloc(network.tensors[t].name, at[t]))
            program.append(
                Run(name, tuple((network.tensors[t].name, moved) for t, moved in crossing.items()))
            )
            here |= there
            for t in sorted(here):
                if self.last[t] < end:
                    program.append(Free(network.tensors[t].name))
                    here.discard(t)
        return Plan(
            network, plan.chip, plan.budget, tuple(program), plan.result, tuple(groups), options=plan.options
        )


def _may_be(problem: FusionProblem, operators: tuple[int, ...]) -> bool:
    if len(operators) == 1:
        return True
    if len(operators) > SMALL and not (len(problem.network.order) <= FEW or closed(problem, operators)):
        return False
    if not candidates.joined(problem, mask(operators)):
        return False
    return not isinstance(axes_of(problem.network, operators), str)
