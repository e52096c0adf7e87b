"""A planner from outside is compared, swept, asked what if and proved again after one call; one of onchip's
own is a module and a row."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from importlib import import_module, metadata
from pathlib import Path

import pytest

import onchip
from onchip.base.errors import UsageError
from onchip.check import check
from onchip.planners import registry
from onchip.planners.limits import Limits
from onchip.planners.protocol import Planner
from onchip.replanning import what_if
from onchip.results.proving import prove
from strategies import network_of

ROOT = Path(onchip.__file__).parent

OUTSIDE = '''
"""A planner of somebody else's: placement, in an order of the caller's choice."""

from dataclasses import dataclass, replace

from onchip.base.options import option
from onchip.planners import registry
from onchip.planners.placement import PlacementOptions, plan
from onchip.planners.protocol import Planner
from onchip.plans import bind


@dataclass(frozen=True, slots=True)
class Wishes:
    own_order: bool = option(True, "Run the operators in the order that the network has.")
    time_limit: float | None = option(None, "Seconds in all.")


def solve(network, chip, budget, options, limits):
    limits.say("placing by way of others")
    how = PlacementOptions(order="given" if options.own_order else "free")
    made = plan(network, chip, budget, how, limits)
    return bind(replace(made, options={"planner": "outside", "own_order": options.own_order}))


PLANNER = Planner("outside", "placement in an order of the caller's choice", Wishes, solve)
registry.register(PLANNER)
'''

NETWORK = network_of(
    {"x": 4, "a": 8, "b": 8, "c": 8, "d": 4, "e": 4, "y": 2},
    ["x -> a", "a -> b", "a -> c", "b -> d", "c -> e", "a d e -> y"],
    "y",
)
BUDGET = 18
"""Bytes: something has to go."""


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Planner]:
    monkeypatch.setattr(registry, "_registered", {})
    (tmp_path / "planner_from_outside.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(tmp_path)
    found = import_module("planner_from_outside").PLANNER
    assert isinstance(found, Planner)
    yield found
    registry._own.cache_clear()
    del sys.modules["planner_from_outside"]


def test_a_planner_from_outside_is_a_row_of_a_comparison(outside: Planner) -> None:
    said: list[str] = []
    made = onchip.compare(NETWORK, budget=BUDGET, progress=said.append)
    row = made["outside"]
    assert row.plan is not None
    assert check(row.plan) == row.plan.result
    assert (row.dram_bytes or 0) > (made["exact"].dram_bytes or 0)  # in the given order
    assert "outside: placing by way of others" in said
    with pytest.raises(UsageError, match="joint, fusion, branches, outside"):
        onchip.compare(NETWORK, budget=BUDGET, planners="elsewhere")


@pytest.mark.thorough
@pytest.mark.usefixtures("outside")
def test_a_planner_from_outside_has_a_section_and_points_of_a_sweep(tmp_path: Path) -> None:
    spec = {
        "networks": "zoo:squeezenet1_0",
        "planners": ["outside", "plan"],
        "outside": {"own_order": [True, False]},
        "budgets": ["MR"],
    }
    made = onchip.sweep(spec, tmp_path / "s", jobs=1)
    assert [row["status"] for row in made.rows] == ["optimal"] * 3, made.rows
    given, free, plan = (row["dram_bytes"] for row in made.rows)
    assert given >= free == plan
    with pytest.raises(UsageError, match="no such option; known: own_order"):
        onchip.sweep({**spec, "outside": {"order": "free"}}, tmp_path / "t")


@pytest.mark.thorough
@pytest.mark.usefixtures("outside")
def test_a_change_of_a_planner_from_outside_is_computed_anew(tmp_path: Path) -> None:
    spec = {"networks": "zoo:squeezenet1_0", "planners": "outside", "budgets": ["MR"]}
    assert onchip.sweep(spec, tmp_path / "s", jobs=1).outcome.computed == 1
    assert onchip.sweep(spec, tmp_path / "s", jobs=1).outcome.computed == 0
    (tmp_path / "planner_from_outside.py").write_text(OUTSIDE.replace("by way of", "with"))
    from onchip.sweeps.points import content_of

    content_of.cache_clear()  # a process sees one version of a planner
    assert onchip.sweep(spec, tmp_path / "s", jobs=1).outcome.computed == 1


def test_a_plan_from_outside_is_made_again_for_other_budgets(outside: Planner) -> None:
    made = outside.solve(NETWORK, onchip.chip(), BUDGET, outside.options(own_order=True), Limits())
    found = what_if(made, budgets=[BUDGET + 2, 40])
    assert [point.budget for point in found.points] == [BUDGET, BUDGET + 2, 40]
    assert found.points[-1].traffic_bytes == 0
    again = outside.solve(NETWORK, onchip.chip(), BUDGET + 2, outside.options(own_order=True), Limits())
    assert found.points[1].traffic_bytes == again.result.traffic_bytes


def test_a_claim_from_outside_is_proved_again_by_its_own_planner(outside: Planner) -> None:
    made = outside.solve(NETWORK, onchip.chip(), BUDGET, outside.options(own_order=False), Limits())
    assert made.result.lower_bound_bytes > 0
    assert prove(made).outcome == "proved"
    claims_more = replace(made.result, lower_bound_bytes=made.result.lower_bound_bytes + 1)
    assert prove(replace(made, result=claims_more)).outcome == "refuted"


def test_without_its_registration_a_plan_is_nobodys(outside: Planner) -> None:
    made = outside.solve(NETWORK, onchip.chip(), BUDGET, outside.options(), Limits())
    registry._registered.clear()
    with pytest.raises(UsageError, match="plans by outside cannot be made again for another budget"):
        what_if(made, budgets=[40])
    with pytest.raises(UsageError, match="plans by outside cannot be made again"):
        prove(made)


def test_a_name_is_taken_once(outside: Planner) -> None:
    registry.register(outside)  # the same again is no other
    for taken in (
        replace(outside, searches=False),
        replace(outside, name="joint"),
        replace(outside, name="fuse"),
    ):
        with pytest.raises(UsageError, match="there is a planner of that name"):
            registry.register(taken)


def test_an_entry_point_registers_a_planner(outside: Planner, monkeypatch: pytest.MonkeyPatch) -> None:
    registry._registered.clear()
    entry = metadata.EntryPoint("outside", "planner_from_outside:PLANNER", registry.GROUP)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry] if group == registry.GROUP else [])
    registry._by_entry_point.cache_clear()
    try:
        assert registry.find("outside") == registry.section("outside") == outside
        assert registry.listed()[-1] == outside
    finally:
        registry._by_entry_point.cache_clear()


def test_onchips_own_planners_are_found_without_reading_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(**_: str) -> None:
        raise AssertionError("entry points were read")

    monkeypatch.setattr(metadata, "entry_points", read)
    registry._by_entry_point.cache_clear()
    for name in registry.OWN:
        planner = registry.find(name)
        assert planner is not None
        assert planner.name == name
        if planner.anywhere:
            assert registry.section(planner.key) == planner


def test_options_of_a_plan_are_those_that_it_was_made_with() -> None:
    """A plan records what was asked, and how hard to search is the business of who asks again."""
    made = {
        "placement": onchip.plan(NETWORK, budget=20, order="given", in_place=True, seed=3),
        "joint": onchip.plan(NETWORK, budget=20, fuse=True, overlap=False, seed=3),
        "fusion": onchip.fuse("zoo:squeezenet1_0", "optimus", residency="all", time_limit=30).plan,
        "branches": onchip.branches("zoo:inception_v3", rules="ours", long_skip=9).plan,
    }
    for name, plan in made.items():
        planner = registry.find(name)
        assert planner is not None
        assert plan is not None
        options = planner.options_of(plan)
        for f in fields(planner.options):
            if f.name in plan.options:
                stated = plan.options[f.name]
                stated = "traffic" if stated == "dram" else stated  # what users call it
                assert getattr(options, f.name) == stated, (name, f.name)
        assert getattr(options, "time_limit", None) is None


def test_a_planner_of_onchips_own_is_a_module_and_a_row(
    outside: Planner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two files: its module and the registry. Nobody else names planners, but for what stands in plans."""
    registry._registered.clear()
    monkeypatch.setitem(registry.OWN, "outside", "planner_from_outside:PLANNER")
    registry._own.cache_clear()
    monkeypatch.setattr(registry, "register", lambda planner: None)
    plan = onchip.compare(NETWORK, budget=BUDGET, planners="outside")["outside"].plan
    assert plan is not None
    assert prove(plan).outcome == "proved"
    assert what_if(plan, budgets=[40]).points[-1].traffic_bytes == 0
    assert registry.section("outside") == outside
    asking = [*(ROOT / "sweeps").glob("*.py"), ROOT / "replanning.py", ROOT / "results" / "proving.py"]
    # A plan that names no planner is by placement, and a chip has memories, too.
    words = set(registry.OWN) - {"placement", "memories"}
    for file in asking:
        constants = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant))
        assert [node.value for node in constants if node.value in words] == [], file
