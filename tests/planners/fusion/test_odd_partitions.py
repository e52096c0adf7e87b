"""The best partition of networks of odd geometry against all partitions, priced by the checker."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest

from onchip.base.errors import Infeasible
from onchip.machines.chip import load_chip
from onchip.network import bits
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.fuse import fuse
from oracles.fusion_cases import cheapest_partition
from oracles.joint import options_of
from oracles.odd_networks import odd_network


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(60))
def test_no_partition_moves_less(seed: int) -> None:
    rng = Random(5000 + seed)
    network = odd_network(rng, 3, largest=5)
    total = sum(t.bytes for t in network.tensors)
    budget = max(1, int(total * rng.choice((0.1, 0.2, 0.3, 0.45, 0.6, 0.8))))
    batch_weights = rng.choice(("per-image", "held"))
    options = FusionOptions(channel_tile=rng.choice((1, 2, 3)), batch_weights=batch_weights)
    problem = FusionProblem.of(network, load_chip("generic"), options, budget)

    @cache
    def cost(members: int) -> int | None:
        """Everything crosses: what is whole is loaded and stored."""
        moved = []
        for whole, ways in options_of(problem, members).items():
            if whole and problem.operators[members.bit_length() - 1].form != "opaque":
                continue
            beside = sum(problem.round_up(network.tensors[t].bytes) for t in bits(whole))
            crossing = sum(network.tensors[t].bytes for t in bits(whole))
            moved += [crossing + more for scratch, more in ways if scratch + beside <= budget]
        return min(moved, default=None)

    expected = cheapest_partition(network, cost)
    if expected is None:
        with pytest.raises(Infeasible) as refusal:
            fuse(network, load_chip("generic"), budget, options, beside=False)
        needs = refusal.value.needs
        assert needs > budget
        assert fuse(network, load_chip("generic"), needs, options, beside=False).plan is not None
        return
    found = fuse(network, load_chip("generic"), budget, options, beside=False)
    assert found.status == "optimal"
    assert found.dram_bytes == expected
