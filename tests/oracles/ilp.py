"""Least traffic as a CP-SAT model of which tensor is where at which step, after COSMA eq. 1-8 and 12.

One operator runs at each step. For tensor a and step t the paper's symbols are C (created), P (preserved
from the step before), R (retrieved from DRAM); S is one variable a tensor, whether it is ever spilled: its
one write costs the same whenever it happens, and at its creation it is resident. The paper is silent on
compulsory traffic: an input's first retrieval and an output's write are free. Nothing of the planner's search
is used: no charging at eviction, no dominance, no lazy evictions.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from onchip.network import Network, bits

__all__ = ["Undecided", "least_traffic"]


class Undecided(Exception):
    """The solver stopped without a proof."""


def _at_least_before(network: Network) -> list[int]:
    """For each operator, how many others must run before it."""
    ancestors = [0] * len(network.operators)
    for v in network.order:
        for p in bits(network.predecessors[v]):
            ancestors[v] |= ancestors[p] | 1 << p
    return [a.bit_count() for a in ancestors]


def _at_least_after(network: Network) -> list[int]:
    """For each operator, how many others must run after it."""
    later = [0] * len(network.operators)
    for v in reversed(network.order):
        for p in bits(network.predecessors[v]):
            later[p] |= later[v] | 1 << v
    return [d.bit_count() for d in later]


def least_traffic(network: Network, budget: int, alignment: int = 1, *, effort: float = 60.0) -> int | None:
    """The least non-compulsory traffic in bytes, None when infeasible.

    `effort` is CP-SAT's deterministic time, so that an answer does not depend on the machine's load. Raises
    `Undecided` when it does not suffice for a proof.
    """
    model = cp_model.CpModel()
    ops, steps = network.operators, range(len(network.operators))
    roots = list(bits(network.roots))
    inputs, outputs = network.input_roots, network.output_roots

    def rounded(size: int) -> int:
        return -(-size // alignment) * alignment

    before, after = _at_least_before(network), _at_least_after(network)
    runs = {
        (v.id, t): model.new_bool_var(f"run_{v.id}_{t}")
        for v in ops
        for t in range(before[v.id], len(ops) - after[v.id])
    }
    for v in ops:
        model.add_exactly_one(runs[v.id, t] for t in steps if (v.id, t) in runs)
    for t in steps:
        model.add_exactly_one(runs[v.id, t] for v in ops if (v.id, t) in runs)
    when = [sum(t * runs[v.id, t] for t in steps if (v.id, t) in runs) for v in ops]
    for v in ops:
        for p in bits(network.predecessors[v.id]):
            model.add(when[p] + 1 <= when[v.id])

    preserved = {(a, t): model.new_bool_var(f"P_{a}_{t}") for a in roots for t in steps}
    retrieved = {(a, t): model.new_bool_var(f"R_{a}_{t}") for a in roots for t in steps}
    spilled = {a: model.new_bool_var(f"S_{a}") for a in roots}

    def present(a: int, t: int) -> cp_model.LinearExpr | int:
        """C + P + R, at most 1 (eq. 1)."""
        if t < 0:
            return 0
        p = network.producer[a]
        created = runs.get((p, t), 0) if p is not None else 0
        return created + preserved[a, t] + retrieved[a, t]

    for a in roots:
        for t in steps:
            model.add(present(a, t) <= 1)
            model.add(preserved[a, t] <= present(a, t - 1))  # eq. 2
            if not inputs >> a & 1:
                model.add_implication(retrieved[a, t], spilled[a])  # eq. 4
            # A retrieval is for the operator of its step, and so follows the creation (eq. 4 again).
            model.add(retrieved[a, t] <= sum(runs.get((v, t), 0) for v in bits(network.readers[a])))
    for (v, t), run in runs.items():
        for a in bits(network.reads[v]):
            model.add(present(a, t) >= run)  # eq. 5
    for t in steps:
        workspace = sum(rounded(v.workspace) * runs[v.id, t] for v in ops if (v.id, t) in runs)
        model.add(sum(rounded(network.tensors[a].bytes) * present(a, t) for a in roots) + workspace <= budget)

    cost = []
    for a in roots:
        size = network.tensors[a].bytes
        times = sum(retrieved[a, t] for t in steps)
        if inputs >> a & 1:
            again = model.new_int_var(0, len(ops), f"reloads_{a}")
            model.add(again >= times - 1)
            cost.append(size * again)
        else:
            cost.append(size * times)
            if not outputs >> a & 1:
                cost.append(size * spilled[a])
    model.minimize(sum(cost))

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = effort
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    if status != cp_model.OPTIMAL:
        raise Undecided(f"bound {solver.best_objective_bound}, best {solver.objective_value}")
    return round(solver.objective_value)
