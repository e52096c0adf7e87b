"""Lower bounds of any schedule's cost, for any number of networks and units.

A network's own chain, transitions included, is never shorter than its shortest path over the units. And for
weights on the units that sum to 1, the makespan is at least the weighted sum of the units' busy times,
which is minimised network by network. Contention only adds to both, so neither considers it. For two chains
the bound of the exact search is tighter, as it knows that overlapping groups slow down.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.workload import Workload

__all__ = ["alone_ms", "alone_row", "load_bound", "lower_bound"]


def alone_ms(profile: Profile) -> float:
    """Return the least ms of one run without contention, over every mapping."""
    return _path(profile, [1.0] * len(profile.units), 1.0)


def alone_row(profile: Profile) -> tuple[int, ...]:
    """Return the mapping of one run that is fastest without contention."""
    units = range(len(profile.units))
    cost = [inf if ms is None else ms for ms in profile.groups[0].ms]
    came: list[list[int]] = []
    for g, group in enumerate(profile.groups[1:]):
        came.append([min(units, key=lambda u: cost[u] + profile.transition_ms(g, u, v)) for v in units])
        cost = [
            inf if ms is None else cost[u] + profile.transition_ms(g, u, v) + ms
            for v, (u, ms) in enumerate(zip(came[-1], group.ms, strict=True))
        ]
    row = [min(units, key=cost.__getitem__)]
    for sources in reversed(came):
        row.append(sources[row[-1]])
    return tuple(reversed(row))


def load_bound(workload: Workload) -> float:
    """Return the least ms in which the units can do the work of one frame, divisible by groups only."""
    count = len(workload.soc.units)

    def value(weights: Sequence[float]) -> float:
        return sum(job.iterations * _path(job.profile, weights, 0.0) for job in workload.jobs)

    weights = [1.0 / count] * count
    best, step = value(weights), 0.25
    while step > 0.01:
        better = False
        for u in range(count):
            for v in range(count):
                by = min(step, weights[v])
                if u == v or not by:
                    continue
                other = list(weights)
                other[u] += by
                other[v] -= by
                now = value(other)
                if now > best * (1 + 1e-9):
                    best, weights, better = now, other, True
        if not better:
            step /= 2
    return best


def lower_bound(workload: Workload, objective: Objective) -> float:
    """Return a bound in ms of the objective as a time (`solution.cost_ms`).

    For the throughput of a stream it holds in the long run: the figure of a few frames may lie a little
    below, as the last of them meet no others.
    """
    jobs = workload.jobs
    alone = [job.iterations * alone_ms(job.profile) for job in jobs]
    series: list[float] = [0.0] * len(jobs)

    def end_of(job: int) -> float:
        if not series[job]:
            waits = workload.waits_for[job]
            series[job] = alone[job] + max((end_of(p) for p in waits), default=0.0)
        return series[job]

    ends = [end_of(j) for j in range(len(jobs))]
    if objective == Objective.RATES:
        return 1.0 / sum(1.0 / end for end in ends)
    if objective.is_of_a_stream(workload) and workload.pipelined:
        return max(*alone, load_bound(workload))
    if objective == Objective.LATENCY and workload.frames > 1 and workload.pipelined:
        return max(ends)
    return max(*ends, load_bound(workload))


def _path(profile: Profile, weights: Sequence[float], per_move: float) -> float:
    """Return the cheapest way of one run over the units: weighted work, and moves at `per_move` a ms."""
    cost = [0.0 if ms is not None else inf for ms in profile.groups[0].ms]
    for g, group in enumerate(profile.groups):
        if g:
            cost = [
                min(
                    cost[u] + (profile.transition_ms(g - 1, u, v) * per_move if per_move else 0.0)
                    for u in range(len(weights))
                )
                for v in range(len(weights))
            ]
        cost = [
            inf if ms is None else c + ms * weight
            for c, ms, weight in zip(cost, group.ms, weights, strict=True)
        ]
    return min(cost)
