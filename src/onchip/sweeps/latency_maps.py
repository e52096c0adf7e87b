"""Maps of latency over bandwidth and scratchpad: a cell for every plan, and lines of equal latency between.

A line runs where the latency falls below a round time, along the edges of cells: on one side of it all plans
take at least so long, on the other less. A plan for a smaller scratchpad and a slower channel is one for a
larger and a faster, where no transfer takes longer: maps of the objective latency have the least of these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log, log10
from typing import Any

from markupsafe import Markup

from onchip.report.svg import element, number, picture, title
from onchip.report.wording import short_size, short_time, visible

__all__ = ["LatencyMap", "drawn", "maps_of"]

BANDWIDTHS = ("chip.channel_bytes_per_second", "chip.dram_bytes_per_second")
"""The labels of a point that say how fast DRAM is."""

CELL, HIGH, LEFT, TOP, BOTTOM = 84.0, 34.0, 120.0, 26.0, 30.0
LEAST_WIDTH = 1100.0
"""As wide as the curves, so that letters are as large as there."""

ROUND = (1, 2, 5)
"""Lines are drawn at these times powers of ten."""


@dataclass(frozen=True)
class LatencyMap:
    """Picoseconds by (bandwidth, scratchpad bytes), with what else the points have in common, in words."""

    series: str
    bandwidths: tuple[float, ...]
    budgets: tuple[int, ...]
    latency: Mapping[tuple[float, int], int]


def maps_of(rows: Sequence[Mapping[str, Any]], labels: Sequence[str], network: str) -> list[LatencyMap]:
    """Return the maps of one network: those of at least two bandwidths and two scratchpads with a latency."""
    found: dict[str, dict[tuple[float, int], int]] = {}
    fastest = set[str]()
    for row in rows:
        rate = next((row[name] for name in BANDWIDTHS if row.get(name) is not None), None)
        if row["network"] != network or rate is None or row.get("latency_picoseconds") is None:
            continue
        others = [row["chip"], row["planner"]]
        others += [str(row[n]) for n in labels if n not in BANDWIDTHS and row.get(n) is not None]
        series = ", ".join(others)
        if any(row.get(name) == "latency" for name in labels if name.endswith(".objective")):
            fastest.add(series)
        cells = found.setdefault(series, {})
        cells[float(rate), row["budget_bytes"]] = row["latency_picoseconds"]
    made = []
    for series, cells in found.items():
        rates = tuple(sorted({rate for rate, _ in cells}, reverse=True))
        budgets = tuple(sorted({budget for _, budget in cells}))
        if len(rates) > 1 and len(budgets) > 1:
            made.append(LatencyMap(series, rates, budgets, _least(cells) if series in fastest else cells))
    return made


def _least(cells: Mapping[tuple[float, int], int]) -> dict[tuple[float, int], int]:
    """Return for every cell the least latency of those with no faster channel and no larger scratchpad."""
    return {
        (rate, budget): min(t for (r, b), t in cells.items() if r <= rate and b <= budget)
        for rate, budget in cells
    }


def drawn(one: LatencyMap) -> Markup:
    """Return a map as SVG: scratchpad across, bandwidth up, darker where it takes longer."""
    width = max(LEAST_WIDTH, LEFT + CELL * len(one.budgets) + 20)
    height = TOP + HIGH * len(one.bandwidths) + BOTTOM
    label = f"Latency over bandwidth and scratchpad, {visible(one.series)}"
    return picture(width, height, label, (*_cells(one), *_lines(one), *_axes(one, height)), whole=False)


def _cells(one: LatencyMap) -> Iterator[Markup]:
    low, high = min(one.latency.values()), max(one.latency.values())
    for (rate, budget), taken in one.latency.items():
        x, y = _place(one, rate, budget)
        dark = 0.0 if low == high or not low else log(taken / low) / log(high / low)
        words = title(f"{short_time(taken)}: {_rate(rate)}, {short_size(budget)}")
        yield element(
            "rect", words, x=number(x), y=number(y), width=number(CELL), height=number(HIGH), class_="heat",
            fill_opacity=f"{0.1 + 0.7 * dark:.2f}",
        )  # fmt: skip
        middle, base = number(x + CELL / 2), number(y + HIGH / 2 + 4)
        yield element("text", short_time(taken), x=middle, y=base, text_anchor="middle")


def _lines(one: LatencyMap) -> Iterator[Markup]:
    for level in _levels(one.latency.values()):
        path = []
        for (rate, budget), taken in one.latency.items():
            x, y = _place(one, rate, budget)
            right, below = _next(one.budgets, budget), _next(one.bandwidths, rate)
            if right is not None and _between(level, taken, one.latency.get((rate, right))):
                path.append(f"M{number(x + CELL)} {number(y)}V{number(y + HIGH)}")
            if below is not None and _between(level, taken, one.latency.get((below, budget))):
                path.append(f"M{number(x)} {number(y + HIGH)}H{number(x + CELL)}")
        if path:
            yield element("path", title(short_time(level)), d="".join(path), class_="iso")


def _axes(one: LatencyMap, height: float) -> Iterator[Markup]:
    for budget in one.budgets:
        x, _ = _place(one, one.bandwidths[0], budget)
        at = number(x + CELL / 2)
        yield element("text", short_size(budget), x=at, y=number(height - 10), text_anchor="middle")
    for rate in one.bandwidths:
        _, y = _place(one, rate, one.budgets[0])
        yield element("text", _rate(rate), x=number(LEFT - 8), y=number(y + HIGH / 2 + 4), class_="end")


def _levels(latencies: Collection[int]) -> Iterator[int]:
    """Yield the round times above the least latency, up to the largest."""
    low, high = min(latencies), max(latencies)
    power = floor(log10(max(1, low)))
    while 10**power <= high:
        for digit in ROUND:
            level = digit * 10**power
            if low < level <= high:
                yield level
        power += 1


def _place(one: LatencyMap, rate: float, budget: int) -> tuple[float, float]:
    return LEFT + CELL * one.budgets.index(budget), TOP + HIGH * one.bandwidths.index(rate)


def _next(values: Sequence[Any], value: Any) -> Any:
    at = values.index(value) + 1
    return values[at] if at < len(values) else None


def _between(level: int, taken: int, other: int | None) -> bool:
    return other is not None and min(taken, other) < level <= max(taken, other)


def _rate(rate: float) -> str:
    for unit, size in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if rate >= size:
            return f"{rate / size:.4g} {unit}"
    return f"{rate:.4g} B/s"
