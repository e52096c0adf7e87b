"""A whole plan with its bands, blocks and boxes as nests: both figures, and whether it still fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from onchip.base.errors import IllegalPlan
from onchip.base.units import MAX_BYTES
from onchip.check.as_nests.convert import AsNest, as_nest
from onchip.check.as_nests.differences import differences
from onchip.check.as_nests.running import running
from onchip.check.as_nests.unsaid import Unsaid
from onchip.check.certificate import certify
from onchip.check.interpreter import Figures, interpret
from onchip.check.parts import up
from onchip.check.units import Unit
from onchip.network.maps import Maps
from onchip.plans import Blocks, Boxes, Group, Instruction, Plan, Run, Scratch, Tiling

__all__ = ["AsNests", "Compared", "Form", "in_nests", "plan_as_nests"]

Form = Literal["bands", "blocks", "boxes"]

KEPT = "as nests"
"""The key of the answer in `Plan.kept`."""

FORMS: dict[type, Form] = {Tiling: "bands", Blocks: "blocks", Boxes: "boxes"}


@dataclass(frozen=True, slots=True)
class Compared:
    """A group in tiles and the same group in a nest, in bytes: scratch, and what crosses, weights included.

    Without a nest the last two are None, and `reasons` is the one why there is none (a name of `REASONS`);
    else they are those of differences (names of `DIFFERENCES`). `detail` says the first in words.
    """

    name: str
    form: Form
    scratch_bytes: int
    dram_bytes: int
    nest_scratch_bytes: int | None
    nest_dram_bytes: int | None
    reasons: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class AsNests:
    """A plan whose groups in tiles run as nests, as far as these say what they do.

    `dram_bytes` cross in the whole plan then, and `peak_bytes` are the most on chip at once. `fits` says
    whether that is within the budget: `in place`, every range where it is in the plan; `moved`, if addresses
    are found anew; `no`; or `refused`, if such a plan is not legal for another reason, which `refusal` says.
    `program` and `declared` are the plan's with these groups.
    """

    groups: tuple[Compared, ...]
    dram_bytes: int
    peak_bytes: int
    fits: Literal["in place", "moved", "no", "refused"]
    refusal: str
    program: tuple[Instruction, ...]
    declared: tuple[Group, ...]


def plan_as_nests(plan: Plan) -> AsNests | None:
    """Return a legal plan with its groups in bands, blocks or boxes as nests; None if it has none.

    Raises `IllegalPlan` for a program that is not legal.
    """
    if not any(type(group.tiling) in FORMS for group in plan.groups):
        return None
    if KEPT not in plan.kept:
        plan.kept[KEPT] = _as_nests(plan)
    found = plan.kept[KEPT]
    assert isinstance(found, AsNests)
    return found


def _as_nests(plan: Plan) -> AsNests:
    figures, runs = running(plan)
    maps, compared, made = Maps(plan.network), list[Compared](), dict[str, AsNest]()
    for group in plan.groups:
        if type(group.tiling) in FORMS:
            one, nest = _compared(plan, maps, group, runs[group.name].unit, runs[group.name].free)
            compared.append(one)
            if nest is not None:
                made[group.name] = nest
    declared = tuple(made[g.name].group if g.name in made else g for g in plan.groups)
    program = _program(plan, made)
    return _fitting(plan, figures, tuple(compared), declared, program)


def _compared(plan: Plan, maps: Maps, group: Group, unit: Unit, room: int) -> tuple[Compared, AsNest | None]:
    alignment = plan.chip.alignment_bytes
    found = as_nest(
        maps, group, unit, alignment=alignment, accumulator=plan.chip.accumulator_bytes, room=room
    )
    assert unit.crossing is not None
    before = unit.taken_bytes, sum(unit.crossing.values()) + unit.weights
    form = FORMS[type(group.tiling)]
    if isinstance(found, Unsaid):
        return Compared(group.name, form, *before, None, None, (found.why,), found.detail), None
    after = found.group.scratch_bytes, found.dram_bytes
    reasons = () if after == before else differences(plan.network, group, unit, found, alignment)
    return Compared(group.name, form, *before, *after, reasons), found


def streams(plan: Plan, step: Run, made: AsNest) -> Run:
    """Return the run of a group with the bytes that stream when it runs as a nest."""
    crossing, ids = made.cost.crossing, plan.network.tensor_id
    return replace(step, streaming=tuple((t, crossing[ids[t]]) for t, _ in step.streaming))


def _program(plan: Plan, made: Mapping[str, AsNest]) -> tuple[Instruction, ...]:
    """Return the program with the bytes that nests stream."""
    return tuple(
        streams(plan, step, made[step.operator]) if isinstance(step, Run) and step.operator in made else step
        for step in plan.program
    )


def _fitting(
    plan: Plan,
    before: Figures,
    compared: tuple[Compared, ...],
    groups: tuple[Group, ...],
    program: tuple[Instruction, ...],
) -> AsNests:
    """Return the figures of the plan with other groups, and whether it fits."""
    after = replace(plan, groups=groups, program=program, sections=(), kept={})
    try:
        figures = interpret(after)
        return AsNests(compared, _dram(figures), figures.peak, "in place", "", program, groups)
    except IllegalPlan as refusal:
        refused = str(refusal)
    if not plan.chip.memories:
        apart = up(plan.budget, plan.chip.alignment_bytes)
        far = tuple(replace(step, address=apart) if isinstance(step, Scratch) else step for step in program)
        try:
            figures = interpret(replace(after, program=far, budget=MAX_BYTES))
            fits: Literal["moved", "no"] = "moved" if figures.peak <= plan.budget else "no"
            return AsNests(compared, _dram(figures), figures.peak, fits, "", program, groups)
        except IllegalPlan as refusal:
            refused = str(refusal)
    return AsNests(compared, _dram(before), before.peak, "refused", refused, program, groups)


def _dram(figures: Figures) -> int:
    return figures.compulsory + figures.reload + figures.spill + figures.weights


def in_nests(plan: Plan, found: AsNests) -> Plan:
    """Return the plan whose groups run as nests where that fits in place: a plan of its own, and feasible.

    Raises `IllegalPlan` where it does not.
    """
    kept = {key: plan.options[key] for key in ("granularity", "element", "weights") if key in plan.options}
    return certify(
        plan.network, plan.chip, plan.budget, found.program, status="feasible", lower_bound_bytes=0,
        seconds=0, groups=found.declared, pins=plan.pins, state=plan.state, caches=plan.caches, options=kept,
    )  # fmt: skip
