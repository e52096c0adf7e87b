"""`certify`: a planner's program becomes a plan whose figures come from the program alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onchip.check.claims.objectives import prove_bounds
from onchip.check.claims.options import prove_options
from onchip.check.figures import derived_result, times_of
from onchip.check.interpreter import interpret
from onchip.check.replay import replay_and_keep
from onchip.check.rules import Broken
from onchip.machines.chip import RATES, Chip
from onchip.network import Network
from onchip.plans import (
    Cache,
    Group,
    Instruction,
    Pin,
    Plan,
    PlanChip,
    Result,
    Section,
    State,
    Status,
    TensorLayout,
    bind,
)

__all__ = ["certify", "plan_chip_of"]


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
    caches: Sequence[Cache] = (),
    layouts: Sequence[TensorLayout] = (),
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
        caches=tuple(caches),
        layouts=tuple(layouts),
        sections=tuple(sections),
        options=dict(options or {}),
    )
    figures = replay_and_keep(plan) if keep_events else interpret(plan)
    times = times_of(plan)
    result = derived_result(plan, figures, times)
    if result.latency_picoseconds is None:
        result = replace(result, latency_lower_bound_picoseconds=None)
    if result.energy_picojoules is None:
        result = replace(result, energy_lower_bound_picojoules=None)
    if result.memory_picoseconds is None:
        result = replace(result, memory_lower_bound_picoseconds=None)
    try:
        prove_options(plan.options)
        prove_bounds(result, plan.options.get("objective", "traffic"))
    except Broken as refusal:
        raise refusal.illegal() from None
    return bind(replace(plan, result=result, timing=times or ()))


def plan_chip_of(chip: Chip | PlanChip) -> PlanChip:
    """Return the part of a chip that a plan rests on: its name, alignment, accumulators, rates.

    A `PlanChip` also keeps its weight scratchpad and its memories.
    """
    stated = chip if isinstance(chip, PlanChip) else chip.rates
    rates: dict[str, Any] = {
        key: None if (rate := getattr(stated, key)) is None else float(rate) for key in RATES
    }
    made = PlanChip(
        chip.name, chip.alignment_bytes, accumulator_bytes=chip.accumulator_bytes, tiles=chip.tiles, **rates
    )
    if isinstance(chip, PlanChip):
        made = replace(made, weight_scratchpad_bytes=chip.weight_scratchpad_bytes, memories=chip.memories)
    return made
