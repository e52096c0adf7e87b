"""Plots of the papers' pages: bars in groups, stacked bars, lines, boxes on lanes over time.

The same data give the same file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Box", "Lanes", "Panel", "bars", "lanes", "lines"]

COLOURS = (
    *("#1b7f5a", "#c44e52", "#8172b3", "#c55a11", "#1f4e79", "#7f7f7f", "#90c6c0", "#e39a9c", "#bdb3d9"),
    *("#b8a13a", "#2e2e2e"),
)
"""Ours first, then what stands beside it."""


@dataclass(frozen=True)
class Panel:
    """One of a figure's small plots: a value for each series at each label, None where there is none."""

    title: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class Box:
    """What happens on a lane from `start` to `end`: its series gives the colour; with a short text."""

    lane: int
    start: float
    end: float
    series: str
    text: str = ""


@dataclass(frozen=True)
class Lanes:
    """One of a figure's timelines: boxes on named lanes, the first lane on top."""

    title: str
    names: Sequence[str]
    boxes: Sequence[Box]

    @property
    def series(self) -> dict[str, None]:
        """The series of all boxes, in the order in which they come."""
        return dict.fromkeys(box.series for box in self.boxes)


def bars(
    path: Path,
    panels: Sequence[Panel],
    *,
    unit: str,
    across: int = 3,
    stacked: bool = False,
    log: bool = False,
) -> None:
    """Bars of all series side by side, or stacked, at every label; one plot a panel."""
    plt = pyplot()
    figure, axes, rest = _grid(plt, panels, across)
    for axis, panel in zip(axes, panels, strict=False):
        count = 1 if stacked else len(panel.series)
        width = 0.8 / max(1, count)
        bottoms = [0.0] * len(panel.labels)
        for i, (name, values) in enumerate(panel.series.items()):
            places = [x + (0 if stacked else i * width) for x in range(len(panel.labels))]
            heights = [value or 0.0 for value in values]
            axis.bar(
                places,
                heights,
                width * 0.95,
                bottom=bottoms if stacked else 0,
                color=_colour(panels, name),
                label=name,
            )
            if stacked:
                bottoms = [a + b for a, b in zip(bottoms, heights, strict=True)]
        centre = 0 if stacked else 0.4 - width / 2
        turned = sum(len(label) for label in panel.labels) > 40
        axis.set_xticks(
            [x + centre for x in range(len(panel.labels))],
            panel.labels,
            rotation=60 if turned else 0,
            ha="right" if turned else "center",
        )
        if log:
            axis.set_yscale("log")
    _finish(plt, figure, axes, rest, path, unit, across)


def lines(path: Path, panels: Sequence[Panel], *, unit: str, across: int = 3, log: bool = False) -> None:
    """A line with a dot at every label for each series; one plot a panel."""
    plt = pyplot()
    figure, axes, rest = _grid(plt, panels, across)
    for axis, panel in zip(axes, panels, strict=False):
        for name, values in panel.series.items():
            known = [(x, value) for x, value in enumerate(values) if value is not None]
            axis.plot(
                [x for x, _ in known],
                [value for _, value in known],
                marker="o",
                markersize=3,
                color=_colour(panels, name),
                label=name,
            )
        axis.set_xticks(range(len(panel.labels)), panel.labels)
        if log:
            axis.set_yscale("log")
    _finish(plt, figure, axes, rest, path, unit, across)


def lanes(path: Path, panels: Sequence[Lanes], *, unit: str, across: int = 1) -> None:
    """Timelines under each other on one scale of time."""
    plt = pyplot()
    down = -(-len(panels) // across)
    most = max(len(panel.names) for panel in panels)
    size = (10, down * (0.9 + 0.4 * most) + 0.4)
    figure, axes = plt.subplots(down, across, figsize=size, squeeze=False, sharex=True)
    flat = list(axes.flat)
    for axis, panel in zip(flat, panels, strict=False):
        axis.set_title(panel.title, fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
        for box in panel.boxes:
            axis.barh(
                box.lane,
                box.end - box.start,
                left=box.start,
                height=0.7,
                color=_colour(panels, box.series),
                edgecolor="white",
                linewidth=0.6,
                label=box.series,
            )
            if box.text:
                middle = (box.start + box.end) / 2
                axis.text(middle, box.lane, box.text, ha="center", va="center", color="white", fontsize=7)
        axis.set_yticks(range(len(panel.names)), panel.names)
        axis.set_ylim(len(panel.names) - 0.5, -0.5)
        axis.tick_params(labelbottom=True)
    for axis in flat[len(panels) - across : len(panels)]:
        axis.set_xlabel(unit)
    _finish(plt, figure, flat[: len(panels)], flat[len(panels) :], path, "", across)


def pyplot() -> Any:
    """matplotlib that writes the same file from the same data."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "onchip", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot as plt

    return plt


def _colour(panels: Sequence[Panel] | Sequence[Lanes], name: str) -> str:
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    return COLOURS[names.index(name) % len(COLOURS)]


def _grid(plt: Any, panels: Sequence[Panel], across: int) -> tuple[Any, list[Any], list[Any]]:
    across = min(across, len(panels))
    down = -(-len(panels) // across)
    figure, axes = plt.subplots(down, across, figsize=(10, 2.5 * down + 0.5), squeeze=False)
    flat = list(axes.flat)
    for axis, panel in zip(flat, panels, strict=False):
        axis.set_title(panel.title, fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, flat[: len(panels)], flat[len(panels) :]


def _finish(
    plt: Any, figure: Any, axes: list[Any], rest: list[Any], path: Path, unit: str, across: int
) -> None:
    for axis in rest:
        axis.set_visible(False)
    for axis in axes[::across]:
        axis.set_ylabel(unit)
    seen: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            seen.setdefault(label, handle)
    if len(seen) > 1:
        figure.legend(seen.values(), seen.keys(), loc="lower center", ncol=min(len(seen), 6), frameon=False)
    height = figure.get_size_inches()[1]
    figure.tight_layout(rect=(0, 0.35 / height * -(-len(seen) // 6), 1, 1))
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
