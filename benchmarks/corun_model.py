"""The figures of docs/corun.md: what the judge says of GoogleNet twice on Xavier, and the paper's errata.

    python benchmarks/corun_model.py [--into docs/corun.md]

Prints Markdown tables, or puts each between its marks on the page. Nothing is timed, so any machine prints
the same. Half a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import median

from page_marks import Section, write

from onchip.base.errors import IllegalSchedule
from onchip.machines.contention import ContentionModel
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.published import experiments, googlenet, standalone
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.timeline import Segment, Timeline
from onchip.multi_dnn.workload import Job, Workload
from onchip.papers.hax_conn.fit import Sample, fit_contention

XAVIER = load_soc("xavier-agx")
SETS = ("none", "light", "medium", "heavy")
ORDERS = 500
"""Random orders of one mapping."""
Interval = tuple[float, float]


def pair(model: ContentionModel, profile: Profile | None = None) -> Workload:
    """GoogleNet twice."""
    profile = profile or googlenet()
    return Workload(XAVIER, (Job("x", profile), Job("y", profile)), model)


def first_come(work: Workload, units: tuple[Sequence[int], Sequence[int]], first: int) -> Schedule:
    """Each unit takes what is ready first (by the times alone), `first` of two that are ready at once."""
    groups, free, at, done = work.jobs[0].profile.groups, [0.0, 0.0], [0.0, 0.0], [0, 0]
    order: list[list[Step]] = [[], []]
    while min(done) < len(groups):
        begins = [
            (max(at[j], free[units[j][done[j]]]), j != first, j) for j in (0, 1) if done[j] < len(groups)
        ]
        begin, _, j = min(begins)
        unit, g = units[j][done[j]], done[j]
        free[unit] = at[j] = begin + (groups[g].ms[unit] or 0.0)
        order[unit].append(Step(j, 0, g))
        done[j] += 1
        if done[j] < len(groups):
            at[j] += work.jobs[j].profile.transition_ms(g, unit, units[j][g + 1])
    return Schedule(((tuple(units[0]),), (tuple(units[1]),)), (tuple(order[0]), tuple(order[1])))


def mappings(groups: int, switches: int) -> Iterator[tuple[int, ...]]:
    """Every mapping of a chain to two units with at most so many changes."""
    for count in range(switches + 1):
        for cuts in combinations(range(1, groups), count):
            for unit in (0, 1):
                yield tuple((unit + sum(cut <= g for cut in cuts)) % 2 for g in range(groups))


@cache
def best_of_set(name: str) -> tuple[Timeline, Schedule]:
    """`best_mapping` with two changes under one of Xavier's parameter sets."""
    return best_mapping(pair(XAVIER.model(name)), 2)


def best_mapping(work: Workload, switches: int) -> tuple[Timeline, Schedule]:
    """The best first-come schedule with at most so many changes of unit in each copy (no proof)."""
    found: tuple[Timeline, Schedule] | None = None
    rows = [*mappings(len(work.jobs[0].profile.groups), switches)]
    for x in rows:
        for y in rows:
            if x <= y:
                for first in (0, 1):
                    schedule = first_come(work, (x, y), first)
                    timeline = simulate(work, schedule)
                    if found is None or timeline.makespan_ms < found[0].makespan_ms:
                        found = timeline, schedule
    assert found is not None
    return found


# -- the paper's equations -----------------------------------------------------------------------------------


def printed_interval(i: Interval, j: Interval) -> float:
    """Eq. 8 as printed."""
    (si, ei), (sj, ej) = i, j
    if sj <= si <= ej and si <= sj <= ei:
        return ej - si
    if si <= sj <= ei:
        return ej - sj
    return ei - si


def overlap(i: Interval, j: Interval) -> float:
    """How long both run."""
    return max(0.0, min(i[1], j[1]) - max(i[0], j[0]))


def printed_latency(
    timeline: Timeline, job: int, interval: Callable[[Interval, Interval], float], every: bool
) -> float:
    """Eq. 2 with eq. 7 over the judged intervals: over every group of the others, or those that overlap."""
    work = timeline.workload
    total = 0.0
    for s in timeline.segments:
        if s.step.job != job:
            continue
        group = work.jobs[job].profile.groups[s.step.group]
        alone = group.ms[s.unit] or 0.0
        others = [
            o
            for o in timeline.segments
            if o.step.job != job and (every or overlap((s.start, s.end), (o.start, o.end)) > 0)
        ]
        factor = 1.0
        if others:
            factor = sum(_share(work, s, o, interval) for o in others) / (alone * len(others))
        total += alone * factor + s.transition_ms
    return total


def _share(work: Workload, s: Segment, o: Segment, interval: Callable[[Interval, Interval], float]) -> float:
    mine = work.jobs[s.step.job].profile.groups[s.step.group].gb_per_second[s.unit]
    theirs = work.jobs[o.step.job].profile.groups[o.step.group].gb_per_second[o.unit]
    return interval((s.start, s.end), (o.start, o.end)) * work.model.slowdown(s.unit, mine, theirs)


# -- tables --------------------------------------------------------------------------------------------------


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """A Markdown table."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' if n == 0 else '---:' for n in range(len(head)))} |"
    for row in rows:
        cells = (f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row)
        yield f"| {' | '.join(cells)} |"


def parameter_sets() -> Iterator[str]:
    """GoogleNet twice on Xavier (Table 2) under each set, ms until both are done."""
    rows = []
    for name in SETS:
        work = pair(XAVIER.model(name))
        groups = len(work.jobs[0].profile.groups)
        gpu, dla = (0,) * groups, (1,) * groups
        one = simulate(work, first_come(work, (gpu, gpu), 0))
        split = simulate(work, first_come(work, (gpu, dla), 0))
        best, _ = best_of_set(name)
        slowest = max(p.slowdown for s in split.segments for p in s.pieces)
        rows.append(
            (
                "no contention" if name == "none" else name,
                one.makespan_ms,
                split.makespan_ms,
                best.makespan_ms,
                f"{100 * (one.makespan_ms / best.makespan_ms - 1):.0f} %",
                slowest,
            )
        )
    head = (
        "GoogleNet twice (Table 2), ms", "GPU alone", "one copy on each",
        "at most two changes each, first come", "gain", "worst slowdown",
    )  # fmt: skip
    yield from table(head, rows)


def bandwidth_of_the_dla() -> Iterator[str]:
    """What hangs on the black box's bandwidth: the GPU's for the DLA, too, instead of its bytes."""
    profile = googlenet()
    same = replace(
        profile, groups=tuple(replace(g, gb_per_second=(g.gb_per_second[0],) * 2) for g in profile.groups)
    )
    other, _ = best_mapping(pair(XAVIER.model("light"), same), 2)
    rows = [
        ("the same bytes in its own time", best_of_set("light")[0].makespan_ms),
        ("the GPU's bandwidth", other.makespan_ms),
    ]
    yield from table(("the DLA asks for", "at most two changes each, `light`, ms"), rows)


def order_matters() -> Iterator[str]:
    """One mapping under the order of its own first-come rule, and under random legal ones."""
    rows = []
    for name in SETS[1:]:
        work = pair(XAVIER.model(name))
        best, schedule = best_of_set(name)
        rng, makespans = Random(1), []
        for _ in range(ORDERS):
            shuffled = _other_order(schedule, rng)
            try:
                makespans.append(simulate(work, shuffled).makespan_ms)
            except IllegalSchedule:
                continue
        rows.append((name, best.makespan_ms, median(makespans), max(makespans)))
    head = (
        "GoogleNet twice, one mapping, ms",
        "in the order found",
        f"median of {ORDERS} random legal orders",
        "worst",
    )
    yield from table(head, rows)


def _other_order(schedule: Schedule, rng: Random) -> Schedule:
    """Another merge of the two copies' steps on each unit."""
    order = []
    for steps in schedule.order:
        lanes = [[s for s in steps if s.job == j] for j in (0, 1)]
        merged = []
        while lanes[0] or lanes[1]:
            lane = rng.choice([lane for lane in lanes if lane])
            merged.append(lane.pop(0))
        order.append(tuple(merged))
    return replace(schedule, order=tuple(order))


def equations() -> Iterator[str]:
    """The slower copy's latency by the printed equations, on the judge's own intervals."""
    rows = []
    for name in SETS[1:]:
        work = pair(XAVIER.model(name))
        groups = len(work.jobs[0].profile.groups)
        for text, timeline in (
            ("one copy on each", simulate(work, first_come(work, ((0,) * groups, (1,) * groups), 0))),
            ("two changes each", best_of_set(name)[0]),
        ):
            job = max((0, 1), key=lambda j: timeline.latency_ms[j])
            judged = timeline.latency_ms[job]
            cells = [
                printed_latency(timeline, job, interval, every) / judged - 1
                for interval, every in ((printed_interval, False), (overlap, False), (printed_interval, True))
            ]
            rows.append((f"{name}, {text}", judged, *(f"{100 * cell:+.0f} %" for cell in cells)))
    head = (
        "schedule",
        "judge, ms",
        "eq. 7 and 8, overlapping groups",
        "eq. 7 with true overlaps",
        "eq. 7 and 8, all groups",
    )
    yield from table(head, rows)


def table_6() -> Iterator[str]:
    """Table 6's improvements by both definitions, and its GPU-only times beside Table 5."""
    rows = []
    for row in experiments():
        best = min(ms for method, ms in row.ms.items() if method != "hax_conn")
        frames = max(fps for method, fps in row.fps.items() if method != "hax_conn")
        ours = row.ms["hax_conn"]
        alone = standalone(row.soc)
        names = [name for chain in row.chains for name in chain]
        known = all(name in alone for name in names) and row.soc != "snapdragon-865"
        total = f"{sum(alone[name][0] for name in names):.2f}" if known else ""
        rows.append(
            (row.number, f"{100 * (best / ours - 1):.1f}", f"{100 * (1 - ours / best):.1f}",
             f"{row.latency_percent:.0f}", f"{100 * (row.fps['hax_conn'] / frames - 1):.1f}",
             f"{row.fps_percent:.0f}", f"{1000 / ours:.0f}", f"{row.fps['hax_conn']:g}",
             f"{row.ms['gpu_only']:.2f}", total)
        )  # fmt: skip
    head = (
        "experiment", "saved, % of the new time", "% of the old", "printed", "frames gained, %", "printed",
        "1000 / ms", "printed FPS", "GPU only, ms", "sum of Table 5",
    )  # fmt: skip
    yield from table(head, rows)


def fits() -> Iterator[str]:
    """How far fitted constants are from those that the measurements were made with."""
    levels = [5.0 + 7.5 * n for n in range(16)]
    rows = []
    for name in SETS[1:]:
        for unit, constants in XAVIER.contention[name].items():
            rng = Random(1)
            peak = XAVIER.peak_gb_per_second
            cells: list[str] = []
            for noise in (0.0, 3.0):
                samples = [
                    Sample(x, y, constants.speed(x, y, peak) + rng.uniform(-noise, noise))
                    for x in levels
                    for y in levels
                ]
                fit = fit_contention(samples, peak).constants
                errors = [fit.speed(x, y, peak) - constants.speed(x, y, peak) for x in levels for y in levels]
                cells.append(f"{(sum(e * e for e in errors) / len(errors)) ** 0.5:.2f} %")
            rows.append((f"{name}, {unit}", *cells))
    head = (
        "measured on",
        "error of the fitted speeds, exact measurements",
        "measurements 3 % off either way",
    )
    yield from table(head, rows)


SECTIONS: dict[str, Section] = {
    "orders": order_matters,
    "sets": parameter_sets,
    "fits": fits,
    "bandwidth": bandwidth_of_the_dla,
    "equations": equations,
    "table6": table_6,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="SECTION", choices=SECTIONS, default=[*SECTIONS])
    parser.add_argument("--into", type=Path, metavar="PAGE")
    args = parser.parse_args()
    write({name: SECTIONS[name] for name in args.only}, args.into)


if __name__ == "__main__":
    main()
