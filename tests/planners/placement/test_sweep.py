"""Layouts step by step: legal whatever the sizes, and never much dearer than the moves that are needed."""

from __future__ import annotations

from random import Random

import pytest

from onchip.check import check
from onchip.machines.chip import Chip
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions, Problem, plan
from onchip.planners.placement.addresses import Placement
from onchip.planners.placement.addresses_exact import place_exact
from onchip.planners.placement.rectangles import Rectangle, relocation_bytes
from onchip.planners.placement.sweep import sweep
from onchip.readers import load
from planners.packing.instances import tight_instance
from planners.placement.test_addresses import assert_legal, rectangles_of
from strategies import minimum_requirement, network_of, random_tight_case

GENERIC = Chip("generic", 1)


def swept(rectangles: list[Rectangle], budget: int, alignment: int = 1, seconds: float = 0.2) -> int:
    """What a sweep moves, in bytes; asserts that its layout is legal."""
    found = sweep(rectangles, budget, alignment=alignment, limits=Limits(seconds))
    assert found is not None
    cost = relocation_bytes(rectangles, found[1])
    assert_legal(rectangles, budget, Placement("relocated", found[0], found[1], cost, 0, (), 0.0), alignment)
    return cost


@pytest.mark.parametrize("alignment", [1, 3])
@pytest.mark.parametrize("seed", range(40))
def test_the_first_pass_alone_is_legal(seed: int, alignment: int) -> None:
    buffers, budget = tight_instance(seed)
    swept(rectangles_of(buffers, seed), 3 * budget if alignment == 3 else budget, alignment, seconds=0.0)


@pytest.mark.parametrize("seed", [1578, 6671, 7209, 7589, 12542, 17113, 22858])
def test_a_few_moves_more_than_the_least_at_most(seed: int) -> None:
    buffers, budget = tight_instance(seed)
    rectangles = rectangles_of(buffers, seed)
    least = place_exact(rectangles, budget).relocation_bytes
    assert least <= swept(rectangles, budget) <= least + 2 * budget


@pytest.mark.parametrize("seed", range(30))
def test_a_case_without_slack_costs_little_more_than_its_bound(seed: int) -> None:
    case = random_tight_case(Random(seed), 8)
    result = plan(case.network, case.chip, case.budget).result
    assert result.traffic_bytes <= result.lower_bound_bytes + 2 * case.budget


def test_ways_that_lead_nowhere_are_left() -> None:
    """Two bytes each, in gaps of three that nothing may widen: by count of bytes there is room."""
    blocks = [Rectangle(i, 0, 2, 1, movable=False, offset=4 * i + 3) for i in range(12)]
    new = [Rectangle(12 + i, 1, 2, 2) for i in range(18)]
    assert sweep([*blocks, *new], 48, limits=Limits(0.0)) is None
    assert swept([*blocks, *new[:12]], 48, seconds=0.0) == 0


def cells(count: int) -> tuple[dict[str, int], list[str]]:
    """A chain of cells whose large tensors live on into the next: three fill the memory, in no lasting order.

    Each cell reads the outputs of the two before it and holds small tensors from its beginning to its end.
    """
    sizes = {"y0": 6, "y1": 6}
    lines = ["-> y0", "y0 -> y1"]
    for c in range(2, count + 2):
        y, old = f"y{c - 1}", f"y{c - 2}"
        sizes |= {f"a{c}": 6, f"s{c}": 1, f"b{c}": 6, f"t{c}": 1, f"y{c}": 6}
        sizes |= {f"u{c}_{i}": 1 for i in range(5)}
        lines += [f"{old} {y} -> a{c}", f"a{c} -> s{c}", f"{y} -> b{c}", f"b{c} -> t{c}"]
        lines += [f"t{c} -> u{c}_{i}" for i in range(4)]
        lines += [f"t{c} -> u{c}_4"]
        lines += [f"s{c} " + " ".join(f"u{c}_{i}" for i in range(5)) + f" -> y{c}"]
    return sizes, lines


@pytest.mark.parametrize("count", [3, 12, 30])
def test_a_chain_of_cells_moves_a_little_in_each(count: int) -> None:
    """Without any time too: a cell holds 36 bytes, of which few have to move."""
    sizes, lines = cells(count)
    network = network_of(sizes, lines, f"y{count + 1}")
    budget = minimum_requirement(network)
    result = check(plan(network, GENERIC, budget, PlacementOptions(order="given", time_limit=0.0)))
    assert result.lower_bound_bytes == 0
    assert result.traffic_bytes <= 15 * count


@pytest.mark.campaign
def test_nasnet_in_its_own_order_stays_near_the_bound() -> None:
    network = load("zoo:nasnetalarge").network
    budget = Problem.of(network).minimum_budget
    result = check(plan(network, GENERIC, budget, PlacementOptions(order="given", time_limit=20.0)))
    assert result.lower_bound_bytes == 12_725_640
    assert result.traffic_bytes <= 2 * result.lower_bound_bytes
