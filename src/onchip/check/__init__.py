"""The checker: an abstract interpreter of the plan program, which knows no planner.

`check` proves a plan legal and recomputes every figure of its result; `certify` turns a planner's program
into a plan whose figures come from the program alone. docs/plan-program.md is the law that it enforces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from onchip.check.interpreter import Figures, interpret
from onchip.check.rules import RULES, Broken, broken
from onchip.chip import Chip
from onchip.network import Network
from onchip.plan import Group, Instruction, Plan, PlanChip, Result, Status

__all__ = ["RULES", "certify", "check"]


def check(plan: Plan) -> Result:
    """Prove a plan legal and return its figures, all recomputed from the program (bytes; seconds as claimed).

    Raises `IllegalPlan` with the rule (a name of `RULES`), the instruction that breaks it and why. The rule
    is `result` when the program is legal and a stated figure is not what it gives.
    """
    claimed = plan.result
    derived = _result(interpret(plan), claimed.status, claimed.lower_bound_bytes, claimed.seconds)
    try:
        _claims(derived)
        for field in _FIGURES:
            stated, actual = getattr(claimed, field), getattr(derived, field)
            if stated != actual:
                broken("result", f"{field} is {actual:,}, not {stated:,}")
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
    options: Mapping[str, str | int | float | bool | None] | None = None,
) -> Plan:
    """The plan that holds a program, its figures computed from the program: how every planner ends.

    `status`, `lower_bound_bytes` (of `traffic_bytes`) and `seconds` are the planner's claims. Raises
    `IllegalPlan` when the program is illegal or the claims contradict its figures.
    """
    plan = Plan(
        network=network,
        chip=PlanChip(chip.name, chip.alignment_bytes),
        budget=budget,
        program=tuple(program),
        result=Result(status, 0, 0, 0, 0, 0, 0, lower_bound_bytes, 0, 0, seconds),
        groups=tuple(groups),
        options=dict(options or {}),
    )
    result = _result(interpret(plan), status, lower_bound_bytes, float(seconds))
    try:
        _claims(result)
    except Broken as refusal:
        raise refusal.illegal() from None
    return Plan(plan.network, plan.chip, budget, plan.program, result, plan.groups, plan.options)


_FIGURES = (
    "spill_bytes",
    "reload_bytes",
    "traffic_bytes",
    "compulsory_bytes",
    "weight_bytes",
    "dram_bytes",
    "peak_bytes",
    "extent_bytes",
)


def _result(figures: Figures, status: Status, lower_bound: int, seconds: float) -> Result:
    traffic = figures.spill + figures.reload
    return Result(
        status=status,
        traffic_bytes=traffic,
        spill_bytes=figures.spill,
        reload_bytes=figures.reload,
        compulsory_bytes=figures.compulsory,
        weight_bytes=figures.weights,
        dram_bytes=figures.compulsory + traffic + figures.weights,
        lower_bound_bytes=lower_bound,
        peak_bytes=figures.peak,
        extent_bytes=figures.extent,
        seconds=seconds,
    )


def _claims(result: Result) -> None:
    """What a planner claims must agree with what its program gives."""
    if result.status not in ("optimal", "feasible"):
        broken("result", f"status is {result.status!r}, neither optimal nor feasible")
    if not 0 <= result.lower_bound_bytes <= result.traffic_bytes:
        broken(
            "result",
            f"lower_bound_bytes is {result.lower_bound_bytes:,},"
            f" not from 0 to the traffic of {result.traffic_bytes:,}",
        )
    if result.status == "optimal" and result.lower_bound_bytes != result.traffic_bytes:
        broken(
            "result",
            f"status is optimal, but traffic_bytes is {result.traffic_bytes:,}"
            f" and the bound {result.lower_bound_bytes:,}",
        )
    if not (math.isfinite(result.seconds) and result.seconds >= 0):
        broken("result", f"seconds is {result.seconds}, not a time")
