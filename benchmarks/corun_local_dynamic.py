"""Changing sets of networks on two cores of this machine, searched for while they run.

    python benchmarks/corun_local_dynamic.py overhead    # what a search costs the frames (Table 7)
    python benchmarks/corun_local_dynamic.py changes     # three changes of networks (Fig. 7)

`overhead`: mobilenet_v2 on OpenVINO beside another network on onnxruntime, as the paper has AlexNet on the
DLA. Frames run without a scheduler, beside one that has nothing left to find, beside one that searches all
the time in idle time, and beside the same at ordinary priority; the four take turns of a few frames. The
schedule stays the same, so that nothing but the search differs. Unlike the paper's, it has no third core.

`changes`: sets as of experiments 2, 5 and 1, with networks of the zoo, for some seconds each, twice around.

Both take one to three minutes; docs/corun-local.md has their output.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from statistics import median
from time import perf_counter

from corun_local import Others

from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn.dispatch import first_come
from onchip.multi_dnn.dynamic import Answer, DynamicScheduler
from onchip.multi_dnn.improvements import Stopped, improvements
from onchip.multi_dnn.local import Runtime
from onchip.multi_dnn.local.live import Live, LiveFrame, at_leisure
from onchip.multi_dnn.local.measuring import Measuring
from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.solution import Objective, Solution
from onchip.multi_dnn.workload import Job, Workload
from onchip.readers import load

BESIDE = "mobilenet_v2"
NETWORKS = ("googlenet", "resnet18", "resnet50")
MOST_GROUPS = 8
MEASURED = 15
"""Rounds of measuring: enough to plan by."""
TURN = 10
"""Frames of each kind in a turn."""
SECONDS = 40.0
"""For each network of `overhead`."""
SETS = (("googlenet", "resnet18"), ("resnet18", "googlenet", "mobilenet_v2"), ("googlenet", "googlenet"))
EACH = 4.0
"""Seconds between two changes."""

Improver = Callable[[Workload, Objective, Schedule, Stopped], Iterator[Solution]]


def main() -> None:
    {"overhead": overhead, "changes": changes}[sys.argv[1]](*sys.argv[2:])


def overhead(*names: str) -> None:
    """Frames beside a search, and without."""
    soc = load_soc("local")
    columns = "idle | searching in idle time | searching at ordinary priority"
    print(f"| network | latency ms | {columns} | frames/s | {columns} | frames | others |")
    print("| --- |" + " ---: |" * 10)
    for name in names or NETWORKS:
        with Runtime(soc.unit_names) as runtime:
            made = [Measuring(load(f"zoo:{n}"), soc, runtime, most=MOST_GROUPS) for n in (name, BESIDE)]
            for one in made:
                one.measure(1)
            jobs = tuple(Job(n, one.profile()) for n, one in zip((name, BESIDE), made, strict=True))
            workload = Workload(soc, jobs, NO_CONTENTION)
            mapping = [[[unit] * len(job.profile.groups)] for unit, job in enumerate(jobs)]
            answer = Answer(workload, first_come(workload, mapping), "fixed", 0.0)
            live = Live(
                runtime,
                Fixed(answer),
                {job.name: one.cut for job, one in zip(jobs, made, strict=True)},
                checked=False,
            )
            live.frame()
            others = Others([os.getpid(), *runtime.pids])
            print(f"| {name} {compared(live, workload)} {others.share():.0%} |", flush=True)


class Fixed:
    """Has one answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def frame(self) -> Answer:
        """The answer."""
        return self.answer


def for_ever(
    workload: Workload, objective: Objective, known: Schedule, stopped: Stopped
) -> Iterator[Solution]:
    """The whole search, over and over; nothing comes of it."""
    while not stopped():
        for _ in improvements(workload, objective, known, stopped):
            pass
    yield from ()


def compared(live: Live[Answer], workload: Workload) -> str:
    """The rest of a network's row."""
    kinds: dict[str, Improver | None] = {
        "none": None,
        "idle": improvements,
        "leisure": at_leisure(for_ever),
        "ordinary": for_ever,
    }
    spans: dict[str, list[float]] = {kind: [] for kind in kinds}
    walls = dict.fromkeys(kinds, 0.0)
    end = perf_counter() + SECONDS
    while perf_counter() < end:
        for kind, improver in kinds.items():
            with ExitStack() as stack:
                if improver is not None:
                    scheduler = stack.enter_context(DynamicScheduler(improver=improver))
                    scheduler.change(workload)
                    if kind == "idle":
                        scheduler.settle()
                    scheduler.frame()
                begin = perf_counter()
                for _ in range(TURN):
                    spans[kind].append(live.frame().milliseconds)
                walls[kind] += perf_counter() - begin
    usual = {kind: median(found) for kind, found in spans.items()}
    fps = {kind: len(found) / walls[kind] for kind, found in spans.items()}
    kinds.pop("none")
    latency = [f"{usual[kind] / usual['none'] - 1:+.1%}" for kind in kinds]
    rate = [f"{fps[kind] / fps['none'] - 1:+.1%}" for kind in kinds]
    cells = [f"{usual['none']:.2f}", *latency, f"{fps['none']:.1f}", *rate, f"{len(spans['none']):,} each"]
    return f"| {' | '.join(cells)} |"


def changes() -> None:
    """Latency over time."""
    soc = load_soc("local")
    with Runtime(soc.unit_names) as runtime:
        names = dict.fromkeys(name for names in SETS for name in names)
        made = {name: Measuring(load(f"zoo:{name}"), soc, runtime, most=MOST_GROUPS) for name in names}
        for _ in range(3):
            for one in made.values():
                one.measure(MEASURED // 3)
        profiles = {name: one.profile() for name, one in made.items()}
        sets = []
        for members in SETS:
            jobs = [
                Job(name if name not in members[:n] else f"{name} #{n + 1}", profiles[name])
                for n, name in enumerate(members)
            ]
            sets.append(Workload(soc, tuple(jobs), NO_CONTENTION))
        cuts = {job.name: made[job.name.partition(" ")[0]].cut for w in sets for job in w.jobs}
        with DynamicScheduler(improver=at_leisure(improvements)) as scheduler:
            live = Live(runtime, scheduler, cuts)
            for workload in sets:
                live.load(workload)
            frames: list[LiveFrame[Answer]] = []
            others = Others([os.getpid(), *runtime.pids])
            begin = perf_counter()
            for turn, workload in enumerate((*sets, *sets), 1):
                scheduler.change(workload)
                while perf_counter() - begin < turn * EACH:
                    frames.append(live.frame())
            busy = others.share()
        outputs = live.compare()
    tell(frames)
    print(
        f"\n{len(frames):,} frames, {outputs:,} outputs equal to a plain run, no step out of order; others"
        f" had {busy:.0%} of the two cores"
    )


def tell(frames: list[LiveFrame[Answer]]) -> None:
    """A row for each stretch of frames with the same schedule."""
    print(
        "| networks | frames from, s | frames | predicted ms | least ms | median ms | schedule by | swap ms |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | --- | ---: |")
    starts = [n for n, frame in enumerate(frames) if frame.swapped]
    for begin, end in zip(starts, [*starts[1:], len(frames)], strict=True):
        stretch = frames[begin:end]
        first, spans = stretch[0], [frame.milliseconds for frame in stretch]
        jobs = ", ".join(job.name.partition(" ")[0] for job in first.answer.workload.jobs)
        print(
            f"| {jobs} | {first.seconds:.2f} | {len(stretch)} | {first.answer.cost_ms():.2f} |"
            f" {min(spans):.2f} | {median(spans):.2f} | {first.answer.solver} | {first.swap_ms:.1f} |"
        )


if __name__ == "__main__":
    main()
