"""The partition into groups of neighbouring operators whose costs together are least: time, or another aim.

Groups of fewest bytes are not the fastest. Intervals of the network's order that hang together are searched
for their fastest nests, or for those that cost an aim least; as groups run one after the other, their times
and bytes add up, and the best partition follows operator by operator. A tensor between groups goes through
DRAM, or lies whole on chip from the group that makes it to the last one that reads it: the groups meanwhile
have so much less room, and move none of it. Whole tensors are chosen one by one, each where the whole plan
gets better.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from onchip.network import bits, mask
from onchip.network.axes import axes_of
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.candidates import closed, joined
from onchip.planners.joint.timed.bound import least_work
from onchip.planners.joint.timed.hasten import Fastest
from onchip.planners.joint.timed.pricing import Priced
from onchip.planners.packing import Buffer, pack
from onchip.plans import Alloc, Free, Group, Instruction, Plan, Run

__all__ = ["partitioned_plan", "streamed_of"]

SMALL, LARGEST = 4, 7
"""Most operators of any group, and of one that is `closed`."""

ROUNDS = 4
"""Times that the best partition is searched longer, and made again."""

OPTIMISM = 24
"""A group that was searched for a short time may still get better by one part in so many."""

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


def partitioned_plan(plan: Plan, problem: FusionProblem, fastest: Fastest, longer: int) -> Plan | None:
    """Return a plan of the best partition, in the nests found; None where an operator has none.

    Groups of the partition are searched with the effort `longer`.
    """
    return _Partitions(plan, problem, fastest, longer).plan()


class _Partitions:
    def __init__(self, plan: Plan, problem: FusionProblem, fastest: Fastest, longer: int) -> None:
        self.given, self.problem, self.fastest, self.longer = plan, problem, fastest, longer
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
        work = [least_work(network, v, plan.chip.tiles) for v in self.order]
        self.rest = [sum(work[n:]) for n in range(len(work) + 1)]
        self.may: dict[tuple[int, int], bool] = {}
        self.searched: set[object] = set()
        self.known: dict[tuple[int, int, frozenset[int]], Priced | None] = {}

    # -- the best partition --------------------------------------------------------------------------------

    def plan(self) -> Plan | None:
        best = self.settled(frozenset(), None)
        if best is None:
            return None
        tried: set[int] = set()
        while not self.fastest.limits.over():
            between = [t for t in self.between(best) if t not in tried and t not in best.whole]
            if not between:
                break
            t = max(between, key=lambda t: (self.size[t], -t))
            tried.add(t)
            other = self.settled(best.whole | {t}, best.cost)
            if other is not None and other.cost < best.cost and self.addresses(other) is not None:
                best = other
        return self.program(best)

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
        found = None
        for _ in range(ROUNDS):
            found = self.best(whole, below)
            if found is None or self.fastest.limits.over():
                break
            short = [one for one in self.groups(found) if not self.long(*one)]
            if not short:
                break
            for first, end in short:
                self.group(first, end, whole, effort=self.longer)
                self.searched.add((first, end, self.alive(first, end, whole)))
        return found

    def best(self, whole: frozenset[int], below: int | None) -> Partition | None:
        """Return the best partition with some tensors whole; None if it is not below some cost."""
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
                if self.fastest.limits.over():
                    return None
                found = self.group(first, end, whole)
                if found is not None:
                    cost = self.fastest.cost(found)
                    if not self.long(first, end):
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
        return (first, end, self.alive(first, end, self.whole)) in self.searched

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
        operators = self.order[first:end]
        there = self.alive(first, end, whole)
        room = self.problem.budget - sum(self.size[t] for t in there)
        if room < 1:
            return None
        key = first, end, there
        if key not in self.known or effort is not None:
            streamed = streamed_of(self.problem, operators) - there
            self.known[key] = self.fastest.of(operators, streamed, room, effort=effort)
        return self.known[key]

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
            found = self.group(first, end, partition.whole)
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
    if len(operators) > SMALL and not closed(problem, operators):
        return False
    if not joined(problem, mask(operators)):
        return False
    return not isinstance(axes_of(problem.network, operators), str)
