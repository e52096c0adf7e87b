"""Herald and H2H as they are rebuilt here: why they are not as slow as in the paper's Table 6, and how long
their searches take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from time import process_time
from typing import TypeVar

from hax_conn_cases import XAVIER, ms, percent, profile_of, soc_of
from hax_conn_setup import gpu_ms, on_setup, scaled, with_rest
from hax_conn_timed import divided

import onchip
from onchip.machines.contention import NO_CONTENTION
from onchip.multi_dnn.baselines import Baseline, Rows, _changes, _listed, h2h, herald
from onchip.multi_dnn.dispatch import first_come
from onchip.multi_dnn.dp import PairOptions, solve_pair
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.published import experiments
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.synthetic import synthetic_profile
from onchip.multi_dnn.workload import Job, Workload

__all__ = [
    "BY_LISTS",
    "RIVALS",
    "Rivalled",
    "divided_rival",
    "h2h_in_python",
    "in_ten",
    "layers",
    "loads",
    "long_pair",
    "over_cut",
    "over_lists",
    "rivalled",
    "rivals",
    "searched",
    "surprise",
]


@dataclass(frozen=True)
class Rule:
    """A rival's mapping, the paper's column of it, and whether it knows what a transition costs."""

    column: str
    rows: Callable[[Workload], Rows]
    transitions: bool


RIVALS = {"Herald": Rule("herald", herald, False), "H2H": Rule("h2h", h2h, True)}


def listed(workload: Workload) -> Rows:
    """H2H's lists with transitions, without the changes of a group's unit that come after them."""
    return _listed(workload, lambda profile, g, u, v: profile.transition_ms(g, u, v))


CUT = {**RIVALS, "H2H, lists alone": Rule("h2h", listed, True)}
COLUMNS = ("paper", "expected", "its order enforced", "first come")
Found = TypeVar("Found")
ROUNDS = 3
PIECES = (10, 50, 200, 985)
"""Groups of the long network whose rivals' searches are timed."""


@dataclass(frozen=True)
class Rivalled:
    """ms of a rival's schedule: as it expects them, in the order that it expects, and first come."""

    expected: float
    enforced: float
    first_come: float


@cache
def rivalled(number: int, who: str, contention: str = "light") -> Rivalled:
    """What a rival's mapping costs on the paper's set-up, with the order that it has in mind and without."""
    rule = RIVALS[who]
    workload = on_setup(number, contention).found.result.solution.timeline.workload
    rows = [[row] for row in rule.rows(workload)]
    blind = _as_known(workload, rule)
    planned = first_come(blind, rows)
    times = (
        simulate(blind, planned),
        simulate(workload, planned),
        simulate(workload, first_come(workload, rows)),
    )
    return Rivalled(*map(Objective.LATENCY.cost_ms, times))


def _as_known(workload: Workload, rule: Rule) -> Workload:
    """The workload as a rival knows it: without contention, Herald without what a transition costs, too."""
    blind = replace(workload, model=NO_CONTENTION)
    if rule.transitions:
        return blind
    jobs = tuple(replace(job, profile=without_transitions(job.profile)) for job in blind.jobs)
    return replace(blind, jobs=jobs)


def without_transitions(profile: Profile) -> Profile:
    """The profile with transitions that cost nothing."""
    nothing = (0.0,) * len(profile.units)
    return replace(profile, groups=tuple(replace(g, out_ms=nothing, in_ms=nothing) for g in profile.groups))


def surprise(baseline: Baseline) -> float:
    """Time of a Herald- or H2H-like schedule over what its maker expects, less 1: both are first come, what
    is expected in the order that comes of what the maker knows."""
    workload: Workload = baseline.timeline.workload
    blind = _as_known(workload, RIVALS[baseline.name.removesuffix("-like")])
    expected = simulate(blind, first_come(blind, baseline.schedule.units))
    return baseline.timeline.makespan_ms / expected.makespan_ms - 1


def rivals() -> Iterator[str]:
    """Their times under `light`, then how long they search."""
    yield "| # | " + " | ".join(f"{who}: {what}" for who in RIVALS for what in COLUMNS) + " |"
    yield "|--:|" + "--:|" * (len(RIVALS) * len(COLUMNS))
    for row in experiments():
        cells = []
        for who, rule in RIVALS.items():
            one = rivalled(row.number, who)
            cells += [row.ms[rule.column], one.expected, one.enforced, one.first_come]
        yield f"| {row.number} | " + " | ".join(map(ms, cells)) + " |"
    yield "| slower than the GPU alone | " + " | ".join(_slower_than_gpu()) + " |"
    yield "\n| H2H in experiment 8, first come | busy, ms | of | waited for, ms |"
    yield "|---|--:|--:|--:|"
    for unit, (busy, of, waited) in zip(("GPU", "DLA"), loads(8, "H2H"), strict=True):
        yield f"| {unit} | {ms(busy)} | {ms(of)} | {ms(waited)} |"


def loads(number: int, who: str, contention: str = "light") -> Iterator[tuple[float, float, float]]:
    """For each unit how long a rival's schedule keeps it busy, of how long, and how long groups that could
    start wait for it. ms."""
    workload = on_setup(number, contention).found.result.solution.timeline.workload
    timeline = simulate(workload, first_come(workload, [[row] for row in RIVALS[who].rows(workload)]))
    ended = {s.step: s for s in timeline.segments}
    busy, waited = ([0.0] * len(workload.soc.units) for _ in range(2))
    for s in timeline.segments:
        busy[s.unit] += s.end - s.start
        before = ended.get(s.step._replace(group=s.step.group - 1))
        if before is not None:
            profile = workload.jobs[s.step.job].profile
            ready = before.end + profile.transition_ms(before.step.group, before.unit, s.unit)
            waited[s.unit] += max(0.0, s.start - ready)
    yield from ((b, timeline.makespan_ms, w) for b, w in zip(busy, waited, strict=True))


def _slower_than_gpu() -> Iterator[str]:
    """In how many experiments each column is more than *GPU only*."""
    for who, rule in RIVALS.items():
        for at in range(len(COLUMNS)):
            count = 0
            for row in experiments():
                one = rivalled(row.number, who)
                times = (row.ms[rule.column], one.expected, one.enforced, one.first_come)
                count += times[at] > row.ms["gpu_only"]
            yield str(count)


# -- a layer a group -------------------------------------------------------------------------------------

NEAR = 0.1
"""A time this near to the paper's, as a fraction of it, counts as its."""
MOST = 1000
"""Groups of a network: more than any of these has places to cut it."""


@dataclass(frozen=True)
class Divided:
    """Groups of all networks, and for a rival how often networks change the unit, the time in ms, and that of
    the same mapping where transitions cost nothing."""

    groups: int
    changes: int
    ms: float
    free_ms: float


@cache
def divided_rival(number: int, who: str, most: int, contention: str = "light") -> Divided:
    """A rival's schedule on the paper's set-up, networks cut into so many groups at most."""
    row, unit = experiments()[number - 1], on_setup(number, contention).factors[1]
    soc = soc_of(row.soc)
    jobs = []
    for chain in row.chains:
        for n, name in enumerate(chain):
            profile = synthetic_profile(onchip.load(f"zoo:{name}").network, soc, most=most)
            jobs.append(Job(name, profile, 1, chain[n - 1 : n] if n else ()))
    workload = with_rest(Workload(soc, tuple(jobs), soc.model(contention)), row)
    workload = scaled(workload, (row.ms["gpu_only"] / gpu_ms(workload), unit))
    rows = CUT[who].rows(workload)
    free = replace(
        workload,
        jobs=tuple(replace(job, profile=without_transitions(job.profile)) for job in workload.jobs),
    )
    timelines = (simulate(w, first_come(w, [[units] for units in rows])) for w in (workload, free))
    changes = sum(a != b for units in rows for a, b in pairwise(units))
    return Divided(sum(map(len, rows)), changes, *map(Objective.LATENCY.cost_ms, timelines))


BY_LISTS = "H2H, lists alone"


def over_cut(number: int, contention: str, h2h: str = BY_LISTS) -> float:
    """Time saved over the naive columns and both rivals, these on networks cut everywhere; H2H with or
    without its last step."""
    return _over(
        number, contention, [divided_rival(number, who, MOST, contention).ms for who in ("Herald", h2h)]
    )


def over_lists(number: int, contention: str) -> float:
    """The same on the groups of the experiment, H2H by its lists alone."""
    return _over(number, contention, [in_ten(number, who, contention) for who in ("Herald", BY_LISTS)])


def _over(number: int, contention: str, rivals: list[float]) -> float:
    one = on_setup(number, contention)
    return 1 - one.found.cost / min(one.found.cost / (1 - one.gain), *rivals)


@cache
def in_ten(number: int, who: str, contention: str = "light") -> float:
    """ms of a rival's schedule of an experiment on the paper's set-up, as it is planned, GoogleNet on Xavier
    by Table 2."""
    workload = on_setup(number, contention).found.result.solution.timeline.workload
    rows = [[units] for units in CUT[who].rows(workload)]
    return Objective.LATENCY.cost_ms(simulate(workload, first_come(workload, rows)))


def layers() -> Iterator[str]:
    """What Herald and H2H make of networks that may be cut wherever one tensor crosses."""
    heads = [f"{who}: {what}" for who in CUT for what in ("paper", "in ten", "everywhere")]
    yield "| # | GPU only | groups | " + " | ".join(heads) + " |"
    yield "|--:|--:|--:|" + "--:|" * len(heads)
    over_gpu, near = dict.fromkeys(heads, 0), dict.fromkeys(heads, 0)
    for row in experiments():
        cells = []
        for who, rule in CUT.items():
            theirs = row.ms[rule.column]
            found = [divided_rival(row.number, who, most) for most in (10, MOST)]
            cells += [ms(theirs), *(f"{one.ms:.2f} ({one.changes})" for one in found)]
            for what, time in zip(
                ("paper", "in ten", "everywhere"), (theirs, *(o.ms for o in found)), strict=True
            ):
                over_gpu[f"{who}: {what}"] += time > row.ms["gpu_only"]
                near[f"{who}: {what}"] += abs(time / theirs - 1) < NEAR
        groups = " to ".join(str(divided_rival(row.number, "Herald", most).groups) for most in (10, MOST))
        yield f"| {row.number} | {ms(row.ms['gpu_only'])} | {groups} | " + " | ".join(cells) + " |"
    yield "| slower than the GPU alone | | | " + " | ".join(map(str, over_gpu.values())) + " |"
    yield f"| within {100 * NEAR:.0f} % of the paper's | | | " + " | ".join(map(str, near.values())) + " |"
    free = {row.number: divided_rival(row.number, "Herald", MOST) for row in experiments()}
    slow = [n for n, one in free.items() if one.ms > experiments()[n - 1].ms["gpu_only"]]
    said = ", ".join(f"{n} {ms(free[n].free_ms)}" for n in slow)
    yield (
        "\nHerald's mappings of networks cut everywhere that are slower than the GPU alone, with transitions"
        f" that cost nothing, ms by experiment: {said}."
    )
    said = "; ".join(f"{n} {', '.join(f'{who} {ms(in_ten(n, who))}' for who in CUT)}" for n in (4, 5))
    yield f"\nIn ten groups, GoogleNet by Table 2, ms by experiment: {said}."


# -- how long they search --------------------------------------------------------------------------------


def searched() -> Iterator[str]:
    """CPU ms of one search each, for a network in more and more pieces beside GoogleNet."""
    yield (
        "| groups | Herald-like | H2H-like | H2H-like, every change judged in Python |"
        " exact search without its proof | H2H-like above the exact, % |"
    )
    yield "|--:|--:|--:|--:|--:|--:|"
    for count in PIECES:
        workload = long_pair(count)
        listed, _ = _timed(lambda w=workload: herald(w))
        changed, rows = _timed(lambda w=workload: h2h(w))
        exact, found = _timed(lambda w=workload: solve_pair(w, options=PairOptions(prove=False)))
        began = process_time()
        h2h_in_python(workload)
        slow = 1000 * (process_time() - began)
        cost = simulate(workload, first_come(workload, [[row] for row in rows])).makespan_ms
        yield (
            f"| {count} + 10 | {listed:.1f} | {changed:.1f} | {slow:,.0f} | {exact:.1f} |"
            f" {percent(cost / found.cost_ms - 1)} |"
        )


def h2h_in_python(workload: Workload) -> Rows:
    """H2H-like without its limit on changes, each of them judged by the simulator in Python."""
    blind = replace(workload, model=NO_CONTENTION)
    rows = [list(row) for row in listed(blind)]

    def makespan() -> float:
        return simulate(blind, first_come(blind, [[row] for row in rows])).makespan_ms

    least, again = makespan(), True
    while again:
        again = False
        for j, g, u in _changes(blind, rows, 1):
            before = rows[j][g]
            if u == before or not blind.jobs[j].profile.groups[g].runs_on(u):
                continue
            rows[j][g] = u
            value = makespan()
            if value < least * (1 - 1e-9):
                least, again = value, True
            else:
                rows[j][g] = before
    return tuple(map(tuple, rows))


def _timed(work: Callable[[], Found]) -> tuple[float, Found]:
    """CPU ms of what is done, the least of a few, and what comes of it."""
    times = []
    for _ in range(ROUNDS):
        began = process_time()
        result = work()
        times.append(1000 * (process_time() - began))
    return min(times), result


def long_pair(count: int) -> Workload:
    long = divided(profile_of("inception_resnet_v2", XAVIER), count)
    soc = soc_of(XAVIER)
    jobs = (Job("inception_resnet_v2", long), Job("googlenet", profile_of("googlenet", XAVIER)))
    return Workload(soc, jobs, soc.model("light"))
