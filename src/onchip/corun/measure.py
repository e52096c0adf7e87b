"""Profiles from readings: what a runtime measured, group after group, on each unit.

Groups are timed where they belong, in sequence after the groups before them, not each by itself over and
over: what the one before left in the caches is part of their time. Of all rounds the shortest time of each
group counts; the rest is what else the machine had to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onchip.corun.grouping import LayerGroup, element_bytes
from onchip.corun.profile import Group, Profile
from onchip.corun.soc import SoC
from onchip.errors import ProfileError
from onchip.network import Network

__all__ = ["MEASURED_ELEMENT_BYTES", "Span", "measured_profile"]

MEASURED_ELEMENT_BYTES = 4
"""Bytes of an element where networks are executed: single precision."""

Span = tuple[float, float]
"""When a group started and ended, in ms."""

Round = Sequence[Span]
"""The spans of all groups of one run of the network."""


def measured_profile(
    network: Network,
    groups: Sequence[LayerGroup],
    soc: SoC,
    alone: Mapping[str, Sequence[Round]],
    changing: Sequence[tuple[Sequence[int], Sequence[Round]]] = (),
    *,
    source: str = "measured",
) -> Profile:
    """The profile that follows from runs of the network, which had the machine for themselves.

    `alone` has the rounds in which one unit, by name, ran every group that it supports (another unit the
    rest); a unit that is not there runs nothing. `changing` are runs with (the unit of each group, rounds):
    the time between a group's end on one unit and the next one's start on another, beyond what it takes on
    one unit, is their transition. Only the sum of OUT and IN shows, so all of it is OUT; with more than two
    units, the mean over where it may go.
    The bandwidth is what its operators read and write once over the group's time: no counter was read, so it
    is the least that a group asks for. Raises `ProfileError` for rounds that have no figure for some group,
    or one that is no time.
    """
    where = f"profile of {network.name}"
    count = len(groups)
    for unit, rounds in alone.items():
        if unit not in soc.unit_names:
            raise ProfileError(f"is no unit of SoC {soc.name}", where=where, item=unit[:60])
        _check(rounds, count, where, f"unit {unit}")
    for units, rounds in changing:
        if len(units) != count or any(not 0 <= unit < len(soc.units) for unit in units):
            raise ProfileError("does not say which unit ran each group", where=where, item="a changing run")
        _check(rounds, count, where, "a changing run")
    stay = _least_gap(list(alone.values()), count)
    costs = _transitions(changing, stay, count)
    scale = MEASURED_ELEMENT_BYTES / element_bytes(network, MEASURED_ELEMENT_BYTES)
    rows = []
    for n, group in enumerate(groups):
        ms = tuple(
            min(end - start for start, end in (one[n] for one in alone[unit.name]))
            if unit.name in alone and group.runs_on(unit)
            else None
            for unit in soc.units
        )
        moved = scale * (group.activation_bytes + group.weight_bytes) / 1e6
        rows.append(
            Group(
                group.name,
                ms,
                tuple(moved / t if t is not None and t > 0 else 0.0 for t in ms),
                tuple(_mean([cost for (at, s, _), cost in costs.items() if (at, s) == (n, unit)])
                      for unit in range(len(soc.units))),
                (0.0,) * len(soc.units),
                layers=tuple(network.operators[op].name for op in group.operators),
                output="" if group.handed_on is None else network.tensors[group.handed_on].name,
            )
        )  # fmt: skip
    return Profile(network.name, soc.name, soc.unit_names, tuple(rows), source)


def _check(rounds: Sequence[Round], count: int, where: str, item: str) -> None:
    if not rounds:
        raise ProfileError("has no rounds", where=where, item=item)
    for one in rounds:
        if len(one) != count:
            raise ProfileError(f"has {len(one)} figures for {count} groups", where=where, item=item)
        before = one[0][0]
        for start, end in one:
            if not before <= start < end:  # NaN too
                raise ProfileError(f"ran from {start} to {end} ms, which is no time", where=where, item=item)
            before = end


def _least_gap(runs: Sequence[Sequence[Round]], count: int) -> list[float]:
    """For each group but the last, the shortest time to the next group's start on the same unit."""
    return [
        min((one[n + 1][0] - one[n][1] for rounds in runs for one in rounds), default=0.0)
        for n in range(count - 1)
    ]


def _transitions(
    changing: Sequence[tuple[Sequence[int], Sequence[Round]]], stay: Sequence[float], count: int
) -> dict[tuple[int, int, int], float]:
    """Milliseconds by (group, its unit, the next one's unit), where a run went that way."""
    least: dict[tuple[int, int, int], float] = {}
    for units, rounds in changing:
        for n in range(count - 1):
            if units[n] != units[n + 1]:
                way = (n, units[n], units[n + 1])
                gap = min(one[n + 1][0] - one[n][1] for one in rounds)
                least[way] = min(gap, least.get(way, gap))
    return {way: max(gap - stay[way[0]], 0.0) for way, gap in least.items()}


def _mean(costs: Sequence[float]) -> float:
    return sum(costs) / len(costs) if costs else 0.0
