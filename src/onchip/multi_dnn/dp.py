"""The best schedule of two chains of groups, exactly: a label-setting dynamic program over events.

The search is in C++ (`_core/corun_labels.cpp`; bounds in `corun_bound.cpp`, `corun_prices.cpp`). A label
is a moment at which a group begins: each network's current group, the rest of its work, and the time.
`Rules.dominance` keeps only the labels that are not later with more left than another in the same state. That
is not strictly safe (being earlier can mean to meet a worse neighbour), so a proof comes from another search
without it, which the first one's result and the bounds keep short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite

from onchip import _core
from onchip.base.errors import UsageError
from onchip.multi_dnn.chains import Chain, chains_of, contention_table, schedule_of
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solution import Claim, Solution
from onchip.multi_dnn.workload import Workload
from onchip.planners.limits import End, Limits

__all__ = ["Pair", "PairOptions", "PairResult", "Rules", "pairable", "solve_pair"]

NARROW = 30
"""Labels a level of the first, narrow search."""
MEETINGS = 4_000_000
"""The most meetings (places of one chain times those of the other): each has two slowdowns in memory."""

PROVABLE = 2500
"""Meetings up to which a proof is tried with all its memory: beyond, it is short or does not come."""

Stop = Callable[[int], bool]
"""Called with the number of labels a few times a second; true ends the search."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules that reduce the search. `bounds` is exact; `dominance` is not quite, see the module."""

    dominance: bool = True
    bounds: bool = True


@dataclass(frozen=True, slots=True)
class PairOptions:
    """The options of the exact search for two chains."""

    any_order: bool = True
    """Try every order on every unit; off: only non-delay schedules, which are fewer."""
    prove: bool = True
    """Search again without the dominance rule, so that the best of the space is proved."""
    time_limit: float | None = None
    """Seconds for all of it."""
    memory: int = 1 << 30
    """Bytes of labels at most."""
    proof_memory: int = 1 << 25
    """Bytes of labels at most in the search without dominance, of which there can be very many; chains with
    more than `PROVABLE` meetings get less in proportion, so that a failed attempt takes no longer than the
    search."""
    width: int = 0
    """Keep only so many labels a level, best bound first; 0 keeps all."""


@dataclass(frozen=True, slots=True)
class PairResult:
    """The result of one search: `starts` are (chain, position, unit) in the order of time, empty when nothing
    is better than the limit given. `value` and `bound` in ms; `bound` holds for every schedule there is."""

    value: float
    bound: float
    starts: tuple[tuple[int, int, int], ...]
    end: End
    labels: int


class Pair:
    """Two chains on `units` units, and the bounds that every search of them shares.

    `slow` is the result of `contention_table`.
    """

    def __init__(
        self, first: Chain, second: Chain, slow: tuple[Sequence[float], Sequence[float]], units: int
    ) -> None:
        self._core = _core.BoundedPair(
            units=units, work=(first.work, second.work), move=(first.move, second.move), slow=slow
        )

    def search(
        self,
        *,
        frames: tuple[float, float] = (0.0, 0.0),
        upper: float = inf,
        any_order: bool = True,
        rules: Rules = Rules(),
        time_limit: float | None = None,
        memory: int = 1 << 30,
        width: int = 0,
        stop: Stop | None = None,
    ) -> PairResult:
        """Search for anything better than `upper` ms.

        With `frames` (0, 0) the value is the makespan, else 1 / (frames[0] / end of the first chain +
        frames[1] / end of the second).
        """
        answer = self._core.search(
            frames=frames,
            upper=upper if isfinite(upper) else 1e300,
            yields=any_order,
            rules=_core.PairRules(**asdict(rules)),
            width=width,
            limits=_core.Limits(seconds=time_limit, memory=memory, stop=stop),
        )
        starts = tuple((start.net, start.group, start.unit) for start in answer.starts)
        return PairResult(answer.value, answer.bound, starts, answer.end, answer.labels)


def pairable(workload: Workload, objective: Objective) -> bool:
    """Return whether the exact search takes the workload: two chains in one frame, not both too long.

    Networks in series have no sum of rates there: it is not a function of the two chains' ends.
    """
    chains = chains_of(workload)
    if chains is None or len(chains) != 2 or len(chains[0].work) * len(chains[1].work) > MEETINGS:
        return False
    return objective != Objective.RATES or not any(workload.waits_for)


def solve_pair(
    workload: Workload,
    objective: Objective = Objective.LATENCY,
    options: PairOptions = PairOptions(),
    *,
    known: Schedule | None = None,
    stop: Stop | None = None,
) -> Solution:
    """Return the best schedule of a workload of two chains (`chains_of`), and what is proved of it.

    `known` is a schedule to improve on, and the answer where nothing better is found. With one frame,
    throughput is that of running such frames in sequence. Raises `UsageError` for a workload that is
    not `pairable`.
    """
    limits = Limits(options.time_limit)
    chains = chains_of(workload)
    if chains is None or len(chains) != 2:
        raise UsageError("the exact search takes two networks, or two chains of them", where="corun")
    if not pairable(workload, objective):
        series = ", or the rates of networks in series" if objective == Objective.RATES else ""
        raise UsageError(f"the exact search does not take so many groups{series}", where="corun")
    frames = (1.0, 1.0) if objective == Objective.RATES else (0.0, 0.0)
    units = len(workload.soc.units)
    pair = Pair(*chains, contention_table(workload.model, *chains, units), units)
    best = known
    value = objective.cost_ms(simulate(workload, known)) if known else inf
    proved, bound = False, 0.0
    end: End = "complete"

    # A narrow search gives the next one a value to beat.
    passes = [] if 0 < options.width <= NARROW else [(Rules(), NARROW, options.memory)]
    passes.append((Rules(), options.width, options.memory))
    if options.prove:
        meetings = max(PROVABLE, len(chains[0].work) * len(chains[1].work))
        memory = options.proof_memory * PROVABLE // meetings
        passes.append((Rules(dominance=False), options.width, memory))
    for rules, width, memory in passes:
        found = pair.search(
            frames=frames,
            upper=value,
            any_order=options.any_order,
            rules=rules,
            time_limit=limits.left(),
            memory=memory,
            width=width,
            stop=stop,
        )
        bound, end = found.bound, found.end
        if found.starts:
            best = schedule_of(workload, _steps(chains, found.starts))
            value = found.value
        proved = not rules.dominance and end == "complete"
        if end not in ("complete", "width"):
            break
    if best is None:
        raise UsageError("the time was over before any schedule was found", where="corun")
    timeline = simulate(workload, best)
    claim = Claim("any order" if options.any_order else "non-delay", proved)
    return Solution(best, timeline, objective, claim, bound, limits.spent(), "dp", end)


def _steps(chains: Sequence[Chain], starts: Sequence[tuple[int, int, int]]) -> list[tuple[Step, int]]:
    return [(chains[chain].steps[position], unit) for chain, position, unit in starts]
