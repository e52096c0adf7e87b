"""The verifier of the contest: worked examples, figures by hand, and a refusal for every rule."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onchip.base.errors import IllegalSchedule
from onchip.contest import LAWS, Law, Problem, Step, problem_from_json, solution_from_json, verify
from oracles.contest_cases import SQUARE, problem, product, product_and_sum

RULED, PERMISSIVE, WINNER, NOCAP = (LAWS[name] for name in ("ruled", "permissive", "winner", "nocap"))


def price(given: Problem, *steps: Step, law: Law = RULED) -> float:
    return verify(given, steps, law, stated=False).latency


@pytest.mark.parametrize("law", LAWS)
def test_the_worked_examples_are_reproduced(law: str, shared: Path) -> None:
    files = sorted((shared / "bench/contest/examples").glob("*.json"))
    assert len(files) == 14
    for file in files:
        example: dict[str, Any] = json.loads(file.read_text())
        given = problem_from_json(json.dumps(example["problem"]).encode(), file.name)
        steps = solution_from_json(json.dumps(example["solution"]).encode(), file.name)
        writes = LAWS[law].read_elsewhere == "written" and file.stem.startswith("3-")
        if example.get("refused") and not writes:
            with pytest.raises(IllegalSchedule):
                verify(given, steps, LAWS[law], stated=False)
        else:
            priced = verify(given, steps, LAWS[law], stated=False)
            assert writes or priced.latency == example["total_latency"], file.name
            assert file.stem != "5B" or priced.peak == 40_960


def test_a_product_in_steps_by_hand() -> None:
    """4 tiles of 2 steps: each loads 64 + 64 elements, the last stores 64; base cost 100 in two halves."""
    assert price(product(), Step((0,), 8, 8, 8)) == 4 * (max(50, 12.8) + max(50, 19.2))
    slow = product(bandwidth=2)
    assert price(slow, Step((0,), 8, 8, 8)) == 4 * (64 + 96)
    assert price(slow, Step((0,), 8, 8, 8), law=WINNER) == 4 * (100 + 100)


def test_slices_stay_for_the_next_step_alone() -> None:
    """With k = K a tile's row of the left operand stays for the next tile of the row."""
    slow = product(bandwidth=1, native=(8, 8, 16))
    rows = 4 * 64 + 2 * 128 + 4 * 128  # stores, rows of tiles, and a column of the right one for every tile
    assert price(slow, Step((0,), 8, 8, 16)) == rows
    assert price(slow, Step((0,), 8, 8, 16, traversal=(0, 1, 3, 2))) == rows - 128
    assert price(slow, Step((0,), 8, 8, 16, traversal=(0, 3, 1, 2))) == 4 * 64 + 7 * 128


def test_an_epilogue_and_its_operand_come_with_the_last_step() -> None:
    slow = product_and_sum(bandwidth=1)
    assert price(slow, Step((0, 1), 8, 8, 8)) == 4 * (128 + 128 + 64 + 64)
    late = replace(slow, base=(100.0, 206.0))  # 50 + 206 elements' time, as the last step's 256 elements take
    assert price(late, Step((0, 1), 8, 8, 8)) == 4 * (128 + 256)
    assert price(replace(slow, base=(100.0, 300.0)), Step((0, 1), 8, 8, 8)) == 4 * (128 + 350)


def test_a_resident_tensor_is_neither_stored_nor_loaded() -> None:
    slow = product_and_sum(bandwidth=1)
    made = Step((0,), 8, 8, 8, retained=(2,))
    assert price(slow, made, Step((1,), 8, 8, 1)) == 4 * (128 + 128) + 4 * 128
    wide = replace(slow, capacity=256 + 128)
    assert verify(wide, [made, Step((1,), 8, 8, 1)], RULED, stated=False).peaks == (256 + 128, 256 + 128)
    refused(replace(slow, capacity=383), "L15", made, Step((1,), 8, 8, 1))


def test_a_strip_is_made_for_each_tile_unless_the_law_keeps_it() -> None:
    """The left operand of the second MatMul is a whole row of it here, because K = 8 = k."""
    shapes = [(8, 8), (8, 8), (8, 8), (8, 16), (8, 16)]
    chain = problem(shapes, [("MatMul", (0, 1), 2, 100), ("MatMul", (2, 3), 4, 100)], capacity=10_000)
    both = Step((0, 1), 8, 8, 8)
    assert price(chain, both) == 2 * 200
    assert price(chain, both, law=PERMISSIVE) == 200 + 100


def test_laws_differ_where_they_say() -> None:
    fused = Step((0, 1), 8, 8, 8)
    assert verify(product_and_sum(), [fused], RULED, stated=False).peak == 64 + 64 + 64 + 64
    assert verify(product_and_sum(), [fused], WINNER, stated=False).peak == 64 + 64 + 64 + 64 + 64
    whole = Step((0, 1), 8, 8, 16)
    refused(product_and_sum(), "L1", whole)
    assert price(product_and_sum(), whole, law=NOCAP) == 4 * 110
    refused(product_and_sum(), "L1", replace(whole, width=9), law=NOCAP)


def refused(given: Problem, rule: str, *steps: Step, law: Law = RULED) -> None:
    with pytest.raises(IllegalSchedule) as error:
        verify(given, steps, law, stated=False)
    assert error.value.rule == rule, error.value


def diamond() -> Problem:
    """Tensor 1 is read by two operators, whose results a third one adds."""
    operators = [("Pointwise", (0,), 1, 9), ("Pointwise", (1,), 2, 9), ("Pointwise", (1,), 3, 9)]
    return problem([SQUARE] * 5, [*operators, ("Pointwise", (2, 3), 4, 9)], capacity=2_000)


def test_every_rule_has_a_refusal() -> None:
    tile = (8, 8, 1)
    one = diamond()
    assert price(one, Step((0, 1, 2, 3), *tile)) > 0
    refused(one, "L1", Step((1, 0, 2, 3), *tile))
    refused(one, "L1", Step((0, 1, 2, 3), 0, 8, 1))
    refused(one, "L2", Step((0,), *tile), Step((1, 2), *tile), Step((3,), *tile))
    refused(one, "L3", Step((0, 1), *tile))
    refused(one, "L3", Step((0, 4), *tile))
    refused(one, "L3", Step((), *tile))
    refused(one, "L3", Step((0, 0), *tile))
    refused(one, "L5", Step((0, 1), *tile), Step((2, 3), *tile))
    refused(one, "L7", Step((0, 1, 2, 3), *tile, retained=(4,)))
    refused(one, "L7", Step((0, 1, 2, 3), *tile, retained=(0,)))
    refused(one, "L7", Step((0, 1, 2, 3), *tile, retained=(3, 3)))
    refused(one, "L16", Step((0, 1, 2, 3), *tile, traversal=(0, 1, 2, 2)))
    refused(replace(one, capacity=895), "L15", Step((0, 1, 2, 3), *tile, retained=(1, 2, 3)))
    wide = problem(
        [(8, 16)] * 3 + [(8, 8), (8, 8)],
        [("Pointwise", (0,), 1, 1), ("Pointwise", (1,), 2, 1)],
        capacity=2_000,
    )
    assert price(wide, Step((0, 1), *tile)) == 2 * 12.8


def test_outputs_of_one_subgraph_have_one_shape() -> None:
    shapes = [(8, 8), (8, 8), (8, 8), (8, 16), (8, 16)]
    operators = [("Pointwise", (0,), 1, 9), ("Pointwise", (1,), 2, 9), ("MatMul", (1, 3), 4, 9)]
    refused(problem(shapes, operators, capacity=2_000), "L8", Step((0, 1, 2), 8, 8, 8))


def test_a_pointwise_never_shows_a_part_of_a_sum() -> None:
    operators = [("Pointwise", (0,), 2, 10), ("MatMul", (2, 1), 3, 100)]
    refused(problem([SQUARE] * 4, operators, capacity=10_000), "L13", Step((0, 1), 8, 8, 8))
    small = problem([(8, 8)] * 4, operators, capacity=10_000)
    assert price(small, Step((0, 1), 8, 8, 8)) == 110
    assert price(small, Step((0, 1), 8, 8, 4)) == 60 + 50  # made whole in the first step
    refused(small, "L13", Step((0, 1), 4, 8, 4))


def test_a_used_up_tensor_is_written_for_others_by_the_winners_law() -> None:
    parts = [Step((0, 1), 8, 8, 1), Step((2, 3), 8, 8, 1)]
    assert price(diamond(), *parts, law=WINNER) == 4 * max(18, (64 + 128) / 10) + 4 * max(18, 192 / 10)
    again = [Step((0, 1), 8, 8, 1), Step((0, 2, 3), 8, 8, 1)]
    assert price(diamond(), *again, law=WINNER) == price(diamond(), *again)


def test_a_stated_latency_is_the_computed_one() -> None:
    step = Step((0,), 8, 8, 8, latency=400.0)
    assert verify(product(), [step], RULED).latency == 400
    with pytest.raises(IllegalSchedule, match="L9: subgraph 0: states latency 400"):
        verify(product(), [replace(step, latency=400.1)], RULED)
