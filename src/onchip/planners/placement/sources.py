"""Inputs as the first operators: a search that assumes an input's DRAM copy can then charge for it.

COSMA's eq. 12 taken literally charges the first spill of a network input like any other. Each input becomes
the output of an operator of its own that needs nothing else; then it is an activation, with no copy until it
is spilled. Loading it costs nothing there, as the compulsory load does here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate

from onchip.network import bits
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.program import Placed
from onchip.planners.placement.schedule import reloads_of, traffic_of
from onchip.planners.placement.strategy import Answer

__all__ = ["first_spills", "literal_figures", "with_sources", "without_sources"]


def with_sources(problem: Problem) -> Problem:
    """Return the problem in which an operator makes each input that is read; these come last in the ids.

    A given order gets each of them just before its first reader.
    """
    count = len(problem.inputs)
    sources = [t for t in bits(problem.graph_inputs) if problem.readers[t]]
    maker = {t: count + i for i, t in enumerate(sources)}
    order = None
    if problem.order is not None:
        made: list[int] = []
        for v in problem.order:
            made += [maker.pop(t) for t in problem.inputs[v] if t in maker]
            made.append(v)
        order = tuple(made)
    return replace(
        problem,
        inputs=problem.inputs + ((),) * len(sources),
        outputs=problem.outputs + tuple((t,) for t in sources),
        workspace=problem.workspace + (0,) * len(sources),
        graph_inputs=0,
        order=order,
    )


def without_sources(problem: Problem, answer: Answer) -> Answer:
    """Return the answer to `problem` for an answer to `with_sources(problem)`; its bound is the same."""
    count = len(problem.inputs)
    # The number of real steps before each step: its position without the steps of sources.
    real = [0, *accumulate(int(v < count) for v in answer.order)]
    placed = tuple(
        Placed(p.tensor, real[p.start], real[p.end], p.address)
        for p in answer.placed
        if real[p.start] < real[p.end]
    )
    order = tuple(v for v in answer.order if v < count)
    return replace(
        answer, order=order, placed=placed, traffic=traffic_of(problem, reloads_of(p.tensor for p in placed))
    )


def literal_figures(problem: Problem, answer: Answer, bound: int) -> Mapping[str, int | str]:
    """Return the answer's traffic with first spills of inputs charged, and a proved bound of any plan's."""
    left = reloads_of(p.tensor for p in answer.placed)
    traffic = answer.traffic + sum(problem.cost[t] for t in _charged(problem) if t in left)
    return {"inputs": "literal", "literal_traffic_bytes": traffic, "literal_bound_bytes": min(bound, traffic)}


def first_spills(problem: Problem) -> int:
    """Return the most bytes by which the literal count can exceed a plan's own traffic.

    A bound on the literal count, less this, bounds the traffic itself.
    """
    return sum(problem.cost[t] for t in _charged(problem))


def _charged(problem: Problem) -> list[int]:
    """Return the inputs that can come back at all, except outputs, which are written anyway."""
    only_inputs = problem.graph_inputs & ~problem.graph_outputs
    return [t for t in bits(only_inputs) if problem.readers[t].bit_count() > 1]
