"""Order, residencies and addresses in one exact model (CP-SAT), for networks of a few operators.

The two stages decide addresses last; if no cheapest schedule packs, the true optimum may lie in an order that
neither stage would try. For a few operators the whole of COSMA (eq. 1-12) is solved instead. One operator a
step; in every step each resident tensor has an address, and keeping an address from one step to the next
saves the cost of a load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onchip.base.or_tools import needs_or_tools
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.program import Placed

__all__ = ["MOST_OPERATORS", "Solution", "solve"]

MOST_OPERATORS = 8
"""Up to this number the model is small enough to be always solved to the end."""


@dataclass(frozen=True, slots=True)
class Solution:
    """A placed schedule that costs `traffic` bytes; `scratch` is an address per operator with a workspace."""

    order: tuple[int, ...]
    placed: tuple[Placed, ...]
    scratch: dict[int, int]
    traffic: int


def solve(
    problem: Problem,
    budget: int,
    alignment: int,
    *,
    at_least: int,
    below: int,
    time_limit: float | None,
    seed: int = 0,
) -> tuple[Solution | None, int]:
    """Return the cheapest placed schedule with traffic from `at_least` (a known bound) to under `below`.

    Returns with it the proved lower bound on traffic: `below` itself if there is no such schedule. No
    solution and a lower bound mean that `time_limit` seconds were too few.
    """
    if at_least >= below:
        return None, at_least
    return _Model(problem, budget, alignment, at_least, below).run(time_limit, seed)


class _Model:
    def __init__(self, problem: Problem, budget: int, alignment: int, at_least: int, below: int) -> None:
        needs_or_tools()
        from ortools.sat.python import cp_model

        self.cp = cp_model
        self.m = cp_model.CpModel()
        self.p = problem
        self.unit = alignment
        self.room = budget // alignment
        self.steps = range(len(problem.inputs))
        self.touched = sorted({t for row in (*problem.inputs, *problem.outputs) for t in row})
        self.size = {t: problem.size[t] // alignment for t in self.touched}
        self.at_least, self.below = at_least, below
        self._order()
        self._residency()
        self._in_place()
        self._addresses()
        self._traffic()

    def _order(self) -> None:
        m, p = self.m, self.p
        self.runs = {(v, i): m.new_bool_var(f"run{v}@{i}") for v in self.steps for i in self.steps}
        for v in self.steps:
            m.add_exactly_one(self.runs[v, i] for i in self.steps)
            m.add_exactly_one(self.runs[i, v] for i in self.steps)
        if p.order is not None:
            for i, v in enumerate(p.order):
                m.add(self.runs[v, i] == 1)
        producer = {t: v for v in self.steps for t in p.outputs[v]}
        self.made = {
            (t, i): self.runs[producer[t], i] if t in producer else None
            for t in self.touched
            for i in self.steps
        }
        self.producer = producer

    def _residency(self) -> None:
        m, p = self.m, self.p
        self.here = {(t, i): m.new_bool_var(f"here{t}@{i}") for t in self.touched for i in self.steps}
        # keep[t, i]: t stays at its address from step i - 1 to step i.
        self.keep = {(t, i): m.new_bool_var(f"keep{t}@{i}") for t in self.touched for i in self.steps}
        self.load = {(t, i): m.new_bool_var(f"load{t}@{i}") for t in self.touched for i in self.steps}
        for t in self.touched:
            exists: list[Any] = []
            for i in self.steps:
                made = self.made[t, i]
                ways = [self.keep[t, i], self.load[t, i], *([] if made is None else [made])]
                m.add(sum(ways) == self.here[t, i])
                if i == 0:
                    m.add(self.keep[t, 0] == 0)
                else:
                    m.add_implication(self.keep[t, i], self.here[t, i - 1])
                if made is not None:  # loaded only after it was made
                    m.add(sum(exists) >= self.load[t, i])
                    exists.append(made)
                for v in self.steps:
                    if t in p.inputs[v] or t in p.outputs[v]:
                        m.add_implication(self.runs[v, i], self.here[t, i])

    def _in_place(self) -> None:
        """over[v, x, i]: in step i the output of v is written over x, which no other operator reads after."""
        m, p = self.m, self.p
        self.over: dict[tuple[int, int, int], Any] = {}
        for v, inputs in enumerate(p.overwrites):
            for i in self.steps:
                for x in inputs:
                    over = self.over[v, x, i] = m.new_bool_var(f"over{v}:{x}@{i}")
                    m.add_implication(over, self.runs[v, i])
                    for r in self.steps:
                        if r != v and x in p.inputs[r]:
                            m.add_at_least_one(~over, *(self.runs[r, j] for j in range(i)))
                    for j in range(i + 1, len(self.steps)):
                        m.add_implication(over, ~self.here[x, j])
                if inputs:
                    m.add_at_most_one(self.over[v, x, i] for x in inputs)
        # A box of its own, except in the step that writes it over an input.
        self.apart = dict(self.here)
        for t, v in self.producer.items():
            for i in self.steps:
                shared = [self.over[v, x, i] for x in (p.overwrites[v] if p.overwrites else ())]
                if shared:
                    apart = self.apart[t, i] = m.new_bool_var(f"apart{t}@{i}")
                    m.add(apart + sum(shared) == self.here[t, i])

    def _addresses(self) -> None:
        m, p = self.m, self.p
        self.at = {
            (t, i): m.new_int_var(0, self.room - self.size[t], f"at{t}@{i}")
            for t in self.touched
            for i in self.steps
        }
        self.scratch = {
            v: m.new_int_var(0, self.room - p.workspace[v] // self.unit, f"scratch{v}")
            for v in self.steps
            if p.workspace[v]
        }
        for i in self.steps:
            boxes = []
            for t in self.touched:
                boxes.append(
                    m.new_optional_fixed_size_interval_var(
                        self.at[t, i], self.size[t], self.apart[t, i], f"{t}@{i}"
                    )
                )
                if i:
                    m.add(self.at[t, i] == self.at[t, i - 1]).only_enforce_if(self.keep[t, i])
            for v, at in self.scratch.items():
                boxes.append(
                    m.new_optional_fixed_size_interval_var(
                        at, p.workspace[v] // self.unit, self.runs[v, i], f"s{v}@{i}"
                    )
                )
            m.add_no_overlap(boxes)
            # Redundant but very helpful: the resident tensors fit at all.
            load = sum(self.size[t] * self.apart[t, i] for t in self.touched)
            m.add(
                load + sum(p.workspace[v] // self.unit * self.runs[v, i] for v in self.scratch) <= self.room
            )

        for (v, x, i), over in self.over.items():
            m.add(self.at[p.outputs[v][0], i] == self.at[x, i]).only_enforce_if(over)

    def _traffic(self) -> None:
        m, p = self.m, self.p
        terms = []
        for t in self.touched:
            loads = sum(self.load[t, i] for i in self.steps)
            if p.graph_inputs >> t & 1:  # the first load is compulsory
                extra = m.new_int_var(0, len(self.steps), f"reloads{t}")
                m.add(extra >= loads - 1)
                terms.append(p.cost[t] * extra)
            else:
                terms.append(p.cost[t] * loads)
                if not p.graph_outputs >> t & 1:
                    written = m.new_bool_var(f"written{t}")
                    for i in self.steps:
                        m.add_implication(self.load[t, i], written)
                    terms.append(p.cost[t] * written)
        self.traffic = m.new_int_var(self.at_least, self.below - 1, "traffic")
        m.add(self.traffic == sum(terms))
        m.minimize(self.traffic)

    def run(self, time_limit: float | None, seed: int) -> tuple[Solution | None, int]:
        solver = self.cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = seed
        if time_limit is not None:
            solver.parameters.max_time_in_seconds = time_limit
        status = solver.solve(self.m)
        if status == self.cp.INFEASIBLE:
            return None, self.below
        if status not in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            return None, self.at_least
        value = solver.value
        order = tuple(next(v for v in self.steps if value(self.runs[v, i])) for i in self.steps)
        placed = []
        for t in self.touched:
            begun = None
            for i in (*self.steps, len(self.steps)):
                resident = i < len(self.steps) and value(self.here[t, i])
                if begun is not None and not (resident and value(self.keep[t, i])):
                    placed.append(Placed(t, begun, i, value(self.at[t, begun]) * self.unit))
                    begun = None
                if resident and begun is None:
                    begun = i
        scratch = {v: value(at) * self.unit for v, at in self.scratch.items()}
        traffic = value(self.traffic)
        bound = traffic if status == self.cp.OPTIMAL else self.at_least
        return Solution(order, tuple(placed), scratch, traffic), bound
