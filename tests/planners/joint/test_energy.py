"""Joint plans of the least energy, and of the least product of energy and time."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

import onchip
from onchip.base.errors import OnchipError, UsageError
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.machines.chip_parts import Rates
from onchip.planners.joint.planner import PLANNER
from onchip.planners.joint.timed.aim import Aim
from onchip.plans import Plan
from onchip.report.claims import status_sentence
from onchip.report.findings import cost_of_dram
from onchip.report.steps import timeline
from timed_plans import TILES, WORDED, few_looks


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks of two operators need few."""
    few_looks(monkeypatch)


CHIP = Chip(
    "example",
    1,
    "int8",
    tiles=TILES,
    rates=Rates(dram_picojoules_per_byte=120.0, scratchpad_picojoules_per_byte=1.5, mac_picojoules=0.25),
)


@cache
def planned(objective: str, budget: int = 48) -> Plan:
    """The plan by an objective, which the checker takes."""
    made = onchip.plan(WORDED.network, CHIP, budget, fuse=True, objective=objective)
    check(made)
    return made


def test_the_least_energy_is_that_of_the_fewest_bytes() -> None:
    energy, fewest = planned("energy").result, planned("traffic").result
    assert energy.energy_picojoules == fewest.energy_picojoules
    assert energy.dram_bytes == fewest.dram_bytes
    assert energy.energy_lower_bound_picojoules is not None
    assert (energy.status == "optimal") == (energy.energy_picojoules == energy.energy_lower_bound_picojoules)
    assert fewest.status == energy.status  # nothing is joined here


@pytest.mark.parametrize("budget", [48, 90])
def test_of_plans_of_the_least_energy_and_of_the_fewest_bytes_a_fast_one_is_taken(budget: int) -> None:
    """Within 48 bytes the nests of fewest bytes take 158 ns with one copy of every buffer."""
    energy, fewest = planned("energy", budget).result, planned("traffic", budget).result
    assert energy.energy_picojoules == fewest.energy_picojoules
    for one in (energy, fewest):
        assert one.latency_picoseconds is not None
        assert one.latency_picoseconds < 158_000


def test_the_least_product_is_no_more_than_that_of_other_objectives() -> None:
    product = planned("edp").result
    assert product.energy_delay is not None
    assert product.energy_delay_lower_bound is not None
    assert product.energy_delay_lower_bound <= product.energy_delay
    assert product.energy_delay == product.energy_picojoules * product.latency_picoseconds  # type: ignore[operator]
    for other in ("latency", "traffic"):
        delay = planned(other).result.energy_delay
        assert delay is None or product.energy_delay <= delay
    assert product.energy_picojoules is not None
    assert planned("energy").result.energy_picojoules <= product.energy_picojoules  # type: ignore[operator]


def test_plans_say_what_they_make_small_and_are_made_again_by_it() -> None:
    for objective in ("energy", "edp"):
        made = planned(objective)
        assert made.options["objective"] == objective
        assert PLANNER.options_of(made).objective == objective
        line = timeline(made)
        said = dict(cost_of_dram(made, line))
        assert "Energy of one inference" in said
        assert ("Energy times latency" in said) == (made.result.latency_picoseconds is not None)
        if made.groups:
            assert "energy" in status_sentence(made, made.result.traffic_bytes)


def test_chips_without_the_figures_are_refused() -> None:
    plain = Chip("example", 1, "int8", tiles=TILES)
    for objective in ("energy", "edp"):
        with pytest.raises(OnchipError, match="dram_picojoules_per_byte"):
            onchip.plan(WORDED.network, plain, 48, fuse=True, objective=objective)
    with pytest.raises(UsageError, match="states none"):
        onchip.plan(WORDED.network, replace(CHIP, tiles=None), 48, fuse=True, objective="edp")
    with pytest.raises(UsageError, match="--fuse"):
        onchip.plan(WORDED.network, CHIP, 480, fuse=False, objective="edp")


def test_a_byte_costs_what_the_share_of_its_energy_costs_in_time() -> None:
    made = planned("edp")
    aim = Aim("edp").priced_as(made)
    r = made.result
    assert r.latency_picoseconds is not None
    assert r.energy_picojoules is not None
    exact = Fraction(243, 2) * Fraction(r.latency_picoseconds, r.energy_picojoules)
    assert abs(aim.per_byte - exact) < Fraction(1, 1000)
    assert aim.cost(10, 0) == 10
    assert aim.cost(0, 3) == -(-3 * aim.per_byte.numerator // aim.per_byte.denominator)
    assert Aim("latency").priced_as(made) == Aim("latency")


def test_without_fuse_times_are_of_nests_where_the_chip_has_rates_of_tiles() -> None:
    whole = replace(CHIP, tiles=None, rates=Rates(dram_bytes_per_second=1e9, macs_per_second=1e9))
    made = onchip.plan(WORDED.network, whole, 90, objective="latency")
    assert not made.groups
    assert any("states no rates of tiles" in note for note in made.notes)
    in_nests = onchip.plan(WORDED.network, CHIP, 48, objective="latency")
    assert in_nests.options["planner"] == "joint"
    assert in_nests.result.latency_picoseconds is not None
