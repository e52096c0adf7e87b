"""The runs of a program, and the bytes that are free while each runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onchip.plans import Alloc, Free, Group, Load, Plan, Run

__all__ = ["Range", "RunAt", "free_ranges", "largest", "runs_of"]

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RunAt:
    """A run of a program: where it stands, its operators in the network's order, the tensors (roots) that it
    streams, its group if it has one, and the ranges that tensors take meanwhile.
    """

    index: int
    operators: tuple[int, ...]
    streamed: frozenset[int]
    group: Group | None
    taken: tuple[Range, ...]


def runs_of(plan: Plan) -> list[RunAt]:
    """Return the runs of a legal plan in turn."""
    network = plan.network
    groups = {group.name: group for group in plan.groups}
    sizes = {t.name: plan.chip.round_up(t.bytes) for t in network.tensors}
    there: dict[str, Range] = {}
    found = []
    for index, step in enumerate(plan.program):
        if isinstance(step, Alloc) and step.over is not None:
            there.pop(step.over, None)  # its bytes are those of the tensor that is written there
        if isinstance(step, Load | Alloc):
            there[step.tensor] = step.address, step.address + sizes[step.tensor]
        elif isinstance(step, Free):
            del there[step.tensor]
        elif isinstance(step, Run):
            group = groups.get(step.operator)
            names = (step.operator,) if group is None else group.operators
            inside = {network.operator_id[name] for name in names}
            streamed = frozenset(network.root[network.tensor_id[t]] for t, _ in step.streaming)
            ids = tuple(v for v in network.order if v in inside)
            found.append(RunAt(index, ids, streamed, group, tuple(sorted(there.values()))))
    return found


def free_ranges(taken: Iterable[Range], budget: int, alignment: int) -> list[Range]:
    """Return the ranges of a budget that are free beside some others."""
    found, at = [], 0
    for low, high in sorted(taken):
        if low > at:
            found.append((at, low))
        at = max(at, high)
    if at < budget:
        found.append((-(-at // alignment) * alignment, budget))
    return [one for one in found if one[0] < one[1]]


def largest(ranges: Sequence[Range]) -> Range:
    """Return the largest range, an empty one if there is none."""
    return max(ranges, key=lambda one: (one[1] - one[0], -one[0]), default=(0, 0))
