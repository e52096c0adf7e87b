"""Nests with larger tiles, where there is room and no byte more crosses: docs/nests-search.md.

Of nests that move the same bytes the search takes any: often one of the smallest tiles, for these need least
room. Whatever is free while a group runs then makes its tiles larger: fewer steps, and fewer, longer
transfers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from onchip.check.nests import nested
from onchip.check.rules import Broken
from onchip.network.axes import GroupAxes, axes_of
from onchip.planners.joint.timed.rooms import RunAt, free_ranges, runs_of
from onchip.planners.limits import Limits
from onchip.plans import Group, Leaf, Loop, Nest, Plan, Scratch

__all__ = ["widened"]

Body = tuple[Loop | Leaf, ...]

Where = tuple[int, ...]
"""The number of an item in every body on the way to a loop or a leaf; behind that of a leaf its slice's."""


def widened(plan: Plan, limits: Limits) -> Plan:
    """Return a legal plan whose nests have larger tiles, not certified: the same plan where nothing is wider.

    Program and addresses stay; the scratch of groups grows into what is free behind it while they run.
    """
    addresses = {step.operator: step.address for step in plan.program if isinstance(step, Scratch)}
    groups = {group.name: group for group in plan.groups}
    for run in runs_of(plan):
        if run.group is not None and run.group.name in addresses and not limits.over():
            room = _room(run, addresses[run.group.name], plan)
            groups[run.group.name] = _wider(plan, run, run.group, room)
    found = tuple(groups.values())
    return plan if found == plan.groups else replace(plan, groups=found)


def _room(run: RunAt, address: int, plan: Plan) -> int:
    """Return the bytes from a scratch's address to the next that is taken while it is in use."""
    free = free_ranges(run.taken, plan.budget, plan.chip.alignment_bytes)
    return next((high - address for low, high in free if low <= address < high), 0)


@dataclass(frozen=True)
class _Slot:
    """A loop's tile, or that of a leaf's slice: where it is, its size, and that of the axis."""

    where: Where
    tile: int
    size: int

    def with_tile(self, tile: int) -> _Slot:
        return replace(self, tile=tile)

    @property
    def turns(self) -> int:
        return -(-self.size // self.tile)


def _wider(plan: Plan, run: RunAt, group: Group, room: int) -> Group:
    """Return a group with larger tiles. Of those that can grow the one with the most turns grows first, to
    twice its size."""
    nest = group.tiling
    if not isinstance(nest, Nest) or nest.beside:
        return group
    axes = axes_of(plan.network, run.operators)
    if not isinstance(axes, GroupAxes):
        return group
    before = _law(plan, run, group)
    if before is None:
        return group
    moved, extent = before
    slots = list(_slots(nest.body, axes))
    stuck: set[Where] = set()
    while open_ := [n for n, slot in enumerate(slots) if slot.turns > 1 and slot.where not in stuck]:
        n = max(open_, key=lambda n: slots[n].turns)
        slot = slots[n]
        wide = slot.with_tile(min(slot.size, 2 * slot.tile))
        other = replace(group, tiling=replace(nest, body=_set(nest.body, wide)))
        law = _law(plan, run, other)
        if law is None or law[0] > moved or law[1] > room:
            stuck.add(slot.where)
            continue
        slots[n] = wide
        group, nest, extent = other, replace(nest, body=_set(nest.body, wide)), law[1]
    return replace(group, scratch_bytes=max(group.scratch_bytes, extent))


def _law(plan: Plan, run: RunAt, group: Group) -> tuple[int, int] | None:
    """Return the bytes that cross, and those of the scratch; None where a nest is not legal."""
    try:
        law = nested(
            plan.network,
            group,
            run.operators,
            run.streamed,
            plan.chip.alignment_bytes,
            plan.chip.accumulator_bytes,
        )
    except Broken:
        return None
    return law.moved, law.layout.extent


def _slots(body: Body, axes: GroupAxes, where: Where = ()) -> Iterator[_Slot]:
    """Yield all tiles of a body and of those inside."""
    sizes = {cut.name: cut.axes for cut in axes.operators}
    for n, item in enumerate(body):
        if isinstance(item, Loop):
            name, axis = item.over[0]
            yield _Slot((*where, n), item.tile, sizes[name][axis])
            yield from _slots(item.body, axes, (*where, n))
        else:
            for k, (axis, tile) in enumerate(item.slices):
                yield _Slot((*where, n, k), tile, sizes[item.operator][axis])


def _set(body: Body, slot: _Slot) -> Body:
    """Return a body with another tile."""
    at, *rest = slot.where
    item = body[at]
    if isinstance(item, Leaf):
        [k] = rest
        slices = list(item.slices)
        slices[k] = slices[k][0], slot.tile
        item = replace(item, slices=tuple(slices))
    elif rest:
        item = replace(item, body=_set(item.body, replace(slot, where=tuple(rest))))
    else:
        item = replace(item, tile=slot.tile)
    return (*body[:at], item, *body[at + 1 :])
