"""Eq. 1 to 12 word by word, without pruning or implied rows, by how many steps there are.

III-F has as many steps as operators; eq. 4 sums from step 0, one before the first operator's of Fig. 1.
"""

from __future__ import annotations

import pytest
from ortools.sat.python import cp_model

Graph = list[tuple[str, str]]
"""What each operator reads and makes, names of one letter."""

CHAIN: Graph = [("", "x"), ("x", "y")]
"""x is an input: nobody makes it, and so no operator's step is needed for it."""
STAIRS: Graph = [("", "ap"), ("a", "bq"), ("ab", "cr"), ("bc", "dk"), ("ck", "es")]
STAIRS_BYTES = {"a": 10, "b": 10, "c": 10, "d": 30, "k": 1, "e": 20, "p": 41, "q": 31, "r": 21, "s": 20}
"""The network of test_equations.py on which eq. 1 leaves no way."""


def least(
    graph: Graph, steps: range, sizes: dict[str, int], budget: int, *, apart: bool = True
) -> int | None:
    """The least bytes by eq. 12, None where nothing is feasible. `apart`: one action a step, eq. 1."""
    model = cp_model.CpModel()
    tensors = [a for _, made in graph for a in made]
    held = {kind + a: {t: model.new_bool_var("") for t in steps} for kind in "CPSR" for a in tensors}

    def x(kind: str, a: str, t: int) -> cp_model.LinearExprT:
        return held[kind + a].get(t, 0)

    place = {(a, t): model.new_int_var(0, budget - sizes[a], "") for a in tensors for t in steps}
    for t in steps:
        model.add(sum(x("C", made[0], t) for reads, made in graph if reads or len(made) > 1) <= 1)  # III-A
        for a in tensors:
            create, keep, spill, back = (x(kind, a, t) for kind in "CPSR")
            if apart:
                model.add(create + keep + spill + back <= 1)
            else:
                model.add(create + keep + back <= 1)
                model.add(create + keep + spill <= 1)
            model.add(keep <= x("C", a, t - 1) + x("P", a, t - 1) + x("R", a, t - 1))
            model.add(spill <= x("C", a, t - 1) + x("P", a, t - 1))
            model.add(back <= sum(x("S", a, k) for k in steps if k <= t))
            if t - 1 in steps:
                model.add(place[a, t] == place[a, t - 1]).only_enforce_if(held["P" + a][t])
        for reads, made in graph:
            for a in made:
                model.add(x("C", a, t) == x("C", made[0], t))
                for b in reads:
                    model.add(x("C", a, t) <= x("P", b, t) + x("R", b, t))
        for i, a in enumerate(tensors):
            for b in tensors[i + 1 :]:
                above, below = model.new_bool_var(""), model.new_bool_var("")
                here = [x(kind, one, t) for one in (a, b) for kind in "CPR"]
                model.add(above + below >= sum(here) - 1)
                model.add(place[a, t] + sizes[a] <= place[b, t]).only_enforce_if(below)
                model.add(place[b, t] + sizes[b] <= place[a, t]).only_enforce_if(above)
    for a in tensors:
        model.add(sum(held["C" + a].values()) == 1)
        model.add(sum(held["S" + a].values()) <= 1)
    model.minimize(sum((x("S", a, t) + x("R", a, t)) * sizes[a] for a in tensors for t in steps))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
    return int(solver.objective_value) if status == cp_model.OPTIMAL else None


@pytest.mark.parametrize(("first", "bytes_"), [(1, None), (0, 0)])
def test_eq_5_lets_the_first_operator_run_with_a_step_before_it(first: int, bytes_: int | None) -> None:
    assert least(CHAIN, range(first, 2), {"x": 1, "y": 1}, 9) == bytes_


@pytest.mark.parametrize(("first", "bytes_"), [(1, None), (0, 20)])
def test_eq_1_leaves_a_way_with_one_step_more(first: int, bytes_: int | None) -> None:
    assert least(STAIRS, range(first, 6), STAIRS_BYTES, 51) == bytes_


def test_a_spill_and_a_retrieval_at_one_step_leave_a_way_with_as_many_steps_as_operators() -> None:
    assert least(STAIRS, range(1, 6), STAIRS_BYTES, 51, apart=False) == 20
    assert least(STAIRS, range(1, 6), STAIRS_BYTES, 61) == 0
