"""The pictures of docs/hax-conn.md: the paper's figures 1 and 3 to 7 with our data, and its Table 6."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from charts import Box, Lanes, Panel, bars, lanes, lines
from hax_conn_cases import ORIN, SETS, TEN, TITLES, XAVIER, pair, side_by_side
from hax_conn_figures import FILTERS, INPUTS, THREE, four_steps, sketch, slowdowns, whole
from hax_conn_setup import on_setup

from onchip.multi_dnn.published import experiments
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.timeline import Timeline

__all__ = ["DRAWN", "draw"]

MOMENTS = (0.25, 1, 5, 25, 100, 250, 500, 1500)
"""ms after a change of networks at which Fig. 7 shows the latency; from 25 on they are the paper's."""


def fig_1(path: Path, text: str) -> None:
    """Serial, naive and split under `light`."""
    workload = pair(XAVIER, "vgg19", "resnet101", "light")
    split = side_by_side(XAVIER, "vgg19", "resnet101", "light").result.solution.timeline
    ways = {
        "Case 1: both on the GPU, one after the other": simulate(workload, whole(workload, (0, 0))),
        "Case 2: VGG-19 on the GPU, ResNet-101 on the DLA": simulate(workload, whole(workload, (0, 1))),
        "Case 3: by layer groups": split,
    }
    lanes(path, [_timeline(title, timeline) for title, timeline in ways.items()], unit="ms")


def _timeline(title: str, timeline: Timeline) -> Lanes:
    """A lane for each unit; groups of a network that follow each other on a unit are one box."""
    boxes: list[Box] = []
    jobs = timeline.workload.jobs
    for s in sorted(timeline.segments, key=lambda s: (s.unit, s.start)):
        name = TITLES.get(jobs[s.step.job].name, jobs[s.step.job].name)
        last = boxes[-1] if boxes else None
        if last and last.lane == s.unit and last.series == name and s.start - last.end < 1e-9:
            boxes[-1] = Box(s.unit, last.start, s.end, name, name)
        else:
            boxes.append(Box(s.unit, s.start, s.end, name, name))
    names = [unit.name.upper() for unit in timeline.workload.soc.units]
    short = [box if box.end - box.start > 0.8 else Box(*_of(box), "") for box in boxes]
    return Lanes(f"{title}: {timeline.makespan_ms:.2f} ms", names, short)


def _of(box: Box) -> tuple[int, float, float, str]:
    return box.lane, box.start, box.end, box.series


def fig_3(path: Path, text: str) -> None:
    """Use of the memory controller by the 25 convolutions, in % of its nominal bandwidth."""
    panels = []
    for unit, name in enumerate(("GPU", "DLA")):
        series = {}
        for n, size in enumerate(INPUTS):
            asked = [four_steps(size, k)[unit] / 136.5 * 100 for k in FILTERS]
            series[f"i{n + 1} {'x'.join(map(str, size))}"] = asked
        panels.append(Panel(name, [f"f{n + 1}" for n in range(len(FILTERS))], series))
    lines(path, panels, unit="EMC utilisation, %", across=2)


def fig_4(path: Path, text: str) -> None:
    """The sketch: each group's time alone, and what the others add to it."""
    timeline = simulate(*sketch())
    jobs = timeline.workload.jobs
    boxes = []
    for s in timeline.segments:
        group = jobs[s.step.job].profile.groups[s.step.group]
        for piece in s.pieces:
            alone = piece.start + (piece.end - piece.start) / piece.slowdown
            boxes.append(Box(s.unit, piece.start, alone, "as alone", group.name))
            if piece.slowdown > 1:
                boxes.append(Box(s.unit, alone, piece.end, "slowed down"))
    names = [unit.name for unit in timeline.workload.soc.units]
    lanes(path, [Lanes("Each contention interval, its share as alone first", names, boxes)], unit="ms")


def fig_5(path: Path, text: str) -> None:
    """Two copies of each network on Orin under `light`."""
    series: dict[str, list[float | None]] = {"onchip": [], "GPU only": [], "GPU & DLA": [], "Mensa-like": []}
    for name in TEN:
        found = side_by_side(ORIN, name, name, "light")
        series["onchip"].append(2000 / found.cost)
        for title, key in zip(("GPU only", "GPU & DLA", "Mensa-like"), THREE, strict=True):
            rival = found.baseline(key)
            series[title].append(None if rival is None else 2000 / rival)
    panel = Panel("Two copies at once on Orin, light", [TITLES[name] for name in TEN], series)
    bars(path, [panel], unit="images per second", across=1)


def fig_6(path: Path, text: str) -> None:
    """GoogleNet's slowdown beside each network."""
    panels = []
    for contention in SETS:
        both = [slowdowns(name, contention) for name in TEN]
        series = {
            "onchip": [100 * ours for _, ours in both],
            "naive": [None if naive is None else 100 * naive for naive, _ in both],
        }
        panels.append(Panel(contention, [TITLES[name] for name in TEN], series))
    bars(path, panels, unit="slowdown, %")


def fig_7(path: Path, text: str) -> None:
    """Latency after each change, from the first table of the section's text."""
    panels = []
    for cells in re.findall(r"^\| (\d+) \| ([\d., |]+) \|$", text, re.M):
        number, (first, at_first, improved, at_best, oracle, _) = cells[0], map(float, cells[1].split(" | "))
        known: list[float | None] = [
            None if moment < first else at_first if moment < improved else at_best for moment in MOMENTS
        ]
        title = f"experiment {number}"
        series: dict[str, list[float | None]] = {"onchip": known, "oracle": [oracle] * len(MOMENTS)}
        panels.append(Panel(title, [f"{moment:g}" for moment in MOMENTS], series))
    lines(path, panels, unit="latency, ms, by ms after the change")


def table_6(path: Path, text: str) -> None:
    """Results on the paper's set-up beside the paper's, in its GPU-only times."""
    keys = {"onchip": "", "HaX-CoNN": "hax_conn", "GPU only": "gpu_only", "GPU & DSA": "split"}
    series: dict[str, list[float | None]] = {}
    for title, key in keys.items():
        rows = experiments()
        cost = [row.ms[key] if key else on_setup(row.number, "light").found.cost for row in rows]
        series[title] = [ms / row.ms["gpu_only"] for ms, row in zip(cost, rows, strict=True)]
    labels = [str(row.number) for row in experiments()]
    bars(path, [Panel("Table 6 under light", labels, series)], unit="time, GPU only = 1", across=1)


DRAWN: Mapping[str, Callable[[Path, str], None]] = {
    "table6": table_6,
    "fig1": fig_1,
    "fig3": fig_3,
    "fig4": fig_4,
    "fig5": fig_5,
    "fig6": fig_6,
    "fig7": fig_7,
}
"""What draws a section's picture into a file, given the section's text."""


def draw(name: str, text: str, images: Path) -> None:
    """The picture of a section, where it has one."""
    if name in DRAWN:
        DRAWN[name](images / f"hax-conn-{name}.svg", text)
