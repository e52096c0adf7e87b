"""Sections of docs/hax-conn.md that stand beside the paper's figures: 1, 3, 4, 5 and 6."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import ceil

from hax_conn_cases import (
    ORIN,
    SETS,
    TEN,
    TITLES,
    XAVIER,
    ms,
    pair,
    percent,
    profile_of,
    side_by_side,
    soc_of,
    solved,
)
from hax_conn_sensitivity import stronger
from hax_conn_tables import units_of

from onchip.machines.contention import Contention, ThreeRegions
from onchip.machines.soc import SoC, Unit
from onchip.multi_dnn.dp import PairOptions, solve_pair
from onchip.multi_dnn.estimate import estimate_bandwidth
from onchip.multi_dnn.profile import Group, Profile
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.synthetic import synthetic_profile
from onchip.multi_dnn.timeline import Segment, Timeline
from onchip.multi_dnn.workload import Job, Workload
from onchip.network import Network, OperatorSpec, TensorKind


def fig_1() -> Iterator[str]:
    """Serial, naive and split."""
    yield "| | serial on the GPU | VGG-19 on the GPU, ResNet-101 on the DLA | split | units of the groups |"
    yield "|---|--:|--:|--:|---|"
    yield "| paper | 11.30 | 10.60 | not printed | change after layers 28 and 95 |"
    for contention in ("none", *SETS):
        workload = pair(XAVIER, "vgg19", "resnet101", contention)
        found = side_by_side(XAVIER, "vgg19", "resnet101", contention)
        naive = simulate(workload, whole(workload, (0, 1))).makespan_ms
        gpu = found.baseline("gpu alone")
        yield f"| {contention} | {ms(gpu)} | {ms(naive)} | {ms(found.cost)} | {units_of(found)} |"


def whole(workload: Workload, where: tuple[int, ...]) -> Schedule:
    """Whole networks on units, each unit's networks one after the other."""
    order: list[list[Step]] = [[] for _ in workload.soc.units]
    rows = []
    for j, job in enumerate(workload.jobs):
        rows.append(((where[j],) * len(job.profile.groups),) * workload.runs(j))
        order[where[j]] += [
            Step(j, r, g) for r in range(workload.runs(j)) for g in range(len(job.profile.groups))
        ]
    return Schedule(tuple(rows), tuple(map(tuple, order)))


# -- Fig. 3 ----------------------------------------------------------------------------------------------

INPUTS = ((224, 224, 64), (224, 112, 64), (112, 112, 64), (112, 56, 64), (56, 56, 64))
FILTERS = (1, 2, 3, 4, 5)
FIXED_MS = (0.01, 0.05)
"""What launching a layer might take: it makes small layers ask for less."""


def fig_3() -> Iterator[str]:
    """The four steps for the figure's 25 convolutions: `GPU GB/s, DLA GB/s (its slowdown)`."""
    yield "| filter | " + " | ".join("x".join(map(str, size)) for size in INPUTS) + " |"
    yield "|---|" + "---|" * len(INPUTS)
    soc = soc_of(XAVIER)
    for k in FILTERS:
        cells = []
        for size in INPUTS:
            gpu, dla = four_steps(size, k)
            slower = soc.model("light").slowdown(1, dla, gpu)
            cells.append(f"{gpu:.0f}, {dla:.0f} ({slower:.2f})")
        yield f"| {k}x{k} | " + " | ".join(cells) + " |"
    for k in (3, 5):
        for more in FIXED_MS:
            cells = ["{:.0f}, {:.0f}".format(*four_steps(size, k, more)) for size in INPUTS]
            yield f"| {k}x{k}, {1000 * more:.0f} us more a layer | " + " | ".join(cells) + " |"


def four_steps(size: tuple[int, int, int], k: int, fixed_ms: float = 0.0) -> tuple[float, float]:
    """GB/s of a convolution on GPU and DLA: counted on the one, by the controller's use on the other.

    `fixed_ms` more a layer, whatever its size, is what a roofline does not know.
    """
    soc = soc_of(XAVIER)
    group = synthetic_profile(convolution(size, k), soc).groups[0]
    spread = [(ms or 0.0) / ((ms or 0.0) + fixed_ms) for ms in group.ms]
    asked = [gb * share for gb, share in zip(group.gb_per_second, spread, strict=True)]
    gpu = asked[0]  # 1: counted on the GPU
    emc = [100 * gb / soc.nominal_gb_per_second for gb in asked]  # 2: the controller's use
    _, dla = estimate_bandwidth(group.ms, (gpu, None), emc)  # 3: divided by the ratio
    return gpu, dla  # 4, the slowdown, is the model's


def convolution(size: tuple[int, int, int], k: int) -> Network:
    """One convolution that keeps the size and the channels."""
    height, width, channels = size
    pixels = height * width
    spec = OperatorSpec(
        "conv", "Conv", ["x"], ["y"], weight_bytes=k * k * channels**2, macs=pixels * k * k * channels**2
    )
    rows: list[tuple[str, int, TensorKind]] = [
        ("x", pixels * channels, "input"),
        ("y", pixels * channels, "activation"),
    ]
    return Network.build("conv", rows, [spec], ["y"])


# -- Fig. 4 ----------------------------------------------------------------------------------------------


def sketch() -> tuple[Workload, Schedule]:
    """Five groups of three networks on three units."""
    units = ("dsa 1", "dsa 2", "dsa 3")
    constants = Contention(normal_bw=0, intensive_bw=30, mrmc=5, tbwdc=40, cbp=60, rate=0.5)
    soc = SoC("sketch", tuple(map(Unit, units)), 100.0, 100.0)

    def network(name: str, unit: int, rows: tuple[tuple[float, float], ...]) -> Job:
        groups = tuple(
            Group(
                f"L{n + 1}{name}",
                tuple(time if u == unit else None for u in range(3)),
                tuple(gb if u == unit else 0.0 for u in range(3)),
                (0.0,) * 3,
                (0.0,) * 3,
            )
            for n, (time, gb) in enumerate(rows)
        )
        return Job(f"network {name}", Profile(f"network {name}", "sketch", units, groups))

    jobs = (
        network("1", 0, ((3, 40), (2, 15))),
        network("2", 1, ((4, 25),)),
        network("3", 2, ((2, 35), (2, 10))),
    )
    workload = Workload(soc, jobs, ThreeRegions((constants,) * 3, 100.0))
    return workload, whole(workload, (0, 1, 2))


def fig_4() -> Iterator[str]:
    """The contention intervals of the sketch."""
    timeline = simulate(*sketch())
    jobs, units = timeline.workload.jobs, timeline.workload.soc.unit_names
    groups = [(s, jobs[s.step.job].profile.groups[s.step.group].name) for s in timeline.segments]
    groups.sort(key=lambda item: item[0].step)
    yield "| interval, ms | " + " | ".join(f"{name} on {units[s.unit]}" for s, name in groups) + " |"
    yield "|---|" + "--:|" * len(groups)
    events = sorted({round(t, 9) for s in timeline.segments for p in s.pieces for t in (p.start, p.end)})
    for start, end in pairwise(events):
        middle = (start + end) / 2
        cells = [
            next((f"{p.slowdown:.3f}" for p in s.pieces if p.start <= middle < p.end), "") for s, _ in groups
        ]
        yield f"| {start:.3f} to {end:.3f} | " + " | ".join(cells) + " |"
    yield "| all of it | " + " | ".join(f"{_longer(s, jobs):.3f}" for s, _ in groups) + " |"


def _longer(segment: Segment, jobs: Sequence[Job]) -> float:
    """Its time over its time alone."""
    group = jobs[segment.step.job].profile.groups[segment.step.group]
    return (segment.end - segment.start) / (group.ms[segment.unit] or 1.0)


# -- Fig. 5 ----------------------------------------------------------------------------------------------


def fig_5() -> Iterator[str]:
    """Two copies of a network on Orin, images per second."""
    columns = " | ".join(f"{c} | gain, %" for c in SETS)
    yield f"| network | GPU only | GPU & DLA | Mensa-like | {columns} |"
    yield "|---|" + "--:|" * (3 + 2 * len(SETS))
    for name in TEN:
        cells = []
        for key in THREE:
            rival = side_by_side(ORIN, name, name, "light").baseline(key)
            cells.append("" if rival is None else f"{2000 / rival:,.0f}")
        for contention in SETS:
            found = side_by_side(ORIN, name, name, contention)
            cells += [f"{2000 / found.cost:,.0f}", percent(gain_of_two(name, contention))]
        yield f"| {TITLES[name]} | " + " | ".join(cells) + " |"
    twice = side_by_side(ORIN, "googlenet", "googlenet", "light")
    yield f"\nUnits of the groups of GoogleNet twice under `light`: {units_of(twice)}."


THREE = ("gpu alone", "whole networks", "Mensa-like")
"""Baselines of Fig. 5."""


def gain_of_two(name: str, contention: str) -> float:
    """Images per second gained over the best of the three baselines by two copies on Orin, as a fraction."""
    found = side_by_side(ORIN, name, name, contention)
    return min(rival for key in THREE if (rival := found.baseline(key)) is not None) / found.cost - 1


# -- Fig. 6 ----------------------------------------------------------------------------------------------


def fig_6() -> Iterator[str]:
    """How much longer GoogleNet takes for the memory's sake, of its time alone on the GPU."""
    columns = " | ".join(f"{c}: naive | {c}: onchip | {c}: by eq. 10" for c in SETS)
    yield f"| other network | {columns} |"
    yield "|---|" + "--:|" * (3 * len(SETS))
    for name in TEN:
        cells = []
        for contention in SETS:
            naive, ours = slowdowns(name, contention)
            cells += ["" if naive is None else percent(naive), percent(ours)]
            cells.append(percent(slowdown_by_rates(name, contention)))
        yield f"| {TITLES[name]} | " + " | ".join(cells) + " |"
    heads = (
        "less, of nine",
        "most less, %",
        "less by the groups' times alone on their units, of nine",
        "of GoogleNet's time beside, %",
    )
    yield f"\n| contention of `light`, times | {' | '.join(heads)} |"
    yield "|--:|--:|--:|--:|---|"
    for factor in STRENGTHS:
        cases = [(name, *slowdowns(name, "light", factor)) for name in TEN]
        both = [
            (best(name, "light", factor), naive, ours) for name, naive, ours in cases if naive is not None
        ]
        most = max(0.0, *(1 - ours / naive for _, naive, ours in both))
        shares = [100 * beside(timeline) for timeline, *_ in both]
        less = sum(ours < naive for _, naive, ours in both)
        stretch = sum(stretched(timeline) - 1 < naive for timeline, naive, _ in both)
        cells = [str(less), percent(most), str(stretch), f"{min(shares):.0f} to {max(shares):.0f}"]
        yield f"| {factor:g} | {' | '.join(cells)} |"
    yield "\n| of GoogleNet's time beside the other network, by eq. 10, % | " + " | ".join(SETS) + " |"
    yield "|---|" + "--:|" * len(SETS)
    for name in TEN:
        cells = [f"{100 * beside(best_by_rates(name, contention)):.0f}" for contention in SETS]
        yield f"| {TITLES[name]} | " + " | ".join(cells) + " |"


STRENGTHS = (1.0, 1.5, 1.75, 2.0, 2.5)


def slowdowns(name: str, contention: str, factor: float = 1.0) -> tuple[float | None, float]:
    """GoogleNet's slowdown on Xavier: on the GPU beside a network on the DLA, and in our schedule.

    As fractions of its time alone on the GPU; None where the network does not run on the DLA. `factor` is on
    what `light`'s memory costs.
    """
    alone = profile_of("googlenet", XAVIER).total_ms(0) or 0.0
    other = profile_of(name, XAVIER).total_ms(1)
    naive = None
    if other is not None:
        # Four times GoogleNet's own time: nothing here slows it down so much.
        often = pair(XAVIER, "googlenet", name, contention, iterations=(1, ceil(4 * alone / other)))
        if factor != 1:
            often = replace(often, model=stronger(often.soc, factor))
        naive = lost(simulate(often, whole(often, (0, 1))))
    return naive, lost(best(name, contention, factor))


@cache
def best(name: str, contention: str, factor: float = 1.0) -> Timeline:
    """Our schedule of GoogleNet and a network on Xavier for latency."""
    if factor != 1:
        both = pair(XAVIER, "googlenet", name, contention)
        both = replace(both, model=stronger(both.soc, factor))
        return simulate(both, solve_pair(both, options=PairOptions(prove=False)).schedule)
    return side_by_side(XAVIER, "googlenet", name, contention).result.solution.timeline


@cache
def best_by_rates(name: str, contention: str) -> Timeline:
    """The schedule of the same pair for the greatest sum of rates (eq. 10)."""
    return solved(pair(XAVIER, "googlenet", name, contention), "rates", contention).result.solution.timeline


def slowdown_by_rates(name: str, contention: str) -> float:
    """GoogleNet's slowdown where the pair is planned for the greatest sum of rates (eq. 10)."""
    return lost(best_by_rates(name, contention))


def beside(timeline: Timeline) -> float:
    """Of the time of the first network's groups, the share in which a group of another network runs."""
    own = [s for s in timeline.segments if s.step.job == 0]
    others = [s for s in timeline.segments if s.step.job != 0]
    both = sum(max(0.0, min(a.end, b.end) - max(a.start, b.start)) for a in own for b in others)
    return both / sum(s.end - s.start for s in own)


def lost(timeline: Timeline) -> float:
    """ms that the first network's groups take longer for the memory's sake, of its time alone on the GPU."""
    profile = timeline.workload.jobs[0].profile
    own = [s for s in timeline.segments if s.step.job == 0]
    longer = sum(s.end - s.start - (profile.groups[s.step.group].ms[s.unit] or 0.0) for s in own)
    return max(0.0, longer) / (profile.total_ms(0) or 1.0)


def stretched(timeline: Timeline) -> float:
    """Time of the first network's groups over their time alone."""
    groups = timeline.workload.jobs[0].profile.groups
    own = [s for s in timeline.segments if s.step.job == 0]
    return sum(s.end - s.start for s in own) / sum(groups[s.step.group].ms[s.unit] or 0.0 for s in own)
