"""Groups beside the one before: their first loads come, and its last stores go, while the other one works.

A group may begin so where it reads nothing that the one before it stores, nothing is copied between the two,
and its scratch and its outputs have bytes of their own before that one runs. Each is tried in turn, and stays
where the whole plan is faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise

from onchip.check.nest_clock import channels_on, tree_for, work_of
from onchip.check.nest_durations import Durations
from onchip.check.nest_layouts import tiles_of_buffers
from onchip.check.nest_times import NestTimes, NoTimes
from onchip.check.nest_walk import Tree
from onchip.check.units import streams_of, units_of
from onchip.network import Network, bits
from onchip.planners.joint.rooms import Range, free_ranges, largest
from onchip.planners.limits import Limits
from onchip.plans import Alloc, Free, Group, Instruction, Load, Nest, Plan, Run, Scratch

__all__ = ["side_by_side"]


def side_by_side(plan: Plan, limits: Limits) -> Plan:
    """Return a legal plan of nests with groups beside the one before where that makes it faster.

    A group that is beside none waits for all before it. So groups that follow each other beside one another
    take as long wherever they begin, and each is tried in their time alone.
    """
    times, places = _Times(plan), _Places(plan)
    names = [step.operator for step in plan.program if isinstance(step, Run)]
    together, taken = names[:1], times.of(names[:1])
    for before, name in pairwise(names):
        alone = times.of([name])
        tried = None if limits.over() else places.beside(plan, before, name)
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


class _Places:
    """The bytes that are taken at the groups of a plan, which are looked at in turn."""

    def __init__(self, plan: Plan) -> None:
        self.budget, self.alignment = plan.budget, plan.chip.alignment_bytes
        self.size = {t.name: plan.chip.round_up(t.bytes) for t in plan.network.tensors}
        self.reserved = {group.name: plan.chip.round_up(group.scratch_bytes) for group in plan.groups}
        self.touched = {group.name: _touched(plan.network, group) for group in plan.groups}
        self.scratch = {group.name: group.scratch_bytes for group in plan.groups}
        self.walked, self.here = 0, _Taken()

    def beside(self, plan: Plan, before: str, name: str) -> Plan | None:
        """Return a plan with one group beside the one before it; None where there is no room, or it may not.

        What stands in front of the group before is as in the plan that was looked at last.
        """
        program = plan.program
        first = _run_of(program, before, self.walked)
        last = _run_of(program, name, first)
        for step in program[self.walked : first]:
            self.here.follow(step, self.size, self.reserved)
        self.walked = first
        run = program[first]
        assert isinstance(run, Run)
        reads, writes = self.touched[name]
        if {t for t, _ in run.streaming} & self.touched[before][1] & reads:
            return None
        between = program[first + 1 : last]
        if not all(isinstance(step, Alloc | Free | Scratch) for step in between):
            return None
        mine = [step for step in between if isinstance(step, Alloc) and step.tensor in writes]
        if any(step.over is not None for step in mine):
            return None
        taken, behind = self.here.ranges(), self.here.copy()
        for step in program[first:last]:
            behind.follow(step, self.size, self.reserved)
        own = [(step.address, step.address + self.size[step.tensor]) for step in mine]
        if any(low < high_ and low_ < high for low, high in own for low_, high_ in taken):
            return None
        every = [*taken, *behind.tensors.values(), *own]
        low, high = largest(free_ranges(every, self.budget, self.alignment))
        if high - low < self.scratch[name]:
            return None
        scratch = [Scratch(name, low)] if self.scratch[name] else []
        rest = [step for step in between if step not in mine and not _of(step, name)]
        moved = [*program[:first], *mine, *scratch, run, *rest, *program[last:]]
        changed = []
        for group in plan.groups:
            if group.name == name:
                assert isinstance(group.tiling, Nest)
                group = replace(group, tiling=replace(group.tiling, beside=True))
            changed.append(group)
        return replace(plan, program=tuple(moved), groups=tuple(changed))


def _run_of(program: Sequence[Instruction], name: str, begin: int) -> int:
    """Return where a group runs, from an instruction on."""
    for n in range(begin, len(program)):
        step = program[n]
        if isinstance(step, Run) and step.operator == name:
            return n
    raise ValueError(f"{name} runs no more")


def _of(step: Instruction, name: str) -> bool:
    return isinstance(step, Scratch) and step.operator == name


def _touched(network: Network, group: Group) -> tuple[set[str], set[str]]:
    """Return the tensors that a group reads from outside, and those that it makes."""
    reads = writes = 0
    for operator in group.operators:
        v = network.operator_id[operator]
        reads |= network.reads[v]
        writes |= network.writes[v]
    tensors = network.tensors
    return {tensors[t].name for t in bits(reads & ~writes)}, {tensors[t].name for t in bits(writes)}


@dataclass
class _Taken:
    """The ranges that tensors take, and those reserved for groups that have not run."""

    tensors: dict[str, Range] = field(default_factory=dict)
    scratch: dict[str, Range] = field(default_factory=dict)

    def copy(self) -> _Taken:
        return _Taken(dict(self.tensors), dict(self.scratch))

    def ranges(self) -> list[Range]:
        return [*self.tensors.values(), *self.scratch.values()]

    def follow(self, step: Instruction, size: Mapping[str, int], reserved: Mapping[str, int]) -> None:
        if isinstance(step, Alloc) and step.over is not None:
            self.tensors.pop(step.over, None)  # its bytes are those of what is written there
        if isinstance(step, Load | Alloc):
            self.tensors[step.tensor] = step.address, step.address + size[step.tensor]
        elif isinstance(step, Free):
            del self.tensors[step.tensor]
        elif isinstance(step, Scratch):
            self.scratch[step.operator] = step.address, step.address + reserved[step.operator]
        elif isinstance(step, Run):
            self.scratch.pop(step.operator, None)
