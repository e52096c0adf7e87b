"""Table 6 where contention is stronger: Herald and H2H, and experiment 4, in which the paper leaves the DLA
idle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from statistics import median

from hax_conn_cases import SETS, Beside, ms, percent, solved
from hax_conn_sensitivity import stronger
from hax_conn_setup import ALL, OnSetup, on_setup
from hax_conn_tables import FOUR, units_of

from onchip.multi_dnn.baselines import baselines
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.published import experiments

__all__ = ["alone", "at_contention", "fitted_at", "rivals_at"]

NUMBER = 4
FACTORS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
"""On what the memory costs under `light`; the units are as fast as the set-up has them under `light`."""
FITTED = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
"""The same, the units fitted again to the paper's naive columns."""


@cache
def at_contention(number: int, factor: float) -> Beside:
    """An experiment of Table 6 on the paper's set-up under `light` times a factor, all else as it is."""
    workload = on_setup(number, SETS[0]).found.result.solution.timeline.workload
    return solved(replace(workload, model=stronger(workload.soc, factor)), "latency", SETS[0])


def fitted_at(number: int, factor: float) -> OnSetup:
    """An experiment of Table 6 under `light` times a factor, its units fitted under that."""
    return on_setup(number, SETS[0]) if factor == 1 else on_setup(number, SETS[0], factor=factor)


@cache
def rivals_at(factor: float) -> tuple[dict[int, float], dict[int, float]]:
    """ms of Herald and of H2H in every experiment of Table 6 under `light` times a factor."""
    herald, h2h = {}, {}
    for number in ALL:
        workload = on_setup(number, SETS[0]).found.result.solution.timeline.workload
        found = baselines(replace(workload, model=stronger(workload.soc, factor)))
        times = {one.name: one.cost_ms(Objective.LATENCY) for one in found}
        herald[number], h2h[number] = (times[name] for name in FOUR[2:])
    return herald, h2h


def alone() -> Iterator[str]:
    """Herald and H2H, then experiment 4, by the strength of contention."""
    heads = "Herald slower than the GPU alone, of ten | H2H | Herald ahead of H2H in experiments"
    yield f"| contention of `light`, times | {heads} |"
    yield "|--:|--:|--:|---|"
    rows = {row.number: row.ms for row in experiments()}
    printed = tuple({n: ms[who] for n, ms in rows.items()} for who in ("herald", "h2h"))
    for text, (herald, h2h) in (("the paper", printed), *((f"{k:g}", rivals_at(k)) for k in FACTORS)):
        slow = (str(sum(times[n] > rows[n]["gpu_only"] for n in ALL)) for times in (herald, h2h))
        ahead = ", ".join(str(n) for n in ALL if herald[n] < h2h[n])
        yield f"| {text} | {' | '.join(slow)} | {ahead} |"
    yield ""
    row = experiments()[NUMBER - 1]
    heads = "GPU only | GPU & DSA | Herald | H2H | result | units of the groups"
    yield f"| contention of `light`, times | {heads} |"
    yield "|--:|" + "--:|" * 5 + "---|"
    theirs = (row.ms[key] for key in ("gpu_only", "split", "herald", "h2h", "hax_conn"))
    yield f"| the paper | {' | '.join(map(ms, theirs))} | all on the GPU |"
    for factor in FACTORS:
        found = at_contention(NUMBER, factor)
        times = [*(found.baseline(name) for name in FOUR), found.cost]
        yield f"| {factor:g} | {' | '.join(map(ms, times))} | {units_of(found)} |"
    yield ""
    heads = (
        "saved over the two naive, median, % | off the paper's result: median, % | most, % | of ten over 5 %"
    )
    yield f"| set-up fitted again, times | {heads} | experiment 4: second unit | result | units |"
    yield "|--:|" + "--:|" * 6 + "---|"
    for factor in FITTED:
        found = [fitted_at(n, factor) for n in ALL]
        off = [abs(one.off) for one in found]
        four = found[NUMBER - 1]
        cells = [percent(x) for x in (median(one.gain for one in found), median(off), max(off))]
        cells += [str(sum(x > 0.05 for x in off)), f"{four.factors[1]:.2f}", ms(four.found.cost)]
        yield f"| {factor:g} | {' | '.join(cells)} | {units_of(four.found)} |"
