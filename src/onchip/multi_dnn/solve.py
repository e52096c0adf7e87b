"""The planner of co-run: the exact search where a workload is two chains, local search elsewhere.

The result is compared with every baseline, and never worse than the best of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise, permutations

from onchip.base.errors import UsageError
from onchip.base.interrupt import until_interrupted
from onchip.multi_dnn.baselines import Baseline, baselines, best_baseline, collect
from onchip.multi_dnn.bound import alone_row, lower_bound
from onchip.multi_dnn.branch import BranchOptions, branchable, solve_branching
from onchip.multi_dnn.classes import parse_class
from onchip.multi_dnn.dp import PairOptions, pairable, solve_pair
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.options import DEFAULTS, SolveOptions
from onchip.multi_dnn.polish import polish
from onchip.multi_dnn.schedule import Step
from onchip.multi_dnn.search import Pattern, SearchOptions, improve, pattern_of
from onchip.multi_dnn.solution import Claim, Solution
from onchip.multi_dnn.tasks import one_frame
from onchip.multi_dnn.workload import Workload
from onchip.planners.limits import Limits

__all__ = ["CorunResult", "SolveOptions", "solve"]

SAME = 1e-9
"""The relative difference below which costs are equal."""


@dataclass(frozen=True, slots=True)
class CorunResult:
    """The schedule found, and its baselines."""

    solution: Solution
    baselines: tuple[Baseline, ...]
    every_baseline: bool = True
    """True if there was time for all of them."""

    @property
    def best_baseline(self) -> Baseline:
        """The baseline that costs least."""
        return best_baseline(self.baselines, self.solution.objective)

    @property
    def gain(self) -> float:
        """The reduction of its cost from the best baseline's, as a fraction of that."""
        return 1 - self.solution.cost_ms / self.best_baseline.cost_ms(self.solution.objective)


def solve(
    workload: Workload,
    objective: Objective | str = Objective.LATENCY,
    options: SolveOptions = DEFAULTS,
) -> CorunResult:
    """Return a schedule for the workload, with every baseline beside it.

    Two networks (or two chains of networks in series, iterations included) in one frame are searched exactly;
    frames without pipelining repeat the best frame; all others use local search from the baselines and from
    the best single frame, after which branch and bound looks for better, and for a proof, in one frame of at
    most eight chains. A cost that equals its lower bound is optimal whatever found it. Ctrl-C ends the
    search, and the best so far is returned with its bound; before there is any, it raises
    `KeyboardInterrupt`. Raises `UsageError` for a bound on switches in a stream.
    """
    objective = Objective.parse(objective)
    if options.switches is not None and workload.frames > 1:
        raise UsageError("looks at one frame only", item="--switches")
    limits = Limits.of(options)
    found: list[Baseline] = []
    every = False

    with limits.interruptible() as limits:
        try:
            every = collect(found, workload, objective, lambda: limits.left() == 0.0)
            solution = _search(workload, objective, options, tuple(found), limits)
        except KeyboardInterrupt:
            rivals = _allowed(tuple(found), options.switches)
            if not rivals:
                raise
            solution = _as_it_is(best_baseline(rivals, objective), workload, objective)
    rivals = _allowed(tuple(found), options.switches)
    rival = best_baseline(rivals, objective) if rivals else None
    if rival is not None and rival.cost_ms(objective) < solution.cost_ms:
        solution = replace(solution, schedule=rival.schedule, timeline=rival.timeline, solver=rival.name)
    # A stream's few frames may beat a bound that holds in the long run: that proves nothing.
    stream = objective.is_of_a_stream(workload)
    if not stream and solution.cost_ms <= solution.lower_bound_ms * (1 + 1e-9):
        solution = replace(solution, claim=Claim("any order", True))
    # A baseline that is better than all of a class need not be in it.
    named = parse_class(str(solution.claim))
    if named is None or named.why_not(solution.schedule, solution.timeline):
        solution = replace(solution, claim=Claim("searched", False))
    solution = _kindest(solution, rivals)
    if options.delays and solution.ended != "stopped":
        with until_interrupted():
            solution = polish(solution, limits)
    return CorunResult(replace(solution, seconds=limits.spent()), tuple(found), every)


def _kindest(solution: Solution, rivals: Sequence[Baseline]) -> Solution:
    """Return, of the solution and equally good baselines of its class, the one whose networks wait least.

    An equal cost may still be worse for every network: the sum of latencies decides, then the changes
    of units.
    """
    named = parse_class(str(solution.claim))
    if named is None:
        return solution
    best = solution
    for rival in rivals:
        same = rival.cost_ms(solution.objective) <= solution.cost_ms * (1 + SAME)
        if same and _waiting(rival) < _waiting(best) and not named.why_not(rival.schedule, rival.timeline):
            best = replace(solution, schedule=rival.schedule, timeline=rival.timeline, solver=rival.name)
    return best


def _waiting(one: Solution | Baseline) -> tuple[float, int]:
    """Return the sum of latencies, rounded, and how often runs change their unit."""
    changes = sum(a != b for runs in one.schedule.units for run in runs for a, b in pairwise(run))
    return float(f"{sum(one.timeline.latency_ms):.9g}"), changes


def _search(
    workload: Workload,
    objective: Objective,
    options: SolveOptions,
    found: tuple[Baseline, ...],
    limits: Limits,
) -> Solution:
    def stop(*progress: float) -> bool:
        return limits.stopped()

    exact = PairOptions(options.any_order, options.prove, limits.left())
    frame = one_frame(workload)
    pair = pairable(frame, objective)
    if workload.frames == 1:
        rival = best_baseline(found, objective).schedule
        if options.switches is not None:
            few = BranchOptions(options.any_order, options.switches, 100 * options.nodes, limits.left())
            rivals = _allowed(found, options.switches)
            known = best_baseline(rivals, objective).schedule if rivals else None
            return solve_branching(workload, objective, few, known=known, stop=stop)
        if pair:
            return solve_pair(workload, objective, exact, known=rival, stop=stop)
        patterns = [pattern_of(workload, one.schedule) for one in found]
    else:
        found = baselines(frame, objective)
        patterns = [pattern_of(workload, one.schedule) for one in found]
    best = None
    if pair:
        aim = objective.of_one_frame
        exact = replace(exact, prove=exact.prove and not workload.pipelined)
        best = solve_pair(frame, aim, exact, known=best_baseline(found, aim).schedule, stop=stop)
        patterns.append(pattern_of(workload, best.schedule))
        if not workload.pipelined:
            repeated = improve(workload, objective, patterns[-1:], SearchOptions(tries=0))
            return replace(
                repeated,
                claim=best.claim,
                lower_bound_ms=best.lower_bound_ms,
                solver="dp, repeated",
                ended=best.ended,
            )
    patterns += islice(_in_series(frame), 6)
    local = SearchOptions(options.tries, limits.left(), limits.seed)
    searched = improve(workload, objective, patterns, local, stop=stop)
    ended = searched.ended == "stopped" or workload.frames > 1
    if ended or not options.nodes or not branchable(workload, objective):
        return searched
    deeper = BranchOptions(options.any_order, nodes=options.nodes, time_limit=limits.left())
    try:
        return solve_branching(workload, objective, deeper, known=searched.schedule, stop=stop)
    except KeyboardInterrupt:
        return replace(searched, ended="stopped")


def _as_it_is(rival: Baseline, workload: Workload, objective: Objective) -> Solution:
    """Return a baseline as the answer, with the simple bound."""
    bound, nothing = lower_bound(workload, objective), Claim("searched", False)
    return Solution(rival.schedule, rival.timeline, objective, nothing, bound, 0.0, rival.name, "stopped")


def _allowed(found: tuple[Baseline, ...], switches: int | None) -> tuple[Baseline, ...]:
    """Return the baselines in which no run changes its unit more than `switches` times."""
    if switches is None:
        return found

    def changes(units: tuple[int, ...]) -> int:
        return sum(a != b for a, b in pairwise(units))

    return tuple(
        one
        for one in found
        if all(changes(tuple(run)) <= switches for runs in one.schedule.units for run in runs)
    )


def _in_series(workload: Workload) -> Iterator[Pattern]:
    """Yield networks in sequence, each on its fastest units alone, in every permitted order."""
    rows = [alone_row(job.profile) for job in workload.jobs]
    for order in permutations(range(len(workload.jobs))):
        if any(order.index(p) > order.index(j) for j in order for p in workload.waits_for[j]):
            continue
        yield Pattern(
            tuple(
                (Step(j, run, group), unit)
                for j in order
                for run in range(workload.jobs[j].iterations)
                for group, unit in enumerate(rows[j])
            )
        )
