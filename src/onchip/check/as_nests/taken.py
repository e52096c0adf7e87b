"""The groups in bands, blocks and boxes of a plan that may as well be nests of loops.

A group may where its nest lets no more bytes cross and has room: in the free bytes around the group's own
scratch, so that nothing else moves, or in all that are free while it runs, if these are brought together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from onchip.check.as_nests.convert import AsNest, as_nest
from onchip.check.as_nests.plan import FORMS, streams
from onchip.check.as_nests.running import Running, running
from onchip.check.parts import up
from onchip.network.maps import Maps
from onchip.plans import Group, Instruction, Plan, Run, Scratch

__all__ = ["Costless", "Taken", "costless_nests", "taken"]


@dataclass(frozen=True, slots=True)
class Costless:
    """Nests that let no more bytes cross than their groups in tiles, by the group's name.

    `around` have room where the scratch of the group is, `elsewhere` only if other addresses are found.
    `runs` are the units of the plan as they run.
    """

    around: Mapping[str, AsNest]
    elsewhere: Mapping[str, AsNest]
    runs: Mapping[str, Running]


@dataclass(frozen=True, slots=True)
class Taken:
    """A program with its groups, of which some became nests, and the bytes that cross less than before."""

    program: tuple[Instruction, ...]
    groups: tuple[Group, ...]
    saved_bytes: int


def costless_nests(plan: Plan, *, dearer: bool = False) -> Costless:
    """Return the nests that may take the place of a legal plan's groups in tiles; with `dearer` those, too,
    that let more bytes cross.

    Raises `IllegalPlan` for a program that is not legal.
    """
    around, elsewhere = dict[str, AsNest](), dict[str, AsNest]()
    if not any(type(group.tiling) in FORMS for group in plan.groups):
        return Costless(around, elsewhere, {})
    _, runs = running(plan)
    maps = Maps(plan.network)
    for group in plan.groups:
        if type(group.tiling) not in FORMS:
            continue
        run = runs[group.name]
        room = run.around.stop - up(run.around.start, plan.chip.alignment_bytes)
        if (nest := _nest(plan, maps, group, run, room, dearer)) is not None:
            around[group.name] = nest
        elif room < run.free and (nest := _nest(plan, maps, group, run, run.free, dearer)) is not None:
            elsewhere[group.name] = nest
    return Costless(around, elsewhere, runs)


def taken(plan: Plan, found: Costless, nests: Mapping[str, AsNest]) -> Taken:
    """Return a plan's program in which some groups are nests.

    The scratch of each lies in the free bytes around the group's own, if it has room there.
    """
    program = tuple(_step(plan, step, nests, found.runs) for step in plan.program)
    saved = sum(_crossing(found.runs[name]) - nest.dram_bytes for name, nest in nests.items())
    groups = tuple(nests[g.name].group if g.name in nests else g for g in plan.groups)
    return Taken(program, groups, saved)


def _nest(plan: Plan, maps: Maps, group: Group, run: Running, room: int, dearer: bool) -> AsNest | None:
    """Return the nest of a group; None if it has none, or one that is `dearer` or has not the room."""
    chip = plan.chip
    made = as_nest(
        maps, group, run.unit, alignment=chip.alignment_bytes, accumulator=chip.accumulator_bytes, room=room
    )
    if not isinstance(made, AsNest) or (made.dram_bytes > _crossing(run) and not dearer):
        return None
    return made if up(made.group.scratch_bytes, chip.alignment_bytes) <= room else None


def _crossing(run: Running) -> int:
    assert run.unit.crossing is not None
    return sum(run.unit.crossing.values()) + run.unit.weights


def _step(
    plan: Plan, step: Instruction, nests: Mapping[str, AsNest], runs: Mapping[str, Running]
) -> Instruction:
    if isinstance(step, Run) and step.operator in nests:
        return streams(plan, step, nests[step.operator])
    if isinstance(step, Scratch) and step.operator in nests:
        alignment = plan.chip.alignment_bytes
        size = up(nests[step.operator].group.scratch_bytes, alignment)
        last = (runs[step.operator].around.stop - size) // alignment * alignment
        return replace(step, address=max(0, min(step.address, last)))
    return step
