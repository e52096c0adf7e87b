"""The judge's own bound: the best that any schedule of a workload can reach, from its profiles alone.

It is simple on purpose, so that a schedule file's bound need not be believed: a network's chain is never
shorter than its shortest path over the units, transitions included; and for weights on the units that sum to
1, the time until all work is done is at least the weighted sum of the units' work, which is minimised group
by group. A memory that slows groups down only adds to both. Searches know tighter bounds that only they
can derive; those stay claims.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import inf
from typing import TYPE_CHECKING

from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.timeline import Figure
from onchip.multi_dnn.workload import Workload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["derived_bound"]

ROUNDS = 3
NARROWING = 40
"""Steps of a search between two weights: each leaves two thirds."""


def derived_bound(workload: Workload, objective: str, epsilon_ms: float = 0.0) -> float | None:
    """Return the least `latency_ms` or `makespan_ms`, the most `fps` or `sum_of_rates`; None for other
    figures.

    It holds for exactly the figure of `Timeline`, so also for the few frames of a short stream.
    """
    chains = [job.iterations * _alone(job.profile) for job in workload.jobs]
    ends = _ends(workload, chains)
    # Where groups may overlap on a unit, its time does not bound its work.
    load = 0.0 if epsilon_ms else _load(workload)
    frames, most = workload.frames, workload.frames_at_once
    match Figure.named(objective):
        case Figure.LATENCY:
            # In the first frame every latency is an end, and the last of these ends all of its work.
            return max(*ends, load)
        case Figure.MAKESPAN:
            return max(*ends, frames * load, frames * max(chains))
        case Figure.SUM_OF_RATES:
            return sum(1000.0 / end for end in ends)
        case Figure.FPS if frames == 1:
            return 1000.0 / max(*ends, load)
        case Figure.FPS:
            # Counted from the end of a frame: that many later frames, and all behind, have not begun by then.
            counted = frames - frames // 2
            least = counted * min(chains)
            whole = counted + 1 - most if most else 0
            if whole > 0:
                least = max(least, whole * load, whole * max(chains), *ends)
            if most == 1:
                least = max(least, counted * max(ends))
            return 1000.0 * counted / least
    return None


def _alone(profile: Profile) -> float:
    """Return the shortest path of one run over the units that support its groups."""
    units = range(len(profile.units))
    until = [0.0 for _ in units]
    for g, group in enumerate(profile.groups):
        if g:
            until = [min(until[u] + profile.transition_ms(g - 1, u, v) for u in units) for v in units]
        until = [inf if ms is None else at + ms for at, ms in zip(until, group.ms, strict=True)]
    return min(until)


def _ends(workload: Workload, chains: list[float]) -> list[float]:
    """Return when every network can have finished its first frame: after those that it waits for."""
    ends: dict[int, float] = {}
    while len(ends) < len(chains):
        for j, waits in enumerate(workload.waits_for):
            if j not in ends and all(p in ends for p in waits):
                ends[j] = chains[j] + max((ends[p] for p in waits), default=0.0)
    return [ends[j] for j in range(len(chains))]


def _load(workload: Workload) -> float:
    """Return the least time in which the units can do the work of one frame, for the best weights found.

    Any weights give a bound, so they need not be the best.
    """
    import numpy as np  # late: `import onchip` must not bring it

    rows = [
        [inf if ms is None else ms for ms in group.ms]
        for job in workload.jobs
        for group in job.profile.groups
    ]
    counts = np.repeat(
        [float(job.iterations) for job in workload.jobs], [len(job.profile.groups) for job in workload.jobs]
    )
    times = np.array(rows, np.float64)
    able = np.isfinite(times)

    def value(weights: NDArray[np.float64]) -> float:
        cost = np.full_like(times, inf)
        np.multiply(times, weights, out=cost, where=able)
        return float(counts @ cost.min(axis=1))

    units = times.shape[1]
    weights = np.full(units, 1.0 / units)
    best = value(weights)
    for _ in range(ROUNDS if units > 2 else 1):
        before = best
        for u, v in combinations(range(units), 2):
            shared = _shared_better(value, weights, u, v)
            found = value(shared)
            if found > best:
                best, weights = found, shared
        if best <= before * (1 + 1e-9):
            break
    return best


def _shared_better(
    value: Callable[[NDArray[np.float64]], float], weights: NDArray[np.float64], u: int, v: int
) -> NDArray[np.float64]:
    """Return the weights with the best division between two units; the value is concave in it."""
    both = weights[u] + weights[v]

    def shared(part: float) -> NDArray[np.float64]:
        changed = weights.copy()
        changed[u], changed[v] = part * both, (1.0 - part) * both
        return changed

    low, high = 0.0, 1.0
    for _ in range(NARROWING):
        left, right = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (left, high) if value(shared(left)) < value(shared(right)) else (low, right)
    return shared((low + high) / 2)
