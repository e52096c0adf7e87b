"""Groups beside the one before: their first loads come, and its last stores go, while the other one works.

A group may begin so where it reads nothing that the one before it stores, nothing is copied between the two,
and its scratch and its outputs have bytes of their own before that one runs. Each is tried in turn, and stays
where the whole plan is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from onchip.check.nest_clock import channels_on, tree_for, work_of
from onchip.check.nest_durations import Durations
from onchip.check.nest_layouts import tiles_of_buffers
from onchip.check.nest_times import NestTimes, NoTimes
from onchip.check.nest_walk import Tree
from onchip.check.units import streams_of, units_of
from onchip.network import Network, bits
from onchip.planners.joint.rooms import free_ranges, largest
from onchip.planners.limits import Limits
from onchip.plans import Alloc, Free, Group, Instruction, Load, Nest, Plan, Run, Scratch

__all__ = ["side_by_side"]


def side_by_side(plan: Plan, limits: Limits) -> Plan:
    """Return a legal plan of nests with groups beside the one before where that makes it faster.

    A group that is beside none waits for all before it. So groups that follow each other beside one another
    take as long wherever they begin, and each is tried in their time alone.
    """
    times = _Times(plan)
    names = [step.operator for step in plan.program if isinstance(step, Run)]
    together, taken = names[:1], times.of(names[:1])
    for before, name in pairwise(names):
        alone = times.of([name])
        tried = None if limits.over() else _beside(plan, before, name)
        if tried is not None and taken is not None and alone is not None:
            both = times.of([*together, name])
            if both is not None and both < taken + alone:
                plan, together, taken = tried, [*together, name], both
                continue
        together, taken = [name], alone
    return plan


class _Times:
    """The picoseconds of groups of a plan that run beside each other."""

    def __init__(self, plan: Plan) -> None:
        assert plan.chip.tiles is not None
        self.tiles, self.accumulator = plan.chip.tiles, plan.chip.accumulator_bytes
        units = units_of(
            plan.network,
            plan.groups,
            alignment=plan.chip.alignment_bytes,
            weights_resident=False,
            streamed=streams_of(plan.program),
            accumulator=self.accumulator,
        )
        layouts = {plan.network.tensor_id[one.tensor]: one for one in plan.layouts}
        self.known: dict[str, tuple[Tree, Durations]] = {}
        for group in plan.groups:
            layout = units[group.name].nest
            with suppress(NoTimes):
                if layout is not None:
                    work = work_of(plan.network, layout)
                    in_tiles = tiles_of_buffers(layout, layouts)
                    durations = Durations(layout, self.tiles, work, self.accumulator, in_tiles)
                    self.known[group.name] = tree_for(plan.network, group, layout), durations

    def of(self, names: Sequence[str]) -> int | None:
        """Return how long groups take of which each is beside the one before; None where no time is known."""
        clock = NestTimes(self.tiles)
        try:
            for n, name in enumerate(names):
                tree, durations = self.known[name]
                clock.run(tree, durations, channels_on(self.tiles), beside=n > 0)
        except (KeyError, NoTimes):
            return None
        return clock.finish()


def _beside(plan: Plan, before: str, name: str) -> Plan | None:
    """Return a plan with one group beside the one before it; None where there is no room, or it may not."""
    program = list(plan.program)
    first = next(n for n, step in enumerate(program) if isinstance(step, Run) and step.operator == before)
    last = next(n for n, step in enumerate(program) if isinstance(step, Run) and step.operator == name)
    groups = {group.name: group for group in plan.groups}
    run = program[first]
    assert isinstance(run, Run)
    reads, writes = _touched(plan.network, groups[name])
    made = _touched(plan.network, groups[before])[1]
    if {t for t, _ in run.streaming} & made & reads:
        return None
    between = program[first + 1 : last]
    if not all(isinstance(step, Alloc | Free | Scratch) for step in between):
        return None
    mine = [step for step in between if isinstance(step, Alloc) and step.tensor in writes]
    if any(step.over is not None for step in mine):
        return None
    sizes = {t.name: plan.chip.round_up(t.bytes) for t in plan.network.tensors}
    taken, other = _taken(plan, first, sizes)
    behind, _ = _taken(plan, last, sizes)
    own = [(step.address, step.address + sizes[step.tensor]) for step in mine]
    if any(low < high_ and low_ < high for low, high in own for low_, high_ in (*taken, *other)):
        return None
    low, high = largest(free_ranges([*taken, *other, *behind, *own], plan.budget, plan.chip.alignment_bytes))
    if high - low < groups[name].scratch_bytes:
        return None
    scratch = [Scratch(name, low)] if groups[name].scratch_bytes else []
    rest = [step for step in between if step not in mine and not _of(step, name)]
    moved = [*program[:first], *mine, *scratch, run, *rest, *program[last:]]
    changed = []
    for group in plan.groups:
        if group.name == name:
            assert isinstance(group.tiling, Nest)
            group = replace(group, tiling=replace(group.tiling, beside=True))
        changed.append(group)
    return replace(plan, program=tuple(moved), groups=tuple(changed))


def _of(step: Instruction, name: str) -> bool:
    return isinstance(step, Scratch) and step.operator == name


def _touched(network: Network, group: Group) -> tuple[set[str], set[str]]:
    """Return the tensors that a group reads from outside, and those that it makes."""
    reads = writes = 0
    for operator in group.operators:
        v = network.operator_id[operator]
        reads |= network.reads[v]
        writes |= network.writes[v]
    names = [t.name for t in network.tensors]
    return {names[t] for t in bits(reads & ~writes)}, {names[t] for t in bits(writes)}


def _taken(
    plan: Plan, until: int, sizes: dict[str, int]
) -> tuple[Sequence[tuple[int, int]], Sequence[tuple[int, int]]]:
    """Return the ranges that tensors take at an instruction, and those reserved for groups that run then."""
    there: dict[str, tuple[int, int]] = {}
    scratch: dict[str, tuple[int, int]] = {}
    bytes_ = {group.name: plan.chip.round_up(group.scratch_bytes) for group in plan.groups}
    for n, step in enumerate(plan.program[: until + 1]):
        if isinstance(step, Load | Alloc):
            there[step.tensor] = step.address, step.address + sizes[step.tensor]
        elif isinstance(step, Free):
            del there[step.tensor]
        elif isinstance(step, Scratch):
            scratch[step.operator] = step.address, step.address + bytes_[step.operator]
        elif isinstance(step, Run) and n < until:
            scratch.pop(step.operator, None)
    return list(there.values()), list(scratch.values())
