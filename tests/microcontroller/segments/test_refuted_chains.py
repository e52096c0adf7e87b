"""Plans that once took less than what segment planning called the least: each is beaten or equalled now."""

from __future__ import annotations

from pathlib import Path

import pytest

from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.microcontroller.segments import Objective, SegmentOptions, plan
from onchip.plans import Plan, read_plan

FOLDER = Path(__file__).parents[2] / "refuted"
FILES = sorted(FOLDER.glob("seg_ce_*.json"))
OBJECTIVES: tuple[Objective, ...] = ("free", "once", "least")
PLANS = {path.stem: read_plan(path) for path in FILES if "claimed" not in path.stem}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_plan_of_a_file_takes_less_than_ours(name: str, objective: Objective) -> None:
    given = PLANS[name]
    assert check(given) == given.result  # a legal plan, as it was when it refuted a claim
    made = planned(given, 1_000_000, objective)
    assert made.result.extent_bytes <= given.result.extent_bytes
    bound = made.result.peak_lower_bound_bytes
    assert bound is not None
    assert bound <= given.result.extent_bytes
    if objective == "least":
        assert made.result.status == "optimal"


@pytest.mark.parametrize("objective", ["once", "least"])
def test_a_band_as_high_as_the_map_may_lie_over_its_input(objective: Objective) -> None:
    given = read_plan(FOLDER / "seg_band_over_input.json")
    assert check(given) == given.result
    assert planned(given, 1_000_000, objective).result.extent_bytes == given.result.extent_bytes


@pytest.mark.parametrize("name", PLANS)
def test_what_a_file_fits_in_is_enough(name: str) -> None:
    given = PLANS[name]
    for objective in OBJECTIVES:
        made = planned(given, given.result.extent_bytes, objective)
        with pytest.raises(Infeasible) as refused:
            planned(given, made.result.extent_bytes - 1, "least")
        assert refused.value.needs == made.result.extent_bytes


def planned(given: Plan, ram: int, objective: Objective) -> Plan:
    return plan(given.network, ram, SegmentOptions(objective=objective))
