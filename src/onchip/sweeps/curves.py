"""The gain of a buffer: a curve of DRAM bytes for every network, chip and planner, and its knee.

A plan for a smaller buffer is also one for a larger buffer, so a curve is read as its running minimum. Three
of its points are named:

- the *first*: the smallest buffer of the sweep with a plan;
- the *knee*: on logarithmic axes, from the first point to the smallest buffer with the least DRAM bytes of
  the curve, the point that lies furthest below the straight line between these two (Kneedle's criterion,
  Satopää et al. 2011, without smoothing). A curve of fewer than three such points, or with none below the
  line, has none;
- *near*: the smallest buffer that comes within a share (10 % unless set otherwise) of the least DRAM bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

__all__ = ["ALL", "Curve", "Spot", "curves_of", "knee_of", "series_of"]

ALL = "all networks"
"""The name of the summed curve: one inference of every network, where each has a plan."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One point of a curve, in bytes; `row` is its index in the table, -1 for a sum over networks."""

    budget: int
    dram: int
    proved: bool
    row: int


@dataclass(frozen=True, slots=True)
class Curve:
    """One network's curve: a spot for each budget, ascending; `nothing` are (budget, row) without a plan.

    `limit` are the compulsory bytes: inputs, outputs and weights, each once.
    """

    network: str
    series: str
    spots: tuple[Spot, ...]
    nothing: tuple[tuple[int, int], ...]
    limit: int | None
    knee: Spot | None
    near: Spot | None

    @property
    def first(self) -> Spot | None:
        """The smallest buffer with a plan."""
        return self.spots[0] if self.spots else None

    @property
    def least(self) -> Spot | None:
        """The smallest buffer with the curve's least DRAM bytes."""
        return min(self.spots, key=lambda spot: (spot.dram, spot.budget), default=None)

    def data(self) -> dict[str, Any]:
        """Return the curve's named points, for JSON."""
        named = {"first": self.first, "knee": self.knee, "near": self.near, "least": self.least}
        return {
            "network": self.network,
            "series": self.series,
            "compulsory_limit_bytes": self.limit,
            **{
                name: None if spot is None else {"budget_bytes": spot.budget, "dram_bytes": spot.dram}
                for name, spot in named.items()
            },
        }


def knee_of(spots: Sequence[Spot]) -> Spot | None:
    """Return the knee of spots with ascending budgets; the module defines it."""
    steps = _steps(spots)
    if len(steps) < 3:
        return None
    (low, most), (high, least) = ((s.budget, s.dram) for s in (steps[0], steps[-1]))
    if least <= 0:
        return None

    def below(spot: Spot) -> float:
        across = log(spot.budget / low) / log(high / low)
        return 1 - across - log(spot.dram / least) / log(most / least)

    best = max(steps, key=below)  # ties: the first, which has the smallest buffer
    return best if below(best) > 1e-9 else None


def _steps(spots: Sequence[Spot]) -> list[Spot]:
    """Return the spots that move less than all before them."""
    found: list[Spot] = []
    for spot in spots:
        if not found or spot.dram < found[-1].dram:
            found.append(spot)
    return found


def series_of(row: Mapping[str, Any], varying: Sequence[str]) -> str:
    """Return the name of a row's series: the values that vary in the sweep, except network and budget."""
    words = []
    for name in varying:
        value = row.get(name)
        if value is None:
            continue
        key = name.split(".", 1)[-1].replace("_", " ")
        words.append(str(value) if name in ("chip", "planner", "chip.array") else f"{key} {value}")
    return ", ".join(words)


def varying_of(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that name a series: those in which rows differ."""
    candidates = ["planner", *names, "chip"]
    return tuple(name for name in candidates if len({repr(row.get(name)) for row in rows}) > 1)


def curves_of(rows: Sequence[Mapping[str, Any]], names: Sequence[str], within: float) -> tuple[Curve, ...]:
    """Return the curves of a table, in its order; the sums over all networks come last."""
    varying = varying_of(rows, names)
    found: dict[tuple[str, str], list[tuple[int, Mapping[str, Any]]]] = {}
    for i, row in enumerate(rows):
        found.setdefault((str(row["network"]), series_of(row, varying)), []).append((i, row))
    made = [_curve(network, series, its, within) for (network, series), its in found.items()]
    return (*made, *_together(made, within))


def _curve(network: str, series: str, rows: Sequence[tuple[int, Mapping[str, Any]]], within: float) -> Curve:
    best: dict[int, Spot] = {}
    nothing: dict[int, int] = {}
    for i, row in rows:
        budget, dram = row["budget_bytes"], row["dram_bytes"]
        if budget is None:
            continue
        if dram is None:
            nothing.setdefault(budget, i)
        elif budget not in best or dram < best[budget].dram:
            best[budget] = Spot(budget, dram, row["status"] == "optimal", i)
    spots = tuple(best[budget] for budget in sorted(best))
    limit = next((row["compulsory_limit_bytes"] for _, row in rows if row["compulsory_limit_bytes"]), None)
    rest = tuple(sorted((budget, i) for budget, i in nothing.items() if budget not in best))
    return Curve(network, series, spots, rest, limit, knee_of(spots), _near(spots, within))


def _near(spots: Sequence[Spot], within: float) -> Spot | None:
    least = min((spot.dram for spot in spots), default=0)
    return next((spot for spot in spots if spot.dram <= (1 + within) * least), None)


def _together(made: Sequence[Curve], within: float) -> list[Curve]:
    """Return, for each series, the sum over all networks at the budgets for which each of them has a plan."""
    networks = {curve.network for curve in made}
    found = []
    for series in dict.fromkeys(curve.series for curve in made):
        curves = [curve for curve in made if curve.series == series]
        if len(networks) < 2 or len(curves) < len(networks):
            continue
        at = [{spot.budget: spot for spot in curve.spots} for curve in curves]
        budgets = sorted(set.intersection(*(set(one) for one in at)))
        spots = tuple(
            Spot(b, sum(one[b].dram for one in at), all(one[b].proved for one in at), -1) for b in budgets
        )
        if len(spots) < 2:
            continue
        limits = [curve.limit for curve in curves]
        limit = None if None in limits else sum(n for n in limits if n is not None)
        found.append(Curve(ALL, series, spots, (), limit, knee_of(spots), _near(spots, within)))
    return found
