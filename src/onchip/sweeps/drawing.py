"""Curves as SVG: buffer across, DRAM bytes up, both logarithmic; the points' data in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, log, log10
from typing import Any

from markupsafe import Markup

from onchip.base.errors import AMONG
from onchip.report.svg import element, number, picture, title
from onchip.report.wording import short_size, shorten, visible
from onchip.sweeps.curves import Curve, Spot

__all__ = ["MARKED", "SHADES", "chart", "key"]

WIDTH, HEIGHT = 1100.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 84.0, 20.0, 30.0, 34.0
SHADES = 7
"""Colours and shapes of series; the eighth has the first one's colour and shape, and another dash."""

DASHES = ("", "7 4", "2 3", "9 3 2 3")

MARKED = 2_000
"""The most points marked in one picture; beyond it, only points that move less than all smaller buffers."""

SHAPES = (
    "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0-4 0Z",
    "M-3.6-3.6H3.6V3.6H-3.6Z",
    "M0-5L4.8 3.6H-4.8Z",
    "M0-5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 5L4.8-3.6H-4.8Z",
    "M-1.7-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z",
    "M-4.6 0L-2.3-4.2H2.3L4.6 0L2.3 4.2H-2.3Z",
)


def key(index: int) -> Markup:
    """Return a series' line and mark for the key."""
    line = element("path", d="M0 6H30", class_=f"trade c{index % SHADES}", **_dash(index))
    mark = element(
        "path", d=SHAPES[index % SHADES], transform="translate(15 6)", class_=f"mark c{index % SHADES}"
    )
    return element("svg", line + mark, viewBox="0 0 30 12", class_="sample", aria_hidden="true")


def _dash(index: int) -> dict[str, str]:
    dash = DASHES[index // SHADES % len(DASHES)]
    return {"stroke_dasharray": dash} if dash else {}


def chart(
    curves: Sequence[Curve], places: Mapping[str, int], rows: Sequence[Mapping[str, Any]], name: str
) -> Markup:
    """Return one network's curves; `places` gives each series its colour, `rows` is their table."""
    return _Chart(curves, places, rows, name).drawn()


@dataclass(frozen=True)
class _Chart:
    curves: Sequence[Curve]
    places: Mapping[str, int]
    rows: Sequence[Mapping[str, Any]]
    name: str

    @cached_property
    def budgets(self) -> tuple[float, float]:
        """The least and the most of the axis."""
        found = [s.budget for c in self.curves for s in c.spots] + [
            b for c in self.curves for b, _ in c.nothing
        ]
        return _wide(min(found, default=1), max(found, default=2))

    @cached_property
    def limit(self) -> int | None:
        """The compulsory bytes, if they are the same for all curves."""
        limits = {curve.limit for curve in self.curves}
        return limits.pop() if len(limits) == 1 else None

    @cached_property
    def moved(self) -> tuple[float, float]:
        """The least and the most of the axis."""
        found = [s.dram for c in self.curves for s in c.spots if s.dram > 0]
        if self.limit:
            found.append(self.limit)
        low, high = _wide(min(found, default=1), max(found, default=2))
        return low / 1.03, high * 1.06

    def x(self, budget: float) -> float:
        low, high = self.budgets
        return LEFT + 8 + (WIDTH - LEFT - RIGHT - 16) * log(budget / low) / log(high / low)

    def y(self, dram: float) -> float:
        low, high = self.moved
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * log(max(dram, low) / low) / log(high / low)

    def drawn(self) -> Markup:
        parts = [*self._axes(), *self._limit(), *(line for c in self.curves for line in self._line(c))]
        count = 0
        for curve in self.curves:
            marks = list(self._marks(curve, count))
            count += len(marks)
            parts += marks
        words = f"DRAM bytes of {self.name} by buffer size"
        return picture(WIDTH, HEIGHT, words, parts)

    def _axes(self) -> Iterator[Markup]:
        yield element(
            "rect", class_="well", x=LEFT, y=TOP, width=WIDTH - LEFT - RIGHT, height=HEIGHT - TOP - BOTTOM
        )
        low, high = self.budgets
        first, last = ceil(log(low, 2) - 1e-9), floor(log(high, 2) + 1e-9)
        each = max(1, ceil((last - first + 1) / 14))
        ticks: list[float] = [2.0**n for n in range(first, last + 1, each)] if last > first else [low, high]
        for at in ticks:
            x = number(self.x(at))
            yield element("path", class_="grid", d=f"M{x} {number(TOP)}V{number(HEIGHT - BOTTOM)}")
            yield element("text", _power(at), class_="quiet middle", x=x, y=HEIGHT - BOTTOM + 16)
        for dram, words in _round_between(*self.moved):
            y = number(self.y(dram))
            yield element("path", class_="grid", d=f"M{number(LEFT)} {y}H{number(WIDTH - RIGHT)}")
            yield element("text", words, class_="quiet end", x=LEFT - 8, y=self.y(dram) + 4)
        yield element("text", "DRAM bytes", class_="quiet", x=8, y=16)
        yield element("text", "buffer", class_="quiet end", x=WIDTH - RIGHT, y=HEIGHT - 3)

    def _limit(self) -> Iterator[Markup]:
        if not self.limit:
            return
        y = self.y(self.limit)
        yield element("path", class_="floor", d=f"M{number(LEFT)} {number(y)}H{number(WIDTH - RIGHT)}")
        yield element("text", f"compulsory {short_size(self.limit)}", class_="quiet on", x=LEFT + 8, y=y - 5)

    def _line(self, curve: Curve) -> Iterator[Markup]:
        place = self.places[curve.series]
        path = "".join(
            f"{'L' if i else 'M'}{number(self.x(s.budget))} {number(self.y(s.dram))}"
            for i, s in enumerate(curve.spots)
        )
        if path:
            yield element("path", d=path, class_=f"trade c{place % SHADES}", **_dash(place))

    def _marks(self, curve: Curve, count: int) -> Iterator[Markup]:
        place = self.places[curve.series]
        without = [c for c in self.curves if c.nothing]
        aside = 7 * (without.index(curve) - (len(without) - 1) / 2) if curve in without else 0.0
        for budget, row in curve.nothing[:MARKED]:
            yield self._mark(
                count,
                place,
                (self.x(budget) + aside, TOP - 10),
                "M-3.5-3.5L3.5 3.5M3.5-3.5L-3.5 3.5",
                "none",
                self._no(curve, row),
            )
            count += 1
        named = {curve.first, curve.knee, curve.near, curve.least}
        all_of_them = sum(len(c.spots) for c in self.curves) <= MARKED
        lowest = float("inf")
        for spot in curve.spots:
            lower, lowest = spot.dram < lowest, min(lowest, spot.dram)
            if not (all_of_them or lower or spot in named):
                continue
            kind = "knee" if spot == curve.knee else "open" if not spot.proved else ""
            yield self._mark(
                count,
                place,
                (self.x(spot.budget), self.y(spot.dram)),
                SHAPES[place % SHADES],
                kind,
                self._words(curve, spot),
            )
            count += 1

    def _mark(
        self, at: int, place: int, spot: tuple[float, float], shape: str, kind: str, words: str
    ) -> Markup:
        where = f"translate({number(spot[0])} {number(spot[1])})"
        inner = element("path", d=shape, class_=f"box mark {kind} c{place % SHADES}".replace("  ", " "))
        if kind == "knee":
            inner = element("circle", r=10, class_=f"ring c{place % SHADES}") + inner
        area = element("circle", r=9, class_="touch")
        return element("g", title(words) + area + inner, transform=where, data_segment=at, data_unit=place)

    def _words(self, curve: Curve, spot: Spot) -> str:
        what = [f"{visible(shorten(curve.network, 60))} in {short_size(spot.budget)}"]
        if curve.series:
            what.append(f"series: {visible(curve.series)}")
        what += [f"buffer: {spot.budget:,} B", f"DRAM: {spot.dram:,} B ({short_size(spot.dram)})"]
        if curve.limit:
            what.append(f"of compulsory: {spot.dram / curve.limit:.3f} x")
        if spot.row >= 0:
            row = self.rows[spot.row]
            what.append(f"status: {row['status']}")
            if row["gap"]:
                what.append(f"gap: at most {100 * row['gap']:.3g} %")
            if row["peak_bytes"] is not None:
                what.append(f"peak: {row['peak_bytes']:,} B")
        roles = {
            "smallest that fits": curve.first,
            "knee": curve.knee,
            "near": curve.near,
            "least": curve.least,
        }
        if called := [name for name, named in roles.items() if named == spot]:
            what.append(f"it is: {', '.join(called)}")
        return "\n".join(what)

    def _no(self, curve: Curve, place: int) -> str:
        row = self.rows[place]
        what = [
            f"{visible(shorten(curve.network, 60))} in {short_size(row['budget_bytes'])}: {row['status']}"
        ]
        if curve.series:
            what.append(f"series: {visible(curve.series)}")
        if row["needs_bytes"]:
            what.append(f"needs: {row['needs_bytes']:,} B")
            what.append(f"has: {row['budget_bytes']:,} B")
        what.append(f"reason: {visible((row['reason'] or '').split(AMONG)[0])}")
        return "\n".join(what)


def _wide(low: float, high: float) -> tuple[float, float]:
    """Return two distinct ends of an axis."""
    return (low, high) if high > low else (low / 1.5, high * 1.5)


def _round_between(low: float, high: float) -> list[tuple[float, str]]:
    """Return round sizes from `low` to `high` bytes and their names, few enough for an axis."""
    unit, name = next(((u, n) for u, n in UNITS if high >= 2 * u), UNITS[-1])
    found: list[float] = []
    for steps in STEPS:
        powers = range(floor(log10(low / unit)), ceil(log10(high / unit)) + 1)
        found = [value for e in powers for s in steps if low <= (value := s * 10.0**e * unit) <= high]
        if len(found) >= 4:
            break
    return [(value, f"{value / unit:g} {name}") for value in found[:: max(1, ceil(len(found) / 10))]]


UNITS = ((float(1 << 30), "GiB"), (float(1 << 20), "MiB"), (1024.0, "KiB"), (1.0, "B"))

STEPS = (
    (1.0,),
    (1.0, 3.0),
    (1.0, 2.0, 5.0),
    (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0),
    tuple(round(1 + n / 5, 1) for n in range(45)),
    tuple(round(1 + n / 50, 2) for n in range(450)),
)
"""The marks of an axis in each power of ten: the first of these that gives enough is used."""


def _power(size: float) -> str:
    """Return a power of two in its usual form: 64 KiB."""
    unit, name = next((u, n) for u, n in UNITS if size >= u)
    return f"{size / unit:.3g} {name}"
