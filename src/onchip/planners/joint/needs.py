"""The need of a network of which some operator fits in no tiling, nor whole, nor in a nest."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.base.errors import Infeasible
from onchip.machines.chip import Chip
from onchip.network import bits
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.cost import least_scratch, misfit
from onchip.planners.joint.claim import space_of
from onchip.planners.joint.nests import nests_of
from onchip.planners.joint.options import JointOptions, fusion_options
from onchip.planners.joint.search import JointSearch
from onchip.planners.limits import Limits

__all__ = ["need_of"]


def need_of(
    problem: FusionProblem,
    chip: Chip,
    search: JointSearch,
    over: Sequence[Sequence[int]],
    joins: Sequence[int],
    options: JointOptions,
    limits: Limits,
) -> Infeasible:
    """Return the need of the hardest step of the easiest order, for operators that fit in no tiling.

    Greedy, as in placement: of the ready operators, run the one that currently needs least; the more have
    run, the more inputs die with their readers, and outputs may take their places. In a nest an operator
    may need less than alone, and rows may take the places of those that they are made from: then the
    least budget is searched below that. A concat that may be joined in DRAM needs nothing.
    """
    network = problem.network
    hard = {network.order[i] for i in search.fuser.core.misfits(problem.budget)}.difference(joins)
    tiled = {v: least_scratch(problem, v) for v in hard}
    for nest in search.nests.candidates:
        v = nest.members.bit_length() - 1
        if nest.members == 1 << v and v in hard:
            tiled[v] = min(tiled[v], search.nests.least_room(nest))
    done, needs, hardest = 0, 0, -1

    def need(v: int) -> int:
        if v not in hard:
            return 0
        touched = bits(network.reads[v] | network.writes[v])
        whole = sum(problem.round_up(network.tensors[t].bytes) for t in touched)
        whole += problem.round_up(network.operators[v].workspace)
        if over and any(not network.readers[x] & ~(done | 1 << v) for x in over[v]):
            whole -= problem.round_up(network.tensors[network.operators[v].outputs[0]].bytes)
        return min(tiled[v], whole)

    while done + 1 < 1 << len(network.operators):
        ready = [v for v in network.order if not done >> v & 1 and not network.predecessors[v] & ~done]
        v = min(ready, key=need)
        if need(v) > needs:
            needs, hardest = need(v), v
        done |= 1 << v
    # Every plan runs the hardest operator: less than its need is enough only if a nest holds it in less.
    beside = [nest for nest in search.nests.candidates if hardest in nest.operators]
    in_rows = any(search.nests.replaces_rows(nest, hardest) for nest in beside)
    if in_rows or any(
        search.nests.least_room(nest) < needs
        for nest in beside
        if len(nest.operators) > 1 and search.nests.may_lie_over(nest, hardest)
    ):
        needs = _least_budget(problem, chip, over, joins, options, limits, needs)
    space = space_of(options, problem.channel_tile, problem.least_rows, accumulator=problem.accumulator)
    return misfit(problem, hardest, needs).but(space=space)


def _least_budget(
    problem: FusionProblem,
    chip: Chip,
    over: Sequence[Sequence[int]],
    joins: Sequence[int],
    options: JointOptions,
    limits: Limits,
    enough: int,
) -> int:
    """Return the least budget up to `enough`, which is, in which a plan is found."""
    low = problem.budget  # is not
    while enough - low > 1 and not limits.over():
        middle = (low + enough) // 2
        within = FusionProblem.of(problem.network, chip, fusion_options(options), middle)
        nests = nests_of(within, overlap=options.overlap)
        search = JointSearch(within, over, joins=joins, nests=nests, limits=limits)
        fits = not search.misfits and search.best(limits=limits).dram_bytes is not None
        low, enough = (low, middle) if fits else (middle, enough)
    return enough
