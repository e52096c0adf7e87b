"""Buffer sizes of a spec: lists, names and ranges, each size once, mistakes by their key."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.base.errors import UsageError
from onchip.sweeps.budgets import Budget, parse_budgets


def sizes(given: Any, **named: int) -> list[int]:
    return [budget.resolve(named.__getitem__) for budget in parse_budgets(given, "spec.toml")]


def test_sizes_names_and_the_chips_own() -> None:
    assert sizes([65536, "64KiB", "MR", "mp", "chip"], MR=10, MP=30, chip=7) == [65536, 10, 30, 7]
    assert sizes("1 MB") == [1_000_000]


def test_a_factor_goes_up_to_the_end() -> None:
    assert sizes([{"from": "16KiB", "to": "100KiB", "factor": 2}]) == [16384, 32768, 65536]
    assert sizes([{"from": 1000, "to": 8000, "factor": 2}]) == [1000, 2000, 4000, 8000]


def test_a_step_is_always_so_many_bytes() -> None:
    assert sizes([{"from": 1000, "to": 2000, "step": "500B"}]) == [1000, 1500, 2000]


def test_steps_between_names_are_resolved_for_each_network() -> None:
    asked = [{"from": "MR", "to": "MP", "steps": 3}]
    assert sizes(asked, MR=100, MP=400) == [100, 200, 400]
    assert sizes(asked, MR=100, MP=100) == [100, 100, 100]
    assert [b.text for b in parse_budgets(asked, "s")] == ["MR..MP 1/3", "MR..MP 2/3", "MR..MP 3/3"]


@given(st.integers(1, 1 << 30), st.integers(1, 1 << 30), st.integers(2, 50))
def test_steps_begin_and_end_at_the_ends_and_never_fall(a: int, b: int, steps: int) -> None:
    low, high = min(a, b), max(a, b)
    found = [Budget(low, high, i, steps).resolve(lambda name: 0) for i in range(steps)]
    assert found[0] == low
    assert found[-1] == high
    assert found == sorted(found)
    assert sizes([{"from": low, "to": high, "steps": steps}]) == list(dict.fromkeys(found))


@pytest.mark.parametrize(
    ("asked", "parts"),
    [
        ([], ["budgets", "empty"]),
        (["lots"], ["budgets[0]", "lots", "MR"]),
        ([1.5], ["budgets[0]", "1.5"]),
        ([True], ["budgets[0]"]),
        ([0], ["budgets[0]"]),
        ([1 << 50], ["budgets[0]"]),
        ([{"from": 1}], ["budgets[0].to"]),
        ([{"from": 1, "to": 2}], ["budgets[0]", "factor"]),
        ([{"from": 1, "to": 2, "factor": 2, "steps": 2}], ["budgets[0]", "one of"]),
        ([{"from": 2, "to": 1, "factor": 2}], ["budgets[0].from"]),
        ([{"from": 1, "to": 2, "factor": 1}], ["budgets[0].factor"]),
        ([{"from": 1, "to": 2, "steps": 1}], ["budgets[0].steps"]),
        ([{"from": "MR", "to": 2, "factor": 2}], ["budgets[0].factor", "steps"]),
        ([{"from": 1, "to": "1GiB", "step": 1}], ["budgets[0].step", "10,000"]),
        ([{"from": 1, "to": 2, "step": "MR"}], ["budgets[0].step"]),
        ([{"from": 1, "to": 2, "stepz": 1}], ["budgets[0].stepz"]),
    ],
)
def test_mistakes_are_named_by_their_key(asked: Any, parts: list[str]) -> None:
    with pytest.raises(UsageError) as problem:
        parse_budgets(asked, "spec.toml")
    for part in ["spec.toml", *parts]:
        assert part in str(problem.value)
