"""`check`: the program is run, the figures derived, and everything that the plan states held against them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import astuple, replace

from onchip.check.claims.named import prove_named
from onchip.check.claims.objectives import prove_bounds
from onchip.check.claims.options import prove_options
from onchip.check.figures import derived_result, times_of
from onchip.check.interpreter import interpret
from onchip.check.rules import Broken, broken
from onchip.plans import Plan, Result, Timed, claim_digest

__all__ = ["check"]

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
"""The fields of a result that follow from the program."""


def check(plan: Plan) -> Result:
    """Prove a plan legal and return its figures, recomputed from the program (bytes; seconds as claimed).

    Latency, energy, multiply-accumulates and memory time are recomputed where the plan states them.

    Raises `IllegalPlan` with the rule (a name of `RULES`), the instruction that breaks it and why. The rule
    is `result` when the program is legal and a stated figure is not what it gives.
    """
    claimed = plan.result
    figures, times = interpret(plan), times_of(plan)
    derived = derived_result(plan, figures, times)
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
        prove_bounds(derived, plan.options.get("objective", "traffic"))
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


def _shown(value: object) -> str:
    if value is None:
        return "not known of this plan"
    if isinstance(value, int):
        return f"{value:,}"
    assert isinstance(value, tuple)  # of each memory, or between two
    return "; ".join(" ".join(map(str, astuple(row))) for row in value) or "nothing"
