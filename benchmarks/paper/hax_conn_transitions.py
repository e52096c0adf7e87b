"""What a change of unit costs, the least certain input: Herald, H2H and gains where it costs more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from statistics import median

from hax_conn_cases import ORIN, PAPER_8, SETS, TEN, Beside, balanced, ms, pair, percent, solved
from hax_conn_pairs import LETTERS, RIVALS
from hax_conn_setup import ALL, on_setup, saved_over
from hax_conn_strength import LEAST_PRINTED
from hax_conn_tables import FOUR, SHORT, paper_gains

from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.published import experiments
from onchip.multi_dnn.workload import Workload

__all__ = ["TIMES", "costlier", "experiment_at", "pairs_at", "transitions"]

TIMES = (1.0, 2.0, 3.0, 5.0, 7.0, 9.0, 10.0, 11.0, 14.0, 20.0)
"""On every transition of every network, in time."""


@dataclass(frozen=True)
class PairsAt:
    """Of Table 8's 55 cells: best baseline the paper's; Herald, H2H or Mensa best; gaining; GoogleNet's."""

    same: int
    rivals: int
    gaining: int
    googlenet: int


def costlier(workload: Workload, times: float) -> Workload:
    """The workload with every transition so many times as long."""
    jobs = tuple(replace(job, profile=_costlier(job.profile, times)) for job in workload.jobs)
    return replace(workload, jobs=jobs)


def _costlier(profile: Profile, times: float) -> Profile:
    groups = tuple(
        replace(g, out_ms=tuple(x * times for x in g.out_ms), in_ms=tuple(x * times for x in g.in_ms))
        for g in profile.groups
    )
    return replace(profile, groups=groups)


@cache
def experiment_at(number: int, times: float) -> Beside:
    """An experiment of Table 6 on the paper's set-up under `light`; whole networks have no transition."""
    workload = on_setup(number, "light").found.result.solution.timeline.workload
    return solved(costlier(workload, times), "latency", SETS[0])


@cache
def pairs_at(times: float) -> PairsAt:
    """All pairs of Table 8 under `light`."""
    same = rivals = gaining = google = 0
    for i, j in paper_gains():
        both = pair(ORIN, TEN[j], TEN[i], SETS[0], iterations=balanced(ORIN, TEN[j], TEN[i]))
        found = solved(costlier(both, times), "latency", SETS[0])
        best = found.best_of_theirs
        letter = SHORT[best.name]
        gains = best.cost_ms(Objective.LATENCY) / found.cost >= LEAST_PRINTED
        same += letter == LETTERS[PAPER_8[i][j].split()[0]]
        rivals += letter in RIVALS
        gaining += gains
        google += gains and "googlenet" in (TEN[i], TEN[j])
    return PairsAt(same, rivals, gaining, google)


def transitions() -> Iterator[str]:
    """Experiment 10, then all of Table 6 and Table 8, by what a transition costs."""
    row = experiments()[9]
    yield "| transitions of `light`, times | experiment 10: GPU & DSP | Herald | H2H | result |"
    yield "|--:|--:|--:|--:|--:|"
    theirs = " | ".join(ms(row.ms[key]) for key in ("split", "herald", "h2h", "hax_conn"))
    yield f"| the paper | {theirs} |"
    for times in TIMES:
        found = experiment_at(10, times)
        costs = " | ".join(ms(found.baseline(name)) for name in FOUR[1:])
        yield f"| {times:g} | {costs} | {ms(found.cost)} |"
    heads = (
        "Table 6: Herald slower than the GPU",
        "H2H slower",
        "saved over the two naive, %: median",
        "over all four, %: median",
        "our result from the paper's, %: most",
        "Table 8: best baseline the paper's",
        "Herald, H2H or Mensa best",
        "pairs from 1.04 on",
        "of GoogleNet's ten",
    )
    yield "\n| transitions, times | " + " | ".join(heads) + " |"
    yield "|--:|" + "--:|" * len(heads)
    yield "| the paper | 8 | 6 | 17.7 | 17.1 | 0 | 55 | 5 | 45 | 10 |"
    for times in (1.0, 3.0, 10.0):
        yield f"| {times:g} | " + " | ".join(_cells(times)) + " |"


def _cells(times: float) -> Iterator[str]:
    found = {n: experiment_at(n, times) for n in ALL}
    for name in ("Herald-like", "H2H-like"):
        slow = [(found[n].baseline(name) or 0.0) > experiments()[n - 1].ms["gpu_only"] for n in ALL]
        yield str(sum(slow))
    for names in (FOUR[:2], FOUR):
        yield percent(median(saved_over(one, names) for one in found.values()))
    yield percent(max(abs(one.cost / experiments()[n - 1].ms["hax_conn"] - 1) for n, one in found.items()))
    pairs = pairs_at(times)
    yield from map(str, (pairs.same, pairs.rivals, pairs.gaining, pairs.googlenet))
