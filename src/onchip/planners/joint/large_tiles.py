"""A plan's nests with larger tiles, where there is room and no byte more crosses.

Of nests that move the same bytes a search takes any: often one of the smallest tiles, for these need least
room, and none over which windows slide is widened while it searches. What is free while a group runs then
makes its tiles larger, by the checker's law: fewer steps, and fewer, longer transfers.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from onchip.check.nests import Nested, nested
from onchip.check.rules import Broken
from onchip.machines.chip import Chip
from onchip.network import Network
from onchip.network.axes import GroupAxes, axes_of
from onchip.planners.joint.rooms import RunAt, free_ranges, runs_of
from onchip.planners.limits import Limits
from onchip.planners.nests.widening import Place, places, tile_at, with_tile
from onchip.plans import Group, Nest, Plan, Result, Run, Scratch

__all__ = ["larger", "with_large_tiles"]


def with_large_tiles(plan: Plan, chip: Chip, limits: Limits) -> Plan:
    """Return a legal plan whose nests have larger tiles, not certified: the same plan where nothing grows.

    Addresses stay; the scratch of groups grows into what is free behind it while they run, and their runs
    state what crosses then. That may be less: where a search was cut short, or where a group in bands or
    blocks becomes a nest of no family that was searched. The claimed bound is then no higher than the bytes.
    Nothing grows on a chip whose buffer has parts, as a nest knows one room.
    """
    if chip.buffer is not None:
        return plan
    addresses = {step.operator: step.address for step in plan.program if isinstance(step, Scratch)}
    groups, program = {group.name: group for group in plan.groups}, list(plan.program)
    saved = 0
    for run in runs_of(plan):
        if run.group is None or run.group.name not in addresses or limits.over():
            continue
        grown = larger(
            plan.network,
            run.group,
            run.operators,
            run.streamed,
            _room(run, addresses[run.group.name], plan),
            alignment=plan.chip.alignment_bytes,
            accumulator=plan.chip.accumulator_bytes,
        )
        if grown != run.group:
            law = _law(plan, run, grown)
            saved += _law(plan, run, run.group).moved - law.moved
            groups[grown.name] = grown
            program[run.index] = _run(plan, run, law)
    found = tuple(groups.values())
    if found == plan.groups:
        return plan
    return replace(plan, program=tuple(program), groups=found, result=_with_less(plan.result, saved))


def _law(plan: Plan, run: RunAt, group: Group) -> Nested:
    chip = plan.chip
    return nested(
        plan.network, group, run.operators, run.streamed, chip.alignment_bytes, chip.accumulator_bytes
    )


def _run(plan: Plan, run: RunAt, law: Nested) -> Run:
    """Return a group's run with the bytes that cross in its nest."""
    step = plan.program[run.index]
    assert isinstance(step, Run)
    roots = {name: plan.network.root[plan.network.tensor_id[name]] for name, _ in step.streaming}
    return replace(step, streaming=tuple((name, law.crossing[root]) for name, root in roots.items()))


def _with_less(result: Result, saved: int) -> Result:
    """Return a plan's figures when so many bytes fewer cross."""
    moved, bound = result.dram_bytes - saved, result.dram_lower_bound_bytes
    return replace(
        result, dram_bytes=moved, dram_lower_bound_bytes=None if bound is None else min(bound, moved)
    )


def _room(run: RunAt, address: int, plan: Plan) -> int:
    """Return the bytes from a scratch's address to the next that is taken while it is in use."""
    free = free_ranges(run.taken, plan.budget, plan.chip.alignment_bytes)
    return next((high - address for low, high in free if low <= address < high), 0)


def larger(
    network: Network,
    group: Group,
    operators: tuple[int, ...],
    streamed: Collection[int],
    room: int,
    *,
    alignment: int = 1,
    accumulator: int | None = None,
) -> Group:
    """Return a group with larger tiles, as far as `room` bytes allow and no more crosses.

    Of those that can grow the one with the most turns takes twice its size first. `operators` are the ids of
    its operators, `streamed` the tensors (roots) that its run streams.
    """
    nest, axes = group.tiling, axes_of(network, operators)
    if not isinstance(nest, Nest) or nest.beside or not isinstance(axes, GroupAxes):
        return group

    def law_of(nest: Nest) -> tuple[int, int] | None:
        try:
            law = nested(network, replace(group, tiling=nest), operators, streamed, alignment, accumulator)
        except Broken:
            return None
        return law.moved, law.layout.extent

    before = law_of(nest)
    if before is None:
        return group
    moved, extent = before
    sizes = {cut.name: cut.axes for cut in axes.operators}
    growing = set(places(nest.body))
    while growing:
        most: tuple[int, Place] | None = None
        for place in sorted(growing):
            tile, size, _ = tile_at(nest, sizes, place)
            turns = -(-size // tile)
            if turns == 1:
                growing.discard(place)
            elif most is None or turns > most[0]:
                most = turns, place
        if most is None:
            break
        place = most[1]
        tile, size, _ = tile_at(nest, sizes, place)
        wide = replace(nest, body=with_tile(nest.body, place, min(size, 2 * tile)))
        law = law_of(wide)
        if law is None or law[0] > moved or law[1] > room:
            growing.discard(place)
        else:
            nest, extent = wide, law[1]
    return replace(group, tiling=nest, scratch_bytes=max(group.scratch_bytes, extent))
