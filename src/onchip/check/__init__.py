"""The checker: an abstract interpreter of the plan program, which imports no planner.

`check` proves a plan legal and recomputes every figure of its result; `certify` turns a planner's program
into a plan whose figures come from the program alone; `events_of` lists the program's events.
docs/plan-program.md states the rules that it enforces.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any

from onchip.check.energy import energy
from onchip.check.interpreter import Figures, interpret
from onchip.check.joins import concat_offsets, plain_concat
from onchip.check.named import prove_named
from onchip.check.operator_overlap import may_overwrite
from onchip.check.options import prove_options
from onchip.check.replay import events_of, replay_and_keep
from onchip.check.rules import RULES, Broken, broken
from onchip.check.standing import Standing, standing, why_derived
from onchip.check.streaming import streaming_scratch
from onchip.check.timing import Clock, clock_of
from onchip.machines.chip import RATES, Chip
from onchip.network import Network
from onchip.plans import (
    Group,
    Instruction,
    Pin,
    Plan,
    PlanChip,
    Result,
    Section,
    State,
    Status,
    Timed,
    bind,
    claim_digest,
)

__all__ = [
    "RULES",
    "Clock",
    "Standing",
    "certify",
    "check",
    "clock_of",
    "concat_offsets",
    "energy",
    "events_of",
    "may_overwrite",
    "plain_concat",
    "plan_chip_of",
    "standing",
    "streaming_scratch",
    "times_of",
    "why_derived",
]


def check(plan: Plan) -> Result:
    """Prove a plan legal and return its figures, recomputed from the program (bytes; seconds as claimed).

    Latency, energy, multiply-accumulates and memory time are recomputed where the plan states them.

    Raises `IllegalPlan` with the rule (a name of `RULES`), the instruction that breaks it and why. The rule
    is `result` when the program is legal and a stated figure is not what it gives.
    """
    claimed = plan.result
    figures, times = interpret(plan), times_of(plan)
    derived = _derive(plan, figures, times)
    try:
        if claimed.latency_picoseconds is None:  # optional: an absent claim is not checked
            derived = replace(derived, latency_picoseconds=None)
        if claimed.energy_picojoules is None:
            derived = replace(derived, energy_picojoules=None)
        if claimed.macs is None:
            derived = replace(derived, macs=None)
        if claimed.memory_picoseconds is None:
            derived = replace(derived, memory_picoseconds=None)
        _same_times(plan, times)
        prove_options(plan.options)
        _claims(derived, plan.options.get("objective", "traffic"))
        for field in _FIGURES:
            stated, actual = getattr(claimed, field), getattr(derived, field)
            if stated != actual:
                broken("result", f"{field} is {_shown(actual)}, not {_shown(stated)}")
        if claimed.claim_sha256 and claimed.claim_sha256 != claim_digest(plan):
            broken("claim", "its claims were made of another network, chip, budget, options or figures")
        prove_named(plan)
    except Broken as refusal:
        raise refusal.illegal() from None
    return derived


def certify(
    network: Network,
    chip: Chip | PlanChip,
    budget: int,
    program: Sequence[Instruction],
    *,
    status: Status,
    lower_bound_bytes: int,
    seconds: float,
    groups: Sequence[Group] = (),
    pins: Sequence[Pin] = (),
    state: Sequence[State] = (),
    sections: Sequence[Section] = (),
    options: Mapping[str, str | int | float | bool | None] | None = None,
    peak_lower_bound_bytes: int | None = None,
    latency_lower_bound_picoseconds: int | None = None,
    energy_lower_bound_picojoules: int | None = None,
    dram_lower_bound_bytes: int | None = None,
    memory_lower_bound_picoseconds: int | None = None,
    space: str = "",
    keep_events: bool = False,
) -> Plan:
    """Return the plan of a program, with figures and times computed from it. Every planner ends here.

    `status`, `seconds`, `lower_bound_bytes` (of `traffic_bytes`) and the other bounds are the planner's
    claims; `status` speaks of the objective that `options` names, and `space` says in one sentence which
    plans the claims range over. With `keep_events` the same replay also keeps the events for `events_of`.
    Raises `IllegalPlan` when the program is illegal or the claims contradict its figures. A bound of a figure
    that the chip does not give is left out.
    """
    plan = Plan(
        network=network,
        chip=plan_chip_of(chip),
        budget=budget,
        program=tuple(program),
        result=Result(
            status,
            *(0, 0, 0, 0, 0, 0),
            lower_bound_bytes,
            *(0, 0),
            float(seconds),
            peak_lower_bound_bytes=peak_lower_bound_bytes,
            latency_lower_bound_picoseconds=latency_lower_bound_picoseconds,
            energy_lower_bound_picojoules=energy_lower_bound_picojoules,
            dram_lower_bound_bytes=dram_lower_bound_bytes,
            memory_lower_bound_picoseconds=memory_lower_bound_picoseconds,
            space=space,
        ),
        groups=tuple(groups),
        pins=tuple(pins),
        state=tuple(state),
        sections=tuple(sections),
        options=dict(options or {}),
    )
    figures = replay_and_keep(plan) if keep_events else interpret(plan)
    times = times_of(plan)
    result = _derive(plan, figures, times)
    if result.latency_picoseconds is None:
        result = replace(result, latency_lower_bound_picoseconds=None)
    if result.energy_picojoules is None:
        result = replace(result, energy_lower_bound_picojoules=None)
    if result.memory_picoseconds is None:
        result = replace(result, memory_lower_bound_picoseconds=None)
    try:
        prove_options(plan.options)
        _claims(result, plan.options.get("objective", "traffic"))
    except Broken as refusal:
        raise refusal.illegal() from None
    return bind(replace(plan, result=result, timing=times or ()))


_FIGURES = (
    "spill_bytes",
    "reload_bytes",
    "traffic_bytes",
    "compulsory_bytes",
    "weight_bytes",
    "dram_bytes",
    "peak_bytes",
    "extent_bytes",
    "latency_picoseconds",
    "energy_picojoules",
    "macs",
    "move_bytes",
    "memories",
    "moves",
    "memory_picoseconds",
)

_BOUNDED = {
    "traffic": ("traffic_bytes", "lower_bound_bytes"),
    "peak": ("extent_bytes", "peak_lower_bound_bytes"),
    "latency": ("latency_picoseconds", "latency_lower_bound_picoseconds"),
    "energy": ("energy_picojoules", "energy_lower_bound_picojoules"),
    "dram": ("dram_bytes", "dram_lower_bound_bytes"),
    "memory": ("memory_picoseconds", "memory_lower_bound_picoseconds"),
}
"""Objective -> (the figure that it minimizes, its planner's bound). `memory` minimizes traffic first."""


def plan_chip_of(chip: Chip | PlanChip) -> PlanChip:
    """Return the part of a chip that a plan rests on: its name, alignment and rates.

    A `PlanChip` also keeps its weight scratchpad and its memories.
    """
    rates: dict[str, Any] = {
        key: None if (rate := getattr(chip, key)) is None else float(rate) for key in RATES
    }
    made = PlanChip(chip.name, chip.alignment_bytes, **rates)
    if isinstance(chip, PlanChip):
        made = replace(made, weight_scratchpad_bytes=chip.weight_scratchpad_bytes, memories=chip.memories)
    return made


def times_of(plan: Plan) -> tuple[Timed, ...] | None:
    """Return the times of a legal plan; None if the chip's rates give none, or they reach `LONGEST`."""
    clock = clock_of(plan)
    times = None if clock is None else clock.times(plan.program)
    return None if times is None or any(t.end >= LONGEST for t in times) else times


LONGEST = 10**18
"""Picoseconds, eleven days: the times and figures of a plan's file are below this."""


def _derive(plan: Plan, figures: Figures, times: Sequence[Timed] | None) -> Result:
    traffic = figures.spill + figures.reload
    dram = figures.compulsory + traffic + figures.weights
    several = bool(plan.chip.memories)
    moved = {use.memory: use.accessed_bytes for use in figures.memories}
    spent = energy(plan.network, plan.chip, dram, plan.program, moved, figures.weights)
    waited = figures.picoseconds if several else None
    return replace(
        plan.result,
        traffic_bytes=traffic,
        spill_bytes=figures.spill,
        reload_bytes=figures.reload,
        compulsory_bytes=figures.compulsory,
        weight_bytes=figures.weights,
        dram_bytes=dram,
        peak_bytes=figures.peak,
        extent_bytes=figures.extent,
        latency_picoseconds=None if times is None else max((t.end for t in times), default=0),
        energy_picojoules=None if spent is None or spent >= LONGEST else spent,
        macs=None if figures.macs is None or figures.macs >= LONGEST else figures.macs,
        move_bytes=sum(m.bytes for m in figures.moves) if several else None,
        memory_picoseconds=None if waited is None or waited >= LONGEST else waited,
        memories=figures.memories,
        moves=figures.moves,
    )


def _same_times(plan: Plan, times: Sequence[Timed] | None) -> None:
    """Refuse stated times that differ from those of the program."""
    if not plan.timing:
        return
    if times is None:
        broken("timing", "the plan states times, and its chip does not give them")
    for stated, actual in itertools.zip_longest(plan.timing, times):
        if stated != actual:
            shown = " and ".join("nothing" if t is None else _time(t) for t in (stated, actual))
            broken("timing", f"stated and derived differ: {shown}")


def _time(timed: Timed) -> str:
    crossed = "" if timed.fetched is None else f", crossed by {timed.fetched:,}"
    return f"program[{timed.index}] from {timed.start:,} to {timed.end:,} ps{crossed}"


def _claims(result: Result, objective: object) -> None:
    """Refuse claims that contradict the figures of the program."""
    if objective not in _BOUNDED:
        broken("result", f"the objective is {str(objective)[:60]!r}, none of {', '.join(_BOUNDED)}")
    if result.status not in ("optimal", "feasible"):
        broken("result", f"status is {result.status!r}, neither optimal nor feasible")
    for goal, (figure, bound) in _BOUNDED.items():
        value, least = getattr(result, figure), getattr(result, bound)
        if least is not None and not 0 <= least <= (-1 if value is None else value):
            most = (
                "where nothing is to bound" if value is None else f"not from 0 to the {figure} of {value:,}"
            )
            broken("result", f"{bound} is {least:,}, {most}")
        meant = goal == objective or (goal == "traffic" and objective == "memory")
        if meant and result.status == "optimal" and (value is None or least != value):
            broken(
                "result",
                f"status is optimal, but {figure} is {_or_none(value)} and {bound} {_or_none(least)}",
            )
    if not (math.isfinite(result.seconds) and result.seconds >= 0):
        broken("result", f"seconds is {result.seconds}, not a time")


def _shown(value: object) -> str:
    if value is None:
        return "not known of this plan"
    if isinstance(value, int):
        return f"{value:,}"
    assert isinstance(value, tuple)  # of each memory, or between two
    return "; ".join(" ".join(map(str, astuple(row))) for row in value) or "nothing"


def _or_none(value: int | None) -> str:
    return "not given" if value is None else f"{value:,}"
