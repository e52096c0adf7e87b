"""A placed schedule as a first solution of the ILP: it keeps every row, costs what it costs, and changes no
optimum."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from onchip.planners.limits import Limits
from onchip.planners.placement import Problem
from onchip.planners.placement.ilp import minimum_traffic
from onchip.planners.placement.ilp.decode import placed_schedule
from onchip.planners.placement.ilp.encode import values_of
from onchip.planners.placement.ilp.formulation import Formulation, least_traffic
from onchip.planners.placement.strategy import Answer, Task, strategy
from strategies import Case, random_case, random_tight_case


def exact(case: Case) -> tuple[Problem, Answer]:
    """The exact search's plan."""
    problem = Problem.of(case.network, case.alignment)
    task = Task(case.network, problem, case.budget, case.alignment, Limits())
    return problem, strategy("exact")(task)


def broken(formulation: Formulation, values: tuple[int, ...]) -> list[str]:
    """Rows and bounds that do not hold."""
    model = formulation.model
    wrong = [
        f"variable {x}" for x, value in enumerate(values) if not model.lower[x] <= value <= model.upper[x]
    ]
    for n, row in enumerate(model.rows):
        if row.when is not None and not values[row.when]:
            continue
        if not row.low <= sum(k * values[x] for x, k in row.terms) <= row.high:
            wrong.append(f"row {n}")
    return wrong


@pytest.mark.parametrize("seed", range(40))
def test_a_plan_keeps_every_row_and_costs_its_traffic(seed: int) -> None:
    rng = Random(seed)
    case = random_tight_case(rng) if seed % 2 else random_case(rng, 6)
    problem, answer = exact(case)
    formulation = least_traffic(problem, case.budget)
    values = values_of(formulation, answer)
    if values is None:  # an address is no multiple of the model's unit
        assert any(p.address % formulation.memory.unit for p in answer.placed)  # type: ignore[union-attr]
        return
    assert broken(formulation, values) == []
    cost = sum(k * values[x] for x, k in formulation.model.objective) * formulation.bytes_per_unit
    assert cost == answer.traffic
    back = placed_schedule(formulation, values)
    assert (back.order, back.traffic) == (answer.order, answer.traffic)


@pytest.mark.parametrize("seed", range(6))
def test_a_first_solution_changes_no_optimum(seed: int) -> None:
    case = random_tight_case(Random(seed))
    problem, answer = exact(case)
    found = minimum_traffic(problem, case.budget, first=answer)
    assert (found.value, found.bound) == (answer.traffic, answer.traffic)


def test_a_plan_with_an_address_between_units_is_no_first_solution() -> None:
    case = random_tight_case(Random(1))
    problem, answer = exact(case)
    twice = {name: tuple(2 * n for n in getattr(problem, name)) for name in ("size", "workspace")}
    doubled = replace(problem, **twice)
    formulation = least_traffic(doubled, 2 * case.budget)
    odd = replace(
        answer,
        placed=tuple(replace(p, address=2 * p.address + 1) for p in answer.placed),
        scratch={v: 2 * at + 1 for v, at in answer.scratch.items()},
    )
    assert values_of(formulation, odd) is None
