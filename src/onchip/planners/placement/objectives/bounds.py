"""Lower bounds of the time of every plan of a network on a chip. docs/objectives.md proves each bound."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from onchip.check import Clock
from onchip.network import bits
from onchip.planners.placement.problem import Problem

__all__ = ["latency_bound"]


def latency_bound(clock: Clock, problem: Problem, budget: int, traffic: int) -> int:
    """Return the picoseconds that every plan with at least `traffic` non-compulsory bytes needs.

    Over the allowed orders, the largest of: all runs one after the other between the first loads and the last
    stores, and the weights that find no room beside any run; all copies one after the other; and all copies
    that must precede the last run, that run, and its stores.
    """
    names = [op.name for op in clock.network.operators]
    copy = [clock.crossing[t.name] for t in clock.network.tensors]
    kept = [clock.transfer(clock.kept[name]) for name in names]
    streamed = [clock.transfer(clock.streamed[name]) for name in names]
    run = [clock.run(name) for name in names]
    if problem.kept is not None:  # kept tensors need no copy, and pinned bytes hide nothing: runs remain
        return sum(run)
    everyone = range(len(names))
    if problem.order is not None:
        firsts, lasts = [problem.order[0]], [problem.order[-1]]
    else:
        made = {t for tensors in problem.outputs for t in tensors}
        firsts = [v for v in everyone if not made.intersection(problem.inputs[v])]
        lasts = [v for v in everyone if not any(problem.readers[t] for t in problem.outputs[v])]
    stored = _stored(problem)

    def store(v: int) -> int:
        return sum(copy[t] for t in problem.outputs[v] if stored >> t & 1)

    alone = _fetched_alone(problem, budget, kept, run)
    idle = min(max(kept[v], alone) + sum(copy[t] for t in problem.inputs[v]) for v in firsts)
    computing = idle + sum(run) + min(store(v) for v in lasts)
    before = sum(copy[t] for t in bits(_read(problem))) + clock.transfer(traffic) + sum(kept) + sum(streamed)
    copying = before + sum(copy[t] for t in bits(stored))
    ending = before + min(run[v] - streamed[v] + store(v) for v in lasts)
    return max(computing, copying, ending)


def _fetched_alone(problem: Problem, budget: int, kept: Sequence[int], run: Sequence[int]) -> int:
    """Return the time of fetching resident weights that cannot overlap with runs, because both do not fit.

    A simultaneous fetch and run hold disjoint bytes: the workspace of the one and all that the other needs.
    A fetch with more room fits beside every run that one with less room does, so filling the runs in order of
    room hides the most.
    """
    by_need = sorted((_least_bytes(problem, v), run[v]) for v in range(len(run)))
    needs = [need for need, _ in by_need]
    beside = [0, *accumulate(length for _, length in by_need)]
    hidden = 0
    for v in sorted(range(len(kept)), key=lambda v: -problem.workspace[v]):
        most = beside[bisect_right(needs, budget - problem.workspace[v])]
        hidden += max(0, min(kept[v], most - hidden))
    return sum(kept) - hidden


def _least_bytes(problem: Problem, operator: int) -> int:
    """Return the fewest bytes that an operator needs while it runs, an output over an input counted once."""
    shared = problem.overwrites and problem.overwrites[operator]
    outputs = sum(problem.size[t] for t in problem.outputs[operator]) if shared else 0
    return problem.step_bytes(operator) - outputs


def _read(problem: Problem) -> int:
    """Return the bitset of the graph inputs that some operator reads."""
    read = 0
    for tensors in problem.inputs:
        for t in tensors:
            read |= 1 << t
    return read & problem.graph_inputs


def _stored(problem: Problem) -> int:
    """Return the bitset of the graph outputs that have no copy in DRAM from the start."""
    return problem.graph_outputs & ~problem.graph_inputs
