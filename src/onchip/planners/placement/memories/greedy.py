"""Assignments that always work: each tensor in one memory for life, most accessed first; or nothing kept."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.planners.limits import NO_LIMITS
from onchip.planners.placement.ilp.rows import Model
from onchip.planners.placement.ilp.solvers.cp_sat import minimise
from onchip.planners.placement.memories.assign import Assigned, touches_of
from onchip.planners.placement.memories.levels import MemoryProblem
from onchip.planners.placement.memories.steps import Step

__all__ = ["alone", "by_density", "homes_of", "nothing_kept"]


def by_density(problem: MemoryProblem, order: Sequence[int]) -> Assigned | None:
    """Assign whole lives to the fastest memory with room, by accesses per step and byte, or return None."""
    base, levels = problem.problem, problem.levels
    touches = touches_of(problem, order)
    left = {m: [levels.capacity[m]] * len(order) for m in levels.reached}
    at: dict[tuple[int, int], int] = {}
    scratch: dict[int, int] = {}
    for s, v in enumerate(order):
        if not base.workspace[v]:
            continue
        fitting = [m for m in levels.reached if base.workspace[v] <= left[m][s]]
        if not fitting:
            return None
        scratch[s] = fitting[0]
        left[fitting[0]][s] -= base.workspace[v]

    def density(t: int) -> float:
        row = touches[t]
        accesses = sum(len(dict(problem.accesses[order[s]])[t]) for s in row) + 1
        return accesses / (row[-1] - row[0] + 1)

    for t in sorted(touches, key=density, reverse=True):
        begin, end, size = touches[t][0], touches[t][-1] + 1, base.size[t]
        m = next((m for m in levels.reached if min(left[m][begin:end]) >= size), None)
        if m is None:
            return None
        for s in range(begin, end):
            left[m][s] -= size
            at[t, s] = m
    return Assigned(tuple(order), touches, at, scratch)


def homes_of(problem: MemoryProblem, v: int) -> tuple[dict[int, int], int] | None:
    """Return the cheapest memories of an operator's operands, and of its workspace, with nothing else there.

    None if they do not fit, in any assignment.
    """
    base, levels = problem.problem, problem.levels
    reached = levels.reached
    tensors = sorted({*base.inputs[v], *base.outputs[v]}, key=lambda t: -base.size[t])
    total = base.workspace[v] + sum(base.size[t] for t in tensors)
    if total <= levels.capacity[reached[0]]:
        return dict.fromkeys(tensors, reached[0]), reached[0]
    model = Model()
    rows = [(base.size[t], problem.run_price[v][t]) for t in tensors]
    rows.append((base.workspace[v], problem.scratch_price[v]))
    choices = [{m: model.variable("at") for m in reached} for _ in rows]
    for choice in choices:
        model.equal("one", [(x, 1) for x in choice.values()], 1)
    for m in reached:
        model.at_most(
            "fits", [(c[m], n) for c, (n, _) in zip(choices, rows, strict=True)], levels.capacity[m]
        )
    model.objective = [
        (x, price[m]) for c, (_, price) in zip(choices, rows, strict=True) for m, x in c.items()
    ]
    values = minimise(model, NO_LIMITS).values
    if values is None:
        return None
    homes = [next(m for m, x in choice.items() if values[x]) for choice in choices]
    return dict(zip(tensors, homes, strict=False)), homes[-1]


def alone(problem: MemoryProblem) -> int:
    """Return a lower bound of every plan in picoseconds: each run alone, and copies at their cheapest."""
    base, total = problem.problem, 0
    for v, price in enumerate(problem.run_price):
        found = homes_of(problem, v)
        assert found is not None, "every operator fits by itself"
        homes, scratch = found
        total += sum(price[t][m] for t, m in homes.items()) + problem.scratch_price[v][scratch]
    for t, price_of in enumerate(problem.copy_price):
        given, taken = base.graph_inputs >> t & 1, base.graph_outputs >> t & 1
        if (given and base.readers[t]) or (taken and not given):
            total += min(price_of)
    return total


def nothing_kept(problem: MemoryProblem, order: Sequence[int]) -> tuple[Step, ...]:
    """Return the program that stores everything to DRAM after each run: it always finds addresses."""
    base, steps = problem.problem, list[Step]()
    touches = touches_of(problem, order)
    copies = base.graph_inputs
    for s, v in enumerate(order):
        found = homes_of(problem, v)
        assert found is not None, "every operator fits by itself"
        homes, scratch = found
        steps += [Step("load", t, homes[t]) for t in base.inputs[v]]
        steps += [Step("alloc", t, homes[t]) for t in base.outputs[v]]
        if base.workspace[v]:
            steps.append(Step("scratch", v, scratch))
        steps.append(Step("run", v))
        for t in (*base.inputs[v], *base.outputs[v]):
            later = touches[t][-1] > s
            if not copies >> t & 1 and (later or base.graph_outputs >> t & 1):
                steps.append(Step("store", t))
                copies |= 1 << t
            steps.append(Step("free", t))
    return tuple(steps)
