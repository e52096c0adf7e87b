"""The figures of a result, from what the machine counts, the times of the program and the chip's rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onchip.check.energy import energy
from onchip.check.interpreter import Figures
from onchip.check.nest_clock import nest_times_of
from onchip.check.nest_times import NoTimes
from onchip.check.timing import clock_of
from onchip.plans import Plan, Result, Timed

__all__ = ["derived_result", "times_of"]

LONGEST = 10**18
"""Picoseconds, eleven days: the times and figures of a plan's file are below this."""


def times_of(plan: Plan) -> tuple[Timed, ...] | None:
    """Return the times of a legal plan; None if the chip's rates give none, or they reach `LONGEST`.

    On a chip with rates of tiles they are those of its nests; else copies and runs wait for each other.
    """
    if plan.chip.tiles is not None:
        try:
            times: tuple[Timed, ...] | None = nest_times_of(plan)
        except NoTimes:
            times = None
    else:
        clock = clock_of(plan)
        times = None if clock is None else clock.times(plan.program)
    return None if times is None or any(t.end >= LONGEST for t in times) else times


def derived_result(plan: Plan, figures: Figures, times: Sequence[Timed] | None) -> Result:
    """Return the plan's result with every figure of its program; status, bounds and seconds as they are."""
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
