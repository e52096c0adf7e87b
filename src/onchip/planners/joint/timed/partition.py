"""The partition into groups of neighbouring operators whose times together are least, all tensors streamed.

Groups of fewest bytes are not the fastest. Every interval of the network's order that hangs together is
searched for its fastest nest in the whole budget; as groups run one after the other, their times add up, and
the best partition follows operator by operator.
"""

from __future__ import annotations

from itertools import pairwise

from onchip.network import bits, mask
from onchip.network.axes import axes_of
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.candidates import closed, joined
from onchip.planners.joint.timed.hasten import Fastest
from onchip.plans import Plan, Run

__all__ = ["streamed_of", "streaming_plan"]

SMALL, LARGEST = 4, 6
"""Most operators of any group, and of one that is `closed`."""


def streamed_of(problem: FusionProblem, operators: tuple[int, ...]) -> frozenset[int]:
    """Return all operands of a group from outside, and all that leave it."""
    members = mask(operators)
    return frozenset(bits(problem.external(members) | problem.escaping(members)))


def streaming_plan(plan: Plan, problem: FusionProblem, fastest: Fastest) -> Plan | None:
    """Return a plan whose runs are of the best partition, in any nests; None where an operator has none.

    It is to be hastened: its groups are not declared, but for the operators of every run.
    """
    network = problem.network
    order = network.order
    best: list[tuple[int, int] | None] = [(0, 0)]  # picoseconds up to an operator, and the last group's first
    for end in range(1, len(order) + 1):
        options = []
        for first in range(max(0, end - LARGEST), end):
            before, operators = best[first], order[first:end]
            if before is None or not _may_be(problem, operators):
                continue
            if fastest.limits.over():
                return None
            found = fastest.of(operators, streamed_of(problem, operators), problem.budget)
            if found is not None:
                options.append((before[0] + found.time, first))
        best.append(min(options, default=None))
    if best[-1] is None:
        return None
    cuts = [len(order)]
    while cuts[-1]:
        last = best[cuts[-1]]
        assert last is not None
        cuts.append(last[1])
    cuts.reverse()
    groups, program = [], []
    for n, (first, end) in enumerate(pairwise(cuts), 1):
        operators = order[first:end]
        streamed = streamed_of(problem, operators)
        found = fastest.of(operators, streamed, problem.budget)
        assert found is not None
        name = f"g{n}"
        while name in network.operator_id:
            name = "_" + name
        group = fastest.group(operators, streamed)
        groups.append(group.group(found.nest, name, found.scratch))
        crossing = group.law(found.nest).crossing
        program.append(Run(name, tuple((network.tensors[t].name, moved) for t, moved in crossing.items())))
    return Plan(
        plan.network, plan.chip, plan.budget, tuple(program), plan.result, tuple(groups), options=plan.options
    )


def _may_be(problem: FusionProblem, operators: tuple[int, ...]) -> bool:
    if len(operators) == 1:
        return True
    if len(operators) > SMALL and not closed(problem, operators):
        return False
    if not joined(problem, mask(operators)):
        return False
    return not isinstance(axes_of(problem.network, operators), str)
