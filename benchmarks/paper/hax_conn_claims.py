"""Section of docs/hax-conn.md that everybody reads: what the paper claims, and what comes out here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from statistics import median

from hax_conn_acceptance import BETTER
from hax_conn_cases import OWN, PAIRS, SETS, TEN, XAVIER, Beside, of_experiment, percent, side_by_side
from hax_conn_figures import gain_of_two, slowdowns
from hax_conn_tables import Cell, better, gains_with, our_gains, our_saved, paper_gains, paper_saved

from onchip.machines.contention import NO_CONTENTION
from onchip.multi_dnn.baselines import Baseline
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.published import experiments
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Workload

Ours = Callable[[str], str]
"""A cell for one set of constants."""


def claims() -> Iterator[str]:
    """A row for each claim that the simulation can speak to."""
    yield "| claim | paper | " + " | ".join(SETS) + " |"
    yield "|---|--:|" + "--:|" * len(SETS)
    for text, paper, ours in rows():
        yield f"| {text} | {paper} | " + " | ".join(ours(c) for c in SETS) + " |"


def rows() -> Iterator[tuple[str, str, Ours]]:
    gpu = [1 - row.ms["hax_conn"] / row.ms["gpu_only"] for row in experiments()]
    yield (
        "Table 6: time saved over the GPU alone, %: median, most",
        _median_most(gpu),
        lambda c: _median_most([of_experiment(row.number, c).over_gpu for row in experiments()]),
    )
    theirs = [paper_saved(row) for row in experiments()]
    yield (
        "Table 6: time saved over the best of four baselines, %: median, most",
        _median_most(theirs),
        lambda c: _median_most([our_saved(of_experiment(row.number, c)) for row in experiments()]),
    )
    printed = paper_gains()
    yield (
        "Table 8: pairs that gain over the best baseline; most, as a factor",
        f"{sum(map(better, printed.values()))} of {len(printed)}; {max(printed.values()):.2f}",
        lambda c: (
            f"{sum(map(better, our_gains(c).values()))} of {len(PAIRS)}; {max(our_gains(c).values()):.2f}"
        ),
    )
    for network, title in (("googlenet", "GoogleNet"), ("vgg19", "VGG19")):
        yield (
            f"Table 8: pairs of {title} that gain",
            _count(printed, network),
            partial(_counted, network),
        )
    yield (
        "Fig. 5: images per second gained by two copies, %: most",
        "29",
        lambda c: percent(max(gain_of_two(name, c) for name in TEN)),
    )
    yield (
        "Fig. 6: GoogleNet's slowdown is less than in the naive co-run; most, %",
        "in all; 45",
        _relieved,
    )
    yield (
        "not knowing contention costs, %: most over 55 pairs on Xavier",
        "70",
        lambda c: percent(max(_blind(side_by_side(XAVIER, TEN[i], TEN[j], c)) for i, j in PAIRS)),
    )
    yield (
        "Herald and H2H take longer than they expect, %: most of Table 6",
        "75",
        lambda c: percent(max(_surprise(of_experiment(row.number, c)) for row in experiments())),
    )
    yield (
        "worse than the best baseline: of 10 experiments and 55 pairs",
        "0",
        lambda c: str(sum(found.result.gain < -BETTER for found in _all(c))),
    )


def _count(gains: dict[Cell, float], network: str) -> str:
    return f"{sum(map(better, gains_with(gains, network)))} of {len(TEN)}"


def _counted(network: str, contention: str) -> str:
    return _count(our_gains(contention), network)


def _median_most(values: list[float]) -> str:
    return f"{percent(median(values))}, {percent(max(values))}"


def _relieved(contention: str) -> str:
    """In how many of Fig. 6's cases the slowdown is less, and by how much of it at most."""
    cases = [
        (naive, ours) for name in TEN for naive, ours in [slowdowns(name, contention)] if naive is not None
    ]
    less = sum(ours < naive for naive, ours in cases)
    return f"in {less} of {len(cases)}; {100 * max(1 - ours / naive for naive, ours in cases):.0f}"


def _blind(found: Beside) -> float:
    """What the optimum for a memory without contention costs more than the optimum, as a fraction."""
    blind = found.baseline(OWN)
    return 0.0 if blind is None else blind / found.cost - 1


def _surprise(found: Beside) -> float:
    """Time of the worse of Herald- and H2H-like over what it expects, less 1."""
    return max(_off(one) for one in found.result.baselines if one.name in ("Herald-like", "H2H-like"))


def _off(baseline: Baseline) -> float:
    workload: Workload = replace(baseline.timeline.workload, model=NO_CONTENTION)
    if baseline.name == "Herald-like":  # it does not know transitions either
        workload = replace(
            workload, jobs=tuple(replace(job, profile=_free(job.profile)) for job in workload.jobs)
        )
    return baseline.timeline.makespan_ms / simulate(workload, baseline.schedule).makespan_ms - 1


def _free(profile: Profile) -> Profile:
    """The profile with transitions that cost nothing."""
    nothing = (0.0,) * len(profile.units)
    return replace(profile, groups=tuple(replace(g, out_ms=nothing, in_ms=nothing) for g in profile.groups))


def _all(contention: str) -> Iterator[Beside]:
    yield from (of_experiment(row.number, contention) for row in experiments())
    yield from (side_by_side(XAVIER, TEN[i], TEN[j], contention) for i, j in PAIRS)
