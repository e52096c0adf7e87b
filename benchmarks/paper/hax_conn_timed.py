"""Sections of docs/hax-conn.md whose figures are times of this machine: changes of networks, and planning."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from statistics import median
from time import process_time

from hax_conn_cases import PAIRS, SETS, TEN, TITLES, experiment, pair, profile_of, soc_of

import onchip
from onchip.base.errors import MissingExtra
from onchip.machines.contention import NO_CONTENTION
from onchip.multi_dnn.dp import PairOptions, solve_pair
from onchip.multi_dnn.dynamic import Answer, DynamicScheduler, frames_of
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.published import experiments, googlenet
from onchip.multi_dnn.solve import SolveOptions, solve
from onchip.multi_dnn.synthetic import synthetic_profile
from onchip.multi_dnn.workload import Job, Workload
from onchip.papers.hax_conn.z3_check import solve_with_z3

ROUNDS = 5
"""Repetitions, of which the median is printed: a search's time depends on what else the machine does."""
PAPER_7 = {2: 5.8, 5: 1.9, 1: 1.3}
"""Seconds that the paper's search needs to the optimum of an experiment."""
EACH = 10.0
"""Seconds between two changes in Fig. 7."""
Z3_LIMIT = 60.0
"""Seconds that Z3 gets for a case, when nothing is said."""


def machine() -> str:
    cores = len(os.sched_getaffinity(0))
    load = f"load average {os.getloadavg()[0]:.1f}"
    return f"{platform.machine()}, {cores} cores, {load}; Python {platform.python_version()}"


def fig_7() -> Iterator[str]:
    """Three changes, as the paper has them: experiments 2, 5 and 1."""
    rows = experiments()
    order = (2, 5, 1)
    sets = [experiment(rows[n - 1], "light") for n in order]
    runs = [_changed(sets) for _ in range(ROUNDS)]
    columns = (
        "first answer: ms after",
        "latency, ms",
        "improved: ms after",
        "latency, ms",
        "oracle, ms",
        "paper: s to the optimum",
    )
    yield f"{EACH:g} s each; median of {ROUNDS} runs ({machine()}).\n"
    yield "| experiment | " + " | ".join(columns) + " |"
    yield "|--:|" + "--:|" * len(columns)
    for n, number in enumerate(order):
        times = [answers[n] for answers in runs]
        first = median(1000 * answers[0].seconds for answers in times)
        best = [next(a for a in answers if a.cost_ms() <= answers[-1].cost_ms() + 1e-9) for answers in times]
        oracle = solve(sets[n]).solution.cost_ms
        yield (
            f"| {number} | {first:.2f} | {times[0][0].cost_ms():.2f} |"
            f" {median(1000 * a.seconds for a in best):.0f} | {best[0].cost_ms():.2f} | {oracle:.2f} |"
            f" {PAPER_7[number]} |"
        )
    history = tuple(answer for answers in runs[0] for answer in answers)
    yield "\nThe frames of the first run one after the other; a row for each change of latency:\n"
    yield "| frames from, s | frames | latency, ms | schedule by |"
    yield "|--:|--:|--:|---|"
    frames = frames_of(history, EACH)
    n = 0
    while n < len(frames):
        same = n
        while same < len(frames) and frames[same].milliseconds == frames[n].milliseconds:
            same += 1
        one = frames[n]
        yield f"| {one.seconds:.3f} | {same - n} | {one.milliseconds:.2f} | {one.answer.solver} |"
        n = same
    yield from _pairs_converge()


def _changed(sets: list[Workload]) -> list[list[Answer]]:
    """The answers to each change, with nothing known before."""
    found: list[list[Answer]] = []
    with DynamicScheduler() as scheduler:
        for workload in sets:
            seen = len(scheduler.history)
            scheduler.change(workload)
            scheduler.settle()
            found.append(list(scheduler.history[seen:]))
    return found


def _pairs_converge() -> Iterator[str]:
    yield (
        f"\nAll {len(PAIRS)} pairs of Table 5's networks on Xavier, each a change to a set never seen before,"
        f" in ms; for each pair the least of {ROUNDS} runs:\n"
    )
    columns = ("first answer", "within 2 % of the last", "proved")
    yield "| contention | " + " | ".join(f"{name}: median | most" for name in columns) + " |"
    yield "|---|" + "--:|" * 6
    for contention in SETS:
        sets = [pair("xavier-agx", TEN[i], TEN[j], contention) for i, j in PAIRS]
        runs = [[_moments(answers) for answers in _changed(sets)] for _ in range(ROUNDS)]
        least = [[min(times) for times in zip(*of_pair, strict=True)] for of_pair in zip(*runs, strict=True)]
        cells = [f"{f(times):.2f}" for times in zip(*least, strict=True) for f in (median, max)]
        yield f"| {contention} | " + " | ".join(cells) + " |"


def _moments(answers: list[Answer]) -> tuple[float, float, float]:
    """ms until the first answer, one within 2 % of the last, and the proof."""
    last = answers[-1].cost_ms()
    close = next(a.seconds for a in answers if a.cost_ms() <= 1.02 * last)
    proof = next(a.seconds for a in answers if a.proved)
    return 1000 * answers[0].seconds, 1000 * close, 1000 * proof


def planning() -> Iterator[str]:
    """How long the exact search takes."""
    yield f"CPU times, median of {ROUNDS} runs ({machine()}).\n"
    yield "| case | groups | exact search and proof, ms | all of `solve`, baselines included, ms |"
    yield "|---|--:|--:|--:|"
    cases = [("GoogleNet twice (Table 2)", pair("xavier-agx", "googlenet", "googlenet", "light"))]
    for row in experiments():
        networks = ", ".join(" > ".join(TITLES[name] for name in chain) for chain in row.chains)
        cases.append((f"experiment {row.number}: {networks}", experiment(row, "light")))
    for name, workload in cases:
        groups = " + ".join(str(len(job.profile.groups)) for job in workload.jobs)
        yield f"| {name} | {groups} | {_time_exact(workload):.0f} | {_time_all(workload):.0f} |"
    big = divided(profile_of("inception_resnet_v2", "xavier-agx"), 985)
    soc = soc_of("xavier-agx")
    jobs = (Job("inception_resnet_v2", big), Job("googlenet", googlenet()))
    workload = Workload(soc, jobs, soc.model("light"))
    began = process_time()
    found = solve_pair(workload, options=PairOptions(prove=False))
    seconds = process_time() - began
    yield (
        f"| Inc-res-v2 in 985 equal pieces, GoogleNet, no proof ({found.ended}, {100 * found.gap:.1f} % above"
        f" its bound) | 985 + 10 | {1000 * seconds:.0f} | |"
    )


def beside_z3(limit: float = Z3_LIMIT) -> Iterator[str]:
    """Z3 on the first groups of GoogleNet twice, and on experiments: those of two networks, and Fig. 7's."""
    yield f"{limit:g} s by the clock for each case at most, one run ({machine()}); CPU s.\n"
    yield "| case | groups | contention | exact search and proof, ms | Z3, CPU s | same makespan |"
    yield "|---|--:|---|--:|--:|:-:|"
    for contention, sizes in (("none", (2, 4, 6, 10)), ("light", (1, 2, 3))):
        for size in sizes:
            yield _z3("GoogleNet twice", _small(size, contention), contention, limit)
    for row in experiments():
        if sum(map(len, row.chains)) == 2 or row.number in PAPER_7:
            workload = replace(experiment(row, "light"), model=NO_CONTENTION)
            yield _z3(f"experiment {row.number}", workload, "none", limit)


LONG_LIMIT = 1800.0
"""Seconds by the clock that Z3 gets for the long case."""


@cache
def long_network(contention: str) -> Workload:
    """Inc-res-v2, cut wherever one tensor crosses, beside GoogleNet (Table 2)."""
    soc = soc_of("xavier-agx")
    network = onchip.load("zoo:inception_resnet_v2").network
    jobs = (
        Job("inception_resnet_v2", synthetic_profile(network, soc, most=EVERYWHERE)),
        Job("googlenet", googlenet()),
    )
    return Workload(soc, jobs, NO_CONTENTION if contention == "none" else soc.model(contention))


EVERYWHERE = 1000
"""Groups of a network: more than there are places to cut it."""


def long_z3() -> Iterator[str]:
    """The network of 985 layers in the groups that it has: the exact search, and Z3 without contention."""
    yield f"CPU seconds, one run ({machine()}).\n"
    yield "| case | groups | contention | exact search and proof, ms | Z3, s | same makespan |"
    yield "|---|--:|---|--:|--:|:-:|"
    for contention in ("none", "light"):
        workload = long_network(contention)
        groups = " + ".join(str(len(job.profile.groups)) for job in workload.jobs)
        began = process_time()
        exact = solve_pair(workload)
        spent = 1000 * (process_time() - began)
        head = f"| Inc-res-v2, GoogleNet | {groups} | {contention} | {spent:.0f}"
        if exact.ended != "complete":
            head += ", no proof"
        if contention != "none":
            yield f"{head} | not given to it | |"
            continue
        began = process_time()
        try:
            answer = solve_with_z3(workload, time_limit=LONG_LIMIT)
        except MissingExtra as missing:
            yield f"{head} | {missing} | |"
            continue
        spent = process_time() - began
        if not answer.proved or answer.makespan_ms is None:
            yield f"{head} | no proof in {spent:.0f} | |"
            continue
        same = "yes" if abs(answer.makespan_ms - exact.cost_ms) <= 1e-9 * exact.cost_ms else "**no**"
        yield f"{head} | {spent:.1f} | {same} |"


def _time_exact(workload: Workload) -> float:
    """ms of the exact search and its proof."""
    times = []
    for _ in range(ROUNDS):
        began = process_time()
        solve_pair(workload)
        times.append(1000 * (process_time() - began))
    return median(times)


def _time_all(workload: Workload) -> float:
    times = []
    for _ in range(ROUNDS):
        began = process_time()
        solve(workload, options=SolveOptions())
        times.append(1000 * (process_time() - began))
    return median(times)


def divided(profile: Profile, count: int) -> Profile:
    """The profile with its groups cut into equal pieces, `count` in all."""
    each, more = divmod(count, len(profile.groups))
    groups = []
    for n, group in enumerate(profile.groups):
        pieces = each + (n < more)
        times = tuple(None if ms is None else ms / pieces for ms in group.ms)
        groups += [replace(group, name=f"{group.name}.{k}", ms=times) for k in range(pieces)]
    return replace(profile, groups=tuple(groups))


@cache
def _small(size: int, contention: str) -> Workload:
    profile = replace(googlenet(), groups=googlenet().groups[:size])
    soc = soc_of("xavier-agx")
    model = NO_CONTENTION if contention == "none" else soc.model(contention)
    return Workload(soc, (Job("x", profile), Job("y", profile)), model)


def _z3(case: str, workload: Workload, contention: str, limit: float) -> str:
    groups = " + ".join(str(len(job.profile.groups)) for job in workload.jobs)
    exact = solve_pair(workload).cost_ms
    head = f"| {case} | {groups} | {contention} | {_time_exact(workload):.0f} |"
    began = process_time()
    try:
        answer = solve_with_z3(workload, time_limit=limit)
    except MissingExtra as missing:
        return f"{head} {missing} | |"
    if answer.proved and answer.makespan_ms is not None:
        same = "yes" if abs(answer.makespan_ms - exact) <= 1e-9 * exact else "**no**"
        return f"{head} {process_time() - began:.2f} | {same} |"
    return f"{head} no proof in {process_time() - began:.0f} | |"
