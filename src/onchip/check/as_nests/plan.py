"""A whole plan with its bands, blocks and boxes as nests: both figures, and whether it still fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from onchip.base.errors import IllegalPlan
from onchip.check.as_nests.convert import AsNest, as_nest
from onchip.check.as_nests.differences import differences
from onchip.check.as_nests.fitting import fitted
from onchip.check.as_nests.reaches import with_reaches
from onchip.check.as_nests.running import running
from onchip.check.as_nests.unsaid import Unsaid
from onchip.check.certificate import certify
from onchip.check.interpreter import Figures
from onchip.check.units import Unit
from onchip.network.maps import Maps
from onchip.plans import Blocks, Boxes, Group, Instruction, Plan, Result, Run, Tiling

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
    `plan` is the one with nests, in a larger budget where that is needed: of the groups `grown` the scratch
    lies behind everything else, outputs `apart` lie there too, and no longer over an input.
    """

    groups: tuple[Compared, ...]
    dram_bytes: int
    peak_bytes: int
    fits: Literal["in place", "moved", "no", "refused"]
    refusal: str
    plan: Plan
    grown: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


def plan_as_nests(plan: Plan) -> AsNests | None:
    """Return a legal plan with its groups in bands, blocks or boxes as nests; None if it has none.

    Raises `IllegalPlan` for a program that is not legal.
    """
    if not any(type(group.tiling) in FORMS for group in plan.groups):
        return None
    about = (plan.network, plan.chip, plan.budget, plan.program, plan.groups)
    found = plan.kept.get(KEPT)
    # A plan that was replaced in parts has the answers of the one before.
    if not isinstance(found, _Kept) or any(a is not b for a, b in zip(found.about, about, strict=True)):
        found = plan.kept[KEPT] = _Kept(about, _as_nests(plan))
    return found.answer


@dataclass(frozen=True, slots=True)
class _Kept:
    """An answer, with the parts of the plan that it is about."""

    about: tuple[object, ...]
    answer: AsNests


def _as_nests(plan: Plan) -> AsNests:
    plan = replace(plan, network=with_reaches(plan.network, plan.groups), kept={})
    figures, runs = running(plan)
    maps, compared, made = Maps(plan.network), list[Compared](), dict[str, AsNest]()
    for group in plan.groups:
        if type(group.tiling) in FORMS:
            one, nest = _compared(plan, maps, group, runs[group.name].unit, runs[group.name].free)
            compared.append(one)
            if nest is not None:
                made[group.name] = nest
    declared = tuple(made[g.name].group if g.name in made else g for g in plan.groups)
    larger = {
        name: one.group.scratch_bytes
        for name, one in made.items()
        if one.group.scratch_bytes > runs[name].unit.workspace
    }
    after = replace(plan, groups=declared, program=_program(plan, made), sections=(), timing=(), kept={})
    found = fitted(after, larger)
    if isinstance(found, IllegalPlan):
        return AsNests(tuple(compared), _dram(figures), figures.peak, "refused", str(found), plan)
    peak = found.figures.peak
    fits: Literal["in place", "moved", "no"] = "in place"
    if found.grown or found.apart:
        fits = "moved" if peak <= plan.budget else "no"
    told = replace(found.plan, result=_result(plan.result, found.figures))
    return AsNests(tuple(compared), _dram(found.figures), peak, fits, "", told, found.grown, found.apart)


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


def _result(stated: Result, found: Figures) -> Result:
    """Return a result with other bytes, of which nothing is proved."""
    return replace(
        stated, status="feasible", compulsory_bytes=found.compulsory, reload_bytes=found.reload,
        spill_bytes=found.spill, traffic_bytes=found.reload + found.spill, weight_bytes=found.weights,
        dram_bytes=_dram(found), lower_bound_bytes=0, peak_bytes=found.peak, extent_bytes=found.extent,
    )  # fmt: skip


def _dram(figures: Figures) -> int:
    return figures.compulsory + figures.reload + figures.spill + figures.weights


def in_nests(found: AsNests) -> Plan:
    """Return the plan whose groups run as nests as one of its own: certified, and feasible."""
    plan = found.plan
    kept = {key: plan.options[key] for key in ("granularity", "element", "weights") if key in plan.options}
    return certify(
        plan.network, plan.chip, plan.budget, plan.program, status="feasible", lower_bound_bytes=0,
        seconds=0, groups=plan.groups, layouts=plan.layouts, pins=plan.pins, state=plan.state,
        caches=plan.caches, options=kept,
    )  # fmt: skip
