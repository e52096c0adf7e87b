"""Files of the contest: what is wrong with one is a line that names the file and the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onchip.base.errors import ModelError, PlanFormatError
from onchip.contest import (
    LAWS,
    Step,
    problem_from_json,
    read_solution,
    solution_from_json,
    solution_json,
    verify,
    write_solution,
)
from oracles.contest_cases import SQUARE, data, problem


def good() -> dict[str, Any]:
    operators = [("MatMul", (0, 1), 2, 100), ("Pointwise", (2, 3), 4, 10)]
    return data([SQUARE] * 5, operators, capacity=1000)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"op_types": ["MatMul", "Conv"]}, "operator 1: 'Conv' is no type"),
    ({"op_types": ["Pointwise"]}, "inputs: has 2 entries, op_types 1"),
    ({"op_types": [], "inputs": [], "outputs": [], "base_costs": []}, "op_types: has 0 operators"),
    ({"heights": [16] * 4}, "heights: has 4 entries, widths 5"),
    ({"heights": [16, 16, 16, 16, 0]}, "heights: 0 is no size"),
    ({"widths": [16, 16, 16, 16, 1 << 40]}, "widths: 1099511627776 is no size"),
    ({"widths": [16, 16, 16, 16, 8]}, "operator 1: a Pointwise that reads 16x16 and makes 16x8"),
    ({"heights": [16, 8, 16, 16, 16]}, "operator 0: a MatMul of 16x16 and 8x16 that makes 16x16"),
    ({"inputs": [[0], [2, 3]]}, "operator 0: a MatMul of 1 inputs"),
    ({"inputs": [[0, 1], []]}, "operator 1: a Pointwise without inputs"),
    ({"inputs": [[0, 9], [2, 3]]}, "operator 0: names tensor 9; there are 5"),
    ({"inputs": [[4, 1], [2, 3]]}, "in a circle"),
    ({"outputs": [[2], [2]]}, "operator 1: tensor 2 is made twice"),
    ({"outputs": [[2], [4, 3]]}, "operator 1: has 2 outputs"),
    ({"base_costs": [-1, 2]}, "operator 0: its base cost -1"),
    ({"fast_memory_capacity": 0}, "fast_memory_capacity: 0 is no number"),
    ({"slow_memory_bandwidth": 0}, "slow_memory_bandwidth: 0 is no positive"),
    ({"native_granularity": [8]}, "native_granularity: has 1 numbers"),
    ({"native_granularity": [8, 0]}, "native_granularity: 0 is no size"),
    ({"widths": "wide"}, "widths"),
]


@pytest.mark.parametrize(("change", "says"), WRONG, ids=[says for _, says in WRONG])
def test_what_is_wrong_with_a_problem_is_said(change: dict[str, Any], says: str) -> None:
    problem_from_json(json.dumps(good()).encode(), "p.json")
    with pytest.raises(ModelError) as error:
        problem_from_json(json.dumps(good() | change).encode(), "p.json")
    assert str(error.value).startswith("p.json: ")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_part_of_a_file_is_no_problem() -> None:
    whole = json.dumps(good())
    for end in range(0, len(whole), 7):
        with pytest.raises(ModelError):
            problem_from_json(whole[:end].encode(), "p.json")


def test_a_schedule_comes_back_from_its_file(tmp_path: Path) -> None:
    steps = (Step((0,), 8, 8, 4, (2,), None, 1.5), Step((1,), 4, 8, 1, (), (1, 0, 2, 3), 2.5))
    write_solution(tmp_path / "s.json", steps)
    assert read_solution(tmp_path / "s.json") == steps


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"granularities": [[8, 8]]}, "granularities: entry 0 has 2 numbers"),
        ({"tensors_to_retain": []}, "tensors_to_retain: has 0 entries, subgraphs 1"),
        ({"subgraphs": 3}, "subgraphs"),
        ({"more": 3}, "more"),
    ],
)
def test_what_is_wrong_with_a_schedule_is_said(change: dict[str, Any], says: str) -> None:
    content = json.loads(solution_json([Step((0,), 8, 8, 4)]))
    with pytest.raises(PlanFormatError, match=says):
        solution_from_json(json.dumps(content | change).encode(), "s.json")


def test_many_paths_through_a_strip_are_walked_once() -> None:
    """Sixty diamonds before a MatMul: 2 to the 60 paths."""
    operators: list[tuple[str, tuple[int, ...], int, float]] = [("Pointwise", (0,), 1, 1)]
    for _ in range(60):
        last = operators[-1][2]
        operators += [("Pointwise", (last,), last + 1, 1), ("Pointwise", (last,), last + 2, 1)]
        operators += [("Pointwise", (last + 1, last + 2), last + 3, 1)]
    last = operators[-1][2]
    operators.append(("MatMul", (last, last + 1), last + 2, 1))
    given = problem([(8, 8)] * (last + 3), operators, capacity=1000)
    step = Step(tuple(range(len(operators))), 8, 8, 8)
    assert verify(given, [step], LAWS["ruled"], stated=False).latency == 182
