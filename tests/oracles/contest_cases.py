"""Small problems of the contest's form, written here, and random ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from onchip.contest import Problem, problem_from_json


def data(
    shapes: Sequence[tuple[int, int]],
    operators: Sequence[tuple[str, tuple[int, ...], int, float]],
    *,
    capacity: int,
    bandwidth: float = 10,
    native: tuple[int, ...] = (8, 8),
) -> dict[str, Any]:
    """A problem's JSON from its tensors (height, width) and operators (type, inputs, output, cost)."""
    return {
        "widths": [width for _, width in shapes],
        "heights": [height for height, _ in shapes],
        "inputs": [list(inputs) for _, inputs, _, _ in operators],
        "outputs": [[output] for _, _, output, _ in operators],
        "base_costs": [cost for _, _, _, cost in operators],
        "op_types": [kind for kind, _, _, _ in operators],
        "fast_memory_capacity": capacity,
        "slow_memory_bandwidth": bandwidth,
        "native_granularity": list(native),
    }


def problem(*args: Any, **more: Any) -> Problem:
    """The problem itself."""
    return problem_from_json(json.dumps(data(*args, **more)).encode(), "small.json")


SQUARE = (16, 16)


def product(capacity: int = 10_000, **more: Any) -> Problem:
    """One MatMul of 16x16 matrices on an array of 8x8."""
    return problem([SQUARE] * 3, [("MatMul", (0, 1), 2, 100)], capacity=capacity, **more)


def product_and_sum(capacity: int = 10_000, **more: Any) -> Problem:
    """A MatMul, and a Pointwise that adds another tensor to it."""
    operators = [("MatMul", (0, 1), 2, 100), ("Pointwise", (2, 3), 4, 10)]
    return problem([SQUARE] * 5, operators, capacity=capacity, **more)
