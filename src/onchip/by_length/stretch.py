"""The proof that one plan is the best at every length of a stretch, from its two ends.

Let the rooms of tensors and workspaces only grow with the length, and the bytes of every tensor grow evenly:
at length L they are on the straight line between those at the ends a < b. Then

1. A plan of b is legal at every shorter length: the same instructions at the same addresses, in ranges that
   are parts of what they were. What it moves is a sum of tensors' bytes, so that it grows evenly, too.
2. A schedule with room at L has room at a. So no plan of length L moves less than G(L), the least of all
   schedules that have room with the sizes of a, priced at L.
3. G is the least of sums that grow evenly, so it is concave: between a and b it is nowhere below the straight
   line through G(a) and G(b). Both are searches: rooms of a, prices of a and of b.

What a plan moves beyond the best at any length between is then at most the value on the line between what it
moves beyond G(a) at a and beyond G(b) at b. If both are 0, the plan is optimal at every length between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from onchip.base.errors import IllegalPlan
from onchip.by_length.series import At
from onchip.check import certify
from onchip.check.rules import Broken
from onchip.check.streaming import crossing_bytes
from onchip.check.units import streams_of, units_of
from onchip.network import Network
from onchip.planners.limits import Limits
from onchip.planners.placement.exact import search
from onchip.plans import Instruction, Plan, Run, Status, bind

__all__ = ["Stretch", "at_network", "evenly", "least", "plan_at", "stretch"]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lengths [first, last], and at each end the traffic of one plan and the least there can be, in bytes."""

    first: int
    last: int
    moved: tuple[int, int]
    least: tuple[int, int]

    @property
    def gaps(self) -> tuple[int, int]:
        """The bytes at both ends that the plan moves beyond the least."""
        return self.moved[0] - self.least[0], self.moved[1] - self.least[1]

    def bound(self, length: int) -> int:
        """Return bytes that every plan of a length moves at least, beyond what is compulsory."""
        if self.first == self.last:
            return self.least[0]
        a, b = self.least
        return -(-(a * (self.last - length) + b * (length - self.first)) // (self.last - self.first))


def at_network(plan: Plan, network: Network, least: int = 0) -> Plan | None:
    """Return a plan of a longer network for a shorter one, proved legal there; None if it is not.

    `least` are the bytes that every plan of the shorter network moves: of traffic, or of all if that is the
    plan's objective.
    """
    fused = plan.options.get("objective") == "dram"
    try:
        made = certify(
            network,
            plan.chip,
            plan.budget,
            _crossing(plan, network) if plan.groups else plan.program,
            status="feasible",
            lower_bound_bytes=0,
            dram_lower_bound_bytes=0 if fused else None,
            seconds=plan.result.seconds,
            space=plan.result.space,
            groups=plan.groups,
            layouts=plan.layouts,
            caches=plan.caches,
            options=plan.options,
        )
    except (IllegalPlan, Broken):
        return None
    moved = made.result.dram_bytes if fused else made.result.traffic_bytes
    bound = min(least, moved)
    status: Status = "optimal" if bound == moved else "feasible"
    result = replace(made.result, status=status, lower_bound_bytes=0 if fused else bound)
    return bind(replace(made, result=replace(result, dram_lower_bound_bytes=bound if fused else None)))


def _crossing(plan: Plan, network: Network) -> tuple[Instruction, ...]:
    """Return a plan's program with the bytes that cross in another network. Raises `Broken` if none do."""
    units = units_of(
        network,
        plan.groups,
        alignment=plan.chip.alignment_bytes,
        weights_resident=False,
        streamed=streams_of(plan.program),
    )
    program: list[Instruction] = []
    for step in plan.program:
        if isinstance(step, Run) and step.streaming:
            ids = {name: network.tensor_id[name] for name, _ in step.streaming}
            crossing = crossing_bytes(network, units[step.operator], tuple(ids.values()))
            step = replace(step, streaming=tuple((name, crossing[t]) for name, t in ids.items()))
        program.append(step)
    return tuple(program)


def plan_at(plan: Plan, at: At, least: int) -> Plan | None:
    """Return the same for the network of a length."""
    return at_network(plan, at.network, least)


def least(rooms: At, prices: At, room: int, limits: Limits) -> int:
    """Return bytes that every schedule moves at least that has room with the sizes of one length, at the
    prices of another."""
    problem = replace(rooms.problem, cost=prices.problem.cost)
    return search(problem, room, limits).bound


def evenly(some: Sequence[At]) -> bool:
    """Return whether rooms only grow, and every tensor's bytes lie on a line, from the first to the last."""
    first, last = some[0], some[-1]
    if any(at.structure != first.structure for at in some):
        return False
    for one, other in pairwise(some):
        if any(a > b for a, b in zip(one.rooms, other.rooms, strict=True)):
            return False
    span = last.length - first.length
    ends = list(zip(first.problem.cost, last.problem.cost, strict=True))
    for at in some[1:-1]:
        done = at.length - first.length
        if any((c - a) * span != (b - a) * done for c, (a, b) in zip(at.problem.cost, ends, strict=True)):
            return False
    return True


def stretch(plan: Plan, first: At, last: At, room: int, limits: Limits) -> Stretch | None:
    """Return the stretch between two lengths for a plan that is legal at the last; None if it has none.

    That sizes grow evenly in between is left to `evenly`.
    """
    if first.structure != last.structure or not evenly((first, last)):
        return None
    short = plan_at(plan, first, 0)
    long = plan_at(plan, last, 0)
    if short is None or long is None:
        return None
    low = least(first, first, room, limits)
    high = low if first.length == last.length else least(first, last, room, limits)
    moved = short.result.traffic_bytes, long.result.traffic_bytes
    return Stretch(first.length, last.length, moved, (low, high))
