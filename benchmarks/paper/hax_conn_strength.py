"""How strong contention must be for each of the paper's figures, and what was tried to find VGG19's pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from hax_conn_cases import ORIN, OWN, PAIRS, PAPER_8, TEN, TITLES, XAVIER, balanced, pair, percent, profile_of
from hax_conn_figures import THREE
from hax_conn_rivals import surprise
from hax_conn_sensitivity import stronger
from hax_conn_setup import SCENARIO_2, on_setup, slower

from onchip.multi_dnn.baselines import Baseline, baselines
from onchip.multi_dnn.dp import PairOptions, solve_pair
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.workload import Workload

__all__ = ["LEAST_PRINTED", "Strength", "at_strength", "baselines_at", "strength", "vgg19_at", "vgg19_pairs"]

FACTORS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
"""On what the memory costs under `light`: `mrmc` and `rate` of every unit."""
LEAST_PRINTED = 1.035
"""Gains from here on are at least the least that Table 8 prints, 1.04."""


@dataclass(frozen=True)
class Strength:
    """What comes out under `light` times a factor; gains of Table 8 by pair, shares as fractions."""

    of_two: float
    gains: dict[tuple[int, int], float]
    blind: float
    surprise: float

    def gaining(self, network: str | None = None) -> int:
        """Pairs, or those with a network, that gain as much as the least gain that the paper prints."""
        cells = [c for c in self.gains if network is None or TEN.index(network) in c]
        return sum(self.gains[cell] >= LEAST_PRINTED for cell in cells)


@cache
def at_strength(factor: float) -> Strength:
    """All that the section shows for a factor."""
    of_two = []
    for name in TEN:
        found, cost = _best(_stronger(pair(ORIN, name, name, "light"), factor))
        rivals = [one.cost_ms(Objective.LATENCY) for one in found if one.name in THREE]
        of_two.append(min(rivals) / cost - 1)
    blind = []
    for i, j in PAIRS:
        found, cost = _best(_stronger(pair(XAVIER, TEN[i], TEN[j], "light"), factor))
        blind += [one.cost_ms(Objective.LATENCY) / cost - 1 for one in found if one.name == OWN]
    surprises = []
    for number in SCENARIO_2:
        workload = on_setup(number, "light").found.result.solution.timeline.workload
        rivals_found = baselines(_stronger(workload, factor))
        surprises += [surprise(one) for one in rivals_found if one.name in ("Herald-like", "H2H-like")]
    return Strength(max(of_two), gains_at(factor), max(blind), max(surprises))


@cache
def gains_at(factor: float) -> dict[tuple[int, int], float]:
    """Gains of Table 8 by pair under `light` times a factor."""
    gains = {}
    for i, j in PAIRS:
        both = pair(ORIN, TEN[i], TEN[j], "light", iterations=balanced(ORIN, TEN[i], TEN[j]))
        found, cost = _best(_stronger(both, factor))
        gains[j, i] = min(one.cost_ms(Objective.LATENCY) for one in found if one.name != OWN) / cost
    return gains


@cache
def baselines_at(i: int, j: int, factor: float) -> dict[str, float]:
    """ms of the baselines of a pair of Table 8 under `light` times a factor."""
    both = pair(ORIN, TEN[j], TEN[i], "light", iterations=balanced(ORIN, TEN[j], TEN[i]))
    found, _ = _best(_stronger(both, factor))
    return {one.name: one.cost_ms(Objective.LATENCY) for one in found}


def strength() -> Iterator[str]:
    """A row for each factor below the paper's."""
    columns = (
        "Fig. 5: most gained, %",
        "Table 8: pairs from 1.04 on",
        "of VGG19's ten",
        "of GoogleNet's ten",
        "most",
        "contention unknown costs, %: most",
        "Herald and H2H later than they expect in scenario 2, %: most",
    )
    yield "| contention of `light`, times | " + " | ".join(columns) + " |"
    yield "|--:|" + "--:|" * len(columns)
    yield "| the paper | 29 | 45 | 3 | 10 | 1.32 | 70 | 75 |"
    for factor in FACTORS:
        one = at_strength(factor)
        cells = (
            percent(one.of_two),
            str(one.gaining()),
            str(one.gaining("vgg19")),
            str(one.gaining("googlenet")),
            f"{max(one.gains.values()):.2f}",
            percent(one.blind),
            percent(one.surprise),
        )
        yield f"| {factor:g} | " + " | ".join(cells) + " |"


def _stronger(workload: Workload, factor: float) -> Workload:
    return replace(workload, model=stronger(workload.soc, factor))


def _best(workload: Workload) -> tuple[tuple[Baseline, ...], float]:
    """The baselines, and ms of the best schedule, which may be one of them."""
    found = baselines(workload)
    exact = solve_pair(workload, options=PairOptions(prove=False)).cost_ms
    return found, min(exact, *(one.cost_ms(Objective.LATENCY) for one in found))


# -- VGG19 -----------------------------------------------------------------------------------------------

CONNECTED = 8
"""The first of VGG19's groups on Orin that is fully connected layers; two groups hold all three."""


def vgg19_pairs() -> Iterator[str]:
    """How many of VGG19's pairs gain on Orin when one thing of its profile is another."""
    yield "| VGG19 on Orin under `light` | of ten pairs, from 1.04 on | with |"
    yield "|---|--:|---|"
    printed = [TITLES[name] for name, cell in zip(TEN, PAPER_8[-1], strict=True) if not cell.endswith("x")]
    yield f"| the paper | {len(printed)} | {', '.join(printed)} |"
    for text, profile in variants(profile_of("vgg19", ORIN)):
        gaining = vgg19_gaining(profile)
        yield f"| {text} | {len(gaining)} | {', '.join(TITLES[name] for name in gaining)} |"
    yield "\n| contention of `light`, times | of VGG19's ten pairs | with | of all 55 |"
    yield "|---|--:|---|--:|"
    for factor in (1.0, *TRIED):
        gaining = vgg19_at(factor)
        yield (
            f"| {factor:g} | {len(gaining)} | {', '.join(TITLES[name] for name in gaining)} |"
            f" {sum(gain >= LEAST_PRINTED for gain in gains_at(factor).values())} |"
        )


TRIED = (1.5, 1.6, 1.7, 1.75, 1.8, 2.0)
"""Strengths of contention between those at which too many and none of VGG19's pairs gain."""


def vgg19_at(factor: float) -> list[str]:
    """Networks that gain beside VGG19 when the memory costs so many times as much."""
    at = TEN.index("vgg19")
    found = gains_at(factor)
    return [name for n, name in enumerate(TEN) if found[at, n] >= LEAST_PRINTED]


def variants(profile: Profile) -> Iterator[tuple[str, Profile]]:
    """The profile, and others of the same times in all but what the text says."""
    yield "as it is here", profile
    ratio = (profile.total_ms(1) or 0.0) / (profile.total_ms(0) or 1.0)
    even = [
        slower(replace(profile, groups=(g,)), (1.0, ratio * (g.ms[0] or 0.0) / (g.ms[1] or 1.0))).groups[0]
        for g in profile.groups
    ]
    yield "every group as much slower on the DLA", replace(profile, groups=tuple(even))
    for times in (2, 4, 8):
        yield (
            f"fully connected layers {times} x as slow on the DLA, the total as before",
            connected_slower(profile, times),
        )
    for factor in (1.5, 3.0):
        yield f"all of it {factor:g} x as slow on the DLA", slower(profile, (1.0, factor))
    gpu_only = tuple(replace(g, ms=(g.ms[0], None)) for g in profile.groups)
    yield "none of it on the DLA", replace(profile, groups=gpu_only)


def connected_slower(profile: Profile, times: float) -> Profile:
    """Fully connected layers slower on the second unit, all others faster so that the total stays."""
    factors = [times if n >= CONNECTED else 1.0 for n in range(len(profile.groups))]
    total = sum((g.ms[1] or 0.0) * k for g, k in zip(profile.groups, factors, strict=True))
    whole = (profile.total_ms(1) or 0.0) / total
    groups = [
        slower(replace(profile, groups=(g,)), (1.0, k * whole)).groups[0]
        for g, k in zip(profile.groups, factors, strict=True)
    ]
    return replace(profile, groups=tuple(groups))


def vgg19_gaining(profile: Profile) -> list[str]:
    """Networks that gain beside VGG19 with this profile as much as the least gain that the paper prints."""
    gaining = []
    for name in TEN:
        both = pair(ORIN, name, "vgg19", "light", iterations=balanced(ORIN, name, "vgg19"))
        jobs = tuple(
            replace(job, profile=profile) if job.profile.network == "vgg19" else job for job in both.jobs
        )
        found, cost = _best(replace(both, jobs=jobs))
        theirs = min(one.cost_ms(Objective.LATENCY) for one in found if one.name != OWN)
        if theirs / cost >= LEAST_PRINTED:
            gaining.append(name)
    return gaining
