"""Branch and bound for three and more chains, and for mappings with few changes of unit.

The search is in C++ (`_core/corun_branch.cpp`): depth first over events, with the choices of the exact
search for two chains. A complete search proves the best of its space; one that ends at `nodes` returns what
it found and a bound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from onchip import _core
from onchip.base.errors import UsageError
from onchip.multi_dnn.chains import Chain, chains_of, schedule_of
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solution import Claim, Solution
from onchip.multi_dnn.workload import Workload

__all__ = ["MOST_CHAINS", "BranchOptions", "branchable", "solve_branching"]

MOST_CHAINS = 8
MOST_GROUPS = 3000

Stop = Callable[[int], bool]
"""Called at intervals with the number of states; true ends the search."""


@dataclass(frozen=True, slots=True)
class BranchOptions:
    """The options of branch and bound."""

    any_order: bool = True
    """Try every order on every unit; off: only non-delay schedules."""
    switches: int | None = None
    """The most changes of unit in a run."""
    nodes: int = 1_000_000
    """The most states to visit."""
    time_limit: float | None = None
    """Seconds."""


def branchable(workload: Workload, objective: Objective) -> bool:
    """Return whether branch and bound takes the workload: chains in one frame, and not too many of them."""
    return not _why_not(chains_of(workload), workload, objective)


def solve_branching(
    workload: Workload,
    objective: Objective = Objective.LATENCY,
    options: BranchOptions = BranchOptions(),
    *,
    known: Schedule | None = None,
    stop: Stop | None = None,
) -> Solution:
    """Return the best schedule of at most eight chains of groups in one frame, and what is proved of it.

    `known` is a schedule to improve on, and the answer where nothing better is found; it need not be of the
    space searched, and the claim is that nothing there is better. Raises `UsageError` for other workloads,
    and where nothing was found at all.
    """
    began = time.monotonic()
    chains = chains_of(workload)
    reason = _why_not(chains, workload, objective)
    if chains is None or reason:
        raise UsageError(f"branch and bound {reason}", where="corun")
    value = objective.cost_ms(simulate(workload, known)) if known else inf
    answer = _core.chain_schedule(
        tasks=_core.CorunTasks(
            units=len(workload.soc.units),
            work=[ms for chain in chains for ms in chain.work],
            gb=[gb for chain in chains for gb in chain.gb_per_second],
            move=[ms for chain in chains for ms in chain.move],
            row=range(sum(len(chain.steps) for chain in chains)),
            before=_before(chains),
            gates=[[] for chain in chains for _ in chain.steps],
        ),
        slowdown=workload.model.slowdown,
        first=[sum(len(chain.steps) for chain in chains[:n]) for n in range(len(chains) + 1)],
        options=_core.ChainOptions(
            yields=options.any_order,
            switches=options.switches,
            rates=objective == Objective.RATES,
            upper=value,
            nodes=options.nodes,
        ),
        limits=_core.Limits(seconds=options.time_limit, stop=stop),
    )
    best = known
    if answer.starts:
        best = schedule_of(workload, [(chains[s.net].steps[s.group], s.unit) for s in answer.starts])
    if best is None:
        raise UsageError("no schedule was found; allow more switches, states or seconds", where="corun")
    space = Claim("any order" if options.any_order else "non-delay", answer.end == "complete")
    if options.switches is not None:
        space = Claim("few switches", space.proved and options.any_order, options.switches)
    return Solution(
        best,
        simulate(workload, best),
        objective,
        space,
        answer.bound,
        time.monotonic() - began,
        "branch and bound",
        answer.end,
    )


def _why_not(chains: Sequence[Chain] | None, workload: Workload, objective: Objective) -> str:
    """Return why branch and bound does not take the workload; empty when it does."""
    if workload.frames > 1:
        return "looks at one frame only"
    if chains is None:
        return "does not take a network that is after several others, or before several"
    if len(chains) > MOST_CHAINS:
        return f"takes at most {MOST_CHAINS} chains of networks, not {len(chains)}"
    groups = sum(len(chain.steps) for chain in chains)
    if groups > MOST_GROUPS:
        return f"takes at most {MOST_GROUPS} groups over all runs, not {groups}"
    if objective == Objective.RATES and any(workload.waits_for):
        return "does not take the rates of networks in series"
    return ""


def _before(chains: Sequence[Chain]) -> list[int | None]:
    """Return the group before each in its run; None for the first of a run."""
    before: list[int | None] = []
    for chain in chains:
        last: Step | None = None
        for step in chain.steps:
            same = last is not None and last[:2] == step[:2]
            before.append(len(before) - 1 if same else None)
            last = step
    return before
