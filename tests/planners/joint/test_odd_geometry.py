"""Joint planning on odd geometry against elementary moves with every tiling that the checker accepts."""

from __future__ import annotations

from random import Random

import pytest

from onchip.base.errors import Infeasible
from onchip.machines.chip import load_chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.planners.fusion import FusionProblem
from onchip.planners.joint import JointOptions, plan
from onchip.planners.joint.options import fusion_options
from onchip.planners.joint.search import JointSearch
from onchip.planners.placement.overwriting import overwritable
from oracles.joint import least_dram_bytes
from oracles.odd_networks import odd_network


def problem_of(network: Network, budget: int, tile: int) -> FusionProblem:
    options = fusion_options(JointOptions(fuse=True, channel_tile=tile))
    return FusionProblem.of(network, load_chip("generic"), options, budget)


def odd_case(seed: int, most: int, largest: int) -> tuple[Network, int, int]:
    rng = Random(seed)
    network = odd_network(rng, most, largest=largest)
    total = sum(t.bytes for t in network.tensors)
    return network, max(1, int(total * rng.choice((0.1, 0.2, 0.3, 0.45, 0.6, 0.8)))), rng.choice((1, 2, 3))


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(60))
def test_nothing_moves_less_than_what_is_found(seed: int) -> None:
    network, budget, tile = odd_case(seed, 3, 5)
    problem, over = problem_of(network, budget, tile), overwritable(network) if seed % 2 else ()
    search = JointSearch(problem, over)
    expected = least_dram_bytes(problem, over)
    found = None if search.misfits else search.best()
    assert (found and found.dram_bytes) == expected
    assert found is None or found.dram_bytes is None or found.lower_bound_bytes == expected


@pytest.mark.parametrize("seed", range(200, 260))
def test_a_plan_is_certified_and_says_the_same(seed: int) -> None:
    network, budget, tile = odd_case(seed, 3, 5)
    problem, over = problem_of(network, budget, tile), overwritable(network)
    search = JointSearch(problem, over)
    options = JointOptions(fuse=True, channel_tile=tile, nests=False)
    found = None if search.misfits else search.best().dram_bytes
    if found is None:
        with pytest.raises(Infeasible) as refusal:
            plan(network, load_chip("generic"), budget, options)
        needs = refusal.value.needs
        assert needs > budget
        assert plan(network, load_chip("generic"), needs, options).result.extent_bytes <= needs
    else:
        made = plan(network, load_chip("generic"), budget, options).result
        assert made.status == "feasible" or made.dram_bytes == found


def test_an_operand_that_does_not_pass_through_the_workspace_lies_whole() -> None:
    geometry = Geometry("elementwise", input=(3, 2, 2, 1), output=(3, 2, 2, 1))
    operator = OperatorSpec("f", "Relu", ("x",), ("y",), workspace=1, geometry=geometry)
    network = Network.build("one", [("x", 12, "input"), ("y", 12, "activation")], [operator], ["y"])
    options = JointOptions(fuse=True, overlap=False)
    assert plan(network, load_chip("generic"), 13, options).result.dram_bytes == 24
    with pytest.raises(Infeasible) as refusal:
        plan(network, load_chip("generic"), 12, options)
    assert refusal.value.needs == 13
