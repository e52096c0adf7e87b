"""Joint plans where groups are too many to list: passes over groups of few operators, no claim of others."""

from __future__ import annotations

import pytest

import onchip
from onchip.check import check
from onchip.machines.chip import load_chip
from onchip.network import Network
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint.by_size import best_by_size, best_of_few
from onchip.planners.joint.nests import nests_of
from onchip.planners.joint.options import JointOptions, fusion_options
from onchip.planners.joint.planning import plan
from onchip.planners.joint.search import JointSearch
from onchip.planners.limits import NO_LIMITS

BUDGET = 64 * 1024


@pytest.fixture(scope="module")
def network() -> Network:
    return onchip.load("zoo:squeezenet1_0", dtype="int8").network


@pytest.fixture(scope="module")
def problem(network: Network) -> FusionProblem:
    return FusionProblem.of(network, load_chip("generic"), fusion_options(JointOptions(fuse=True)), BUDGET)


@pytest.mark.thorough
def test_more_passes_and_nests_are_never_dearer(problem: FusionProblem) -> None:
    least = JointSearch(problem).best().dram_bytes
    found = [
        best_of_few(problem, (), None, NO_LIMITS, nests, passes=passes)
        for nests, passes in ((None, 1), (None, 3), (nests_of(problem), 3))
    ]
    moved = [one[1].dram_bytes for one in found if one is not None]
    assert len(moved) == 3
    assert None not in (least, *moved)
    assert moved[0] >= moved[1] >= moved[2]  # type: ignore[operator]
    assert moved[1] >= least  # type: ignore[operator]


def test_nothing_is_claimed_of_groups_that_were_not_listed(
    problem: FusionProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = JointSearch(problem, most_groups=1)
    assert not listed.all_groups
    search, found = best_by_size(problem, (), listed, None, NO_LIMITS, passes=1)
    assert search.all_groups
    assert found.dram_bytes is not None
    assert (found.lower_bound_bytes, found.complete) == (0, False)
    monkeypatch.setattr("onchip.planners.joint.by_size.SOME", 1)
    assert best_of_few(problem, (), None, NO_LIMITS) is None
    search, found = best_by_size(problem, (), listed, None, NO_LIMITS, passes=1)
    assert not search.all_groups
    assert (found.lower_bound_bytes, found.complete) == (0, False)


@pytest.mark.parametrize(
    ("budget", "sets"),
    [
        (640 * 1024, 1),
        (640 * 1024, 100_000),
        pytest.param(BUDGET, 100_000, marks=pytest.mark.thorough),
        pytest.param(BUDGET, 1, marks=pytest.mark.campaign),
    ],
)
def test_passes_over_groups_of_few_first_change_no_answer(
    network: Network, budget: int, sets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the passes reach the least that crosses or not, and sets of operators are too many or not."""
    monkeypatch.setattr("onchip.planners.joint.search.MOST_DOWNSETS", sets)
    best = plan(network, load_chip("generic"), budget)
    passes: list[int] = []

    def counted(*args: object, **options: object) -> object:
        passes.append(1)
        return best_of_few(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("onchip.planners.joint.by_bytes.SOME", 1)
    monkeypatch.setattr("onchip.planners.joint.by_bytes.best_of_few", counted)
    monkeypatch.setattr("onchip.planners.joint.by_bytes.placed_alone", lambda *_: None)
    made = plan(network, load_chip("generic"), budget)
    assert passes
    assert check(made).dram_bytes == made.result.dram_bytes == best.result.dram_bytes
    assert made.result.dram_lower_bound_bytes <= best.result.dram_bytes


@pytest.mark.thorough
def test_plans_where_not_all_groups_are_listed(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    best = plan(network, load_chip("generic"), BUDGET)
    assert best.result.status == "optimal"
    monkeypatch.setattr("onchip.planners.joint.search.MOST_GROUPS", 10)
    monkeypatch.setattr("onchip.planners.joint.by_bytes.PASSES", 3)
    nested, plain = (
        plan(network, load_chip("generic"), BUDGET, JointOptions(fuse=True, nests=nests))
        for nests in (True, False)
    )
    for made in (nested, plain):
        assert check(made).dram_bytes == made.result.dram_bytes >= best.result.dram_bytes
        assert made.result.dram_lower_bound_bytes <= best.result.dram_bytes
    assert nested.result.dram_bytes <= plain.result.dram_bytes
