"""Boxes of one operator: the staircase is the best of all sizes and orders of the loops, at any budget."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.chip import Chip
from onchip.fusion import FusionOptions, FusionProblem
from onchip.fusion.cost import group_cost, least_scratch
from onchip.fusion.search import Fuser, Space
from onchip.network import Network
from onchip.plan import Boxes
from oracles.boxes import orders, random_operator, turned


def every_box(network: Network) -> Iterator[tuple[int, int]]:
    """(scratch, bytes moved but for the output) of all boxes, the smallest of each number along an axis."""
    reach = network.operators[0].reach
    assert reach is not None
    sizes = [sorted({-(-n // count) for count in range(1, n + 1)}) for n in reach.extents]
    for order in orders(reach):
        for chosen in product(*sizes):
            found = turned(network, Boxes(chosen, order))
            yield sum(found.parts), sum(found.crossing) + found.weights


@settings(max_examples=80)
@given(st.integers(0, 10**9))
def test_the_best_boxes_at_any_budget(seed: int) -> None:
    network = random_operator(Random(seed))
    made = network.tensors[-1].bytes
    whole = sum(t.bytes for t in network.tensors)
    ways = list(every_box(network))
    least = min(scratch for scratch, _ in ways)
    for budget in {least - 1, least, (least + whole) // 2, whole - 1}:
        problem = FusionProblem.of(network, Chip("test", 1), FusionOptions(), budget)
        fuser = Fuser(problem, Space(largest=1))
        found, compiled = group_cost(problem, 1), fuser.cost(1)
        assert found == compiled
        fitting = [moved for scratch, moved in ways if scratch <= budget]
        if budget >= whole:
            assert found is not None
            continue
        assert (found is None) == (not fitting)
        if found is not None:
            assert found.dram_bytes == min(fitting) + made
            assert found.scratch_bytes <= budget
    assert least_scratch(problem, 0) == min(least, whole)
