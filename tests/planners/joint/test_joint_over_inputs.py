"""Joint plans in whose nests outputs lie over inputs that die: least by elementary moves, and legal."""

from __future__ import annotations

from random import Random

import pytest

from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.joint.nests import nests_of
from onchip.planners.joint.options import JointOptions
from onchip.planners.joint.planning import plan
from onchip.planners.joint.search import JointSearch, Rules
from onchip.plans import Alloc, Plan
from oracles.joint_claims import difference
from oracles.residuals import residual_network

CHIP = Chip("test", 1)
LOOKS = 10_000_000

GAIN = (149, 182, 265, 267, 539)
"""Networks that move less so."""


def planned(network: Network, budget: int, *, overlap: bool = True) -> Plan:
    return plan(network, CHIP, budget, JointOptions(fuse=True, overlap=overlap))


def in_place(made: Plan) -> int:
    return sum(isinstance(step, Alloc) and step.over is not None for step in made.program)


def drawn(seed: int) -> tuple[FusionProblem, Random]:
    random = Random(seed)
    network = residual_network(random, random.choice((3, 4, 5)))
    budget = int(max(t.bytes for t in network.tensors) * random.uniform(1, 2.6))
    return FusionProblem.of(network, CHIP, FusionOptions(channel_tile=random.choice((1, 2))), budget), random


@pytest.mark.thorough
def test_no_elementary_moves_are_cheaper() -> None:
    for seed in (*range(6), *GAIN):
        problem, _ = drawn(seed)
        search = JointSearch(problem, (), nests=nests_of(problem, LOOKS))
        _, wrong = difference(problem, (), search, 60_000, nests=True)
        assert not wrong, (seed, wrong)


@pytest.mark.thorough
@pytest.mark.parametrize("rule", ["dominance", "minimal", "ahead", "incumbent"])
def test_a_rule_changes_no_bytes(rule: str) -> None:
    for seed in (*range(20), *GAIN):
        problem, _ = drawn(seed)
        nests = nests_of(problem, LOOKS)
        with_it, without = (
            JointSearch(problem, (), nests=nests, rules=Rules(**{rule: on})) for on in (True, False)
        )
        if not with_it.misfits:
            assert with_it.best().dram_bytes == without.best().dram_bytes, seed


@pytest.mark.thorough
def test_bounds_hold_where_searches_of_nests_are_cut_off() -> None:
    cut = 0
    for seed in (*range(20), *GAIN):
        problem, _ = drawn(seed)
        exact = JointSearch(problem, (), nests=nests_of(problem, LOOKS))
        if exact.misfits:
            continue
        least = exact.best().dram_bytes
        for looks in (1, 4, 15, 60):
            found = JointSearch(problem, (), nests=nests_of(problem, looks, in_order=1)).best()
            assert least is not None
            assert found.lower_bound_bytes <= least, (seed, looks)
            assert found.dram_bytes is None or found.dram_bytes >= least
            assert not found.complete or found.dram_bytes == least
            cut += not found.complete
    assert cut > 10


@pytest.mark.thorough
@pytest.mark.parametrize("looks", [(1, LOOKS), (2, 4, LOOKS)])
def test_searches_that_go_on_where_they_were_cut_off_end_as_if_they_had_not_been(
    looks: tuple[int, ...],
) -> None:
    cut = 0
    for seed in (*range(20), *GAIN):
        problem, _ = drawn(seed)
        exact = JointSearch(problem, (), nests=nests_of(problem, LOOKS))
        if exact.misfits:
            continue
        nests = nests_of(problem, looks[0], in_order=1)
        search = JointSearch(problem, (), nests=nests)
        found = search.best()
        cut += not found.complete
        for deeper in looks[1:]:
            nests.costs.deepen(deeper)
            search.forget_nests()
            found = search.best()
        assert found.complete, seed
        assert found.dram_bytes == exact.best().dram_bytes, seed
    assert cut > 1


def test_plans_are_legal_and_never_dearer() -> None:
    less = 0
    for seed in GAIN:
        problem, _ = drawn(seed)
        one, other = (planned(problem.network, problem.budget, overlap=on) for on in (True, False))
        assert check(one).dram_bytes <= check(other).dram_bytes
        assert not in_place(other)
        less += bool(in_place(one)) and one.result.dram_bytes < other.result.dram_bytes
    assert less > 2


def test_a_row_in_the_place_of_its_row_is_all_that_a_network_needs() -> None:
    """A norm over all of a tensor: in parts it needs that and an element, over itself no more than that."""
    network = Network.build(
        "row",
        [("x", 12, "input"), ("y", 12, "activation")],
        [OperatorSpec("n", "Softmax", ["x"], ["y"], reach=Reach((12,), ((Side(12, span=12),),)))],
        ["y"],
    )
    made = planned(network, 12)
    assert (made.result.peak_bytes, made.result.dram_bytes, in_place(made)) == (12, 24, 1)
    for overlap, needs in ((True, 12), (False, 13)):
        with pytest.raises(Infeasible) as no:
            planned(network, 5, overlap=overlap)
        assert no.value.needs == needs
