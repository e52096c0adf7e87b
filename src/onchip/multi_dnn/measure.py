"""Profiles from readings: a runtime's measurements, group after group, on each unit.

Groups are timed in their context, in sequence after the groups before them, not repeatedly by themselves:
the cache contents left by the one before are part of their time, and so is the runtime's work between them.
Of all rounds the shortest time of each group counts; the excess is other work of the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onchip.base.errors import ProfileError
from onchip.machines.soc import SoC
from onchip.multi_dnn.grouping import LayerGroup, element_bytes
from onchip.multi_dnn.profile import Group, Profile
from onchip.network import Network

__all__ = ["MEASURED_ELEMENT_BYTES", "Round", "Span", "measured_profile"]

MEASURED_ELEMENT_BYTES = 4
"""Bytes of an element where networks are executed: single precision."""

Span = tuple[float, float]
"""The start and end of a group, in ms."""

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
    """Return the profile that follows from runs of the network, which had the machine to themselves.

    `alone` has the rounds in which one unit, by name, ran every group that it supports (another unit the
    rest); a unit that is not there runs nothing. A group's time is its own and the gap until the next one
    begins there; their sum is scaled to the fastest round. `changing` are runs with (the unit of each group,
    rounds): the time from a group's end on one unit to the next one's end on another, beyond the next one's
    time on the other alone, is their transition: the message, and inputs that lie in the other unit's caches.
    Only the sum of OUT and IN is observable, so all of it is OUT; with more than two units, the mean over the
    possible targets. The bandwidth is the bytes that its operators read and write once over the group's time:
    no counter was read, so it is the least that a group requests. Raises `ProfileError` for rounds that have
    no figure for some group, or one that is no time.
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
    runs = {
        u: _Alone(alone[unit.name], [group.runs_on(unit) for group in groups])
        for u, unit in enumerate(soc.units)
        if unit.name in alone
    }
    costs = _transitions(changing, runs, count)
    scale = MEASURED_ELEMENT_BYTES / element_bytes(network, MEASURED_ELEMENT_BYTES)
    rows = []
    for n, group in enumerate(groups):
        ms = tuple(
            runs[u].busy[n] + runs[u].gap[n] if u in runs and group.runs_on(unit) else None
            for u, unit in enumerate(soc.units)
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


class _Alone:
    """The times of one unit for each group by itself: the shortest times, and the gaps before the next."""

    def __init__(self, rounds: Sequence[Round], here: Sequence[bool]) -> None:
        count = len(here)
        self.busy = [min(one[n][1] - one[n][0] for one in rounds) for n in range(count)]
        gaps = {
            n: min(one[n + 1][0] - one[n][1] for one in rounds)
            for n in range(count - 1)
            if here[n] and here[n + 1]
        }
        usual = _mean(list(gaps.values()))
        self.gap = [gaps.get(n, usual) for n in range(count)]
        if all(here):
            # The least times of the groups are never all of one round: in sequence they take a little longer.
            whole = min(one[-1][1] - one[0][0] for one in rounds)
            factor = whole / (sum(self.busy) + sum(self.gap[:-1]))
            self.busy = [factor * ms for ms in self.busy]
            self.gap = [factor * ms for ms in self.gap]


def _transitions(
    changing: Sequence[tuple[Sequence[int], Sequence[Round]]], alone: Mapping[int, _Alone], count: int
) -> dict[tuple[int, int, int], float]:
    """Return milliseconds by (group, its unit, the next one's unit), where a run went that way."""
    least: dict[tuple[int, int, int], float] = {}
    for units, rounds in changing:
        for n in range(count - 1):
            here, there = units[n], units[n + 1]
            if here != there and here in alone and there in alone:
                took = min(one[n + 1][1] - one[n][1] for one in rounds)
                cost = max(took - alone[here].gap[n] - alone[there].busy[n + 1], 0.0)
                least[n, here, there] = min(cost, least.get((n, here, there), cost))
    return least


def _mean(costs: Sequence[float]) -> float:
    return sum(costs) / len(costs) if costs else 0.0
