"""Boxes of one operator: the staircase is the best of all sizes and orders of the loops, at any budget."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.base.errors import Infeasible
from onchip.machines.chip import Chip
from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.planners.fusion import FusionOptions, FusionProblem, boxes
from onchip.planners.fusion.box_sizes import sizes_along
from onchip.planners.fusion.boxes import box_ways
from onchip.planners.fusion.cost import group_cost, least_scratch
from onchip.planners.fusion.fuse import fuse
from onchip.planners.fusion.search import Fuser, Space
from onchip.planners.joint import JointOptions, plan
from onchip.plans import Boxes, Plan
from oracles.boxes import orders, random_operator, turned


def every_box(network: Network) -> Iterator[tuple[int, int]]:
    """(scratch, bytes moved but for the output) of all boxes."""
    reach = network.operators[0].reach
    assert reach is not None
    sizes = [range(1, n + 1) for n in reach.extents]
    for order in orders(reach):
        for chosen in product(*sizes):
            found = turned(network, Boxes(chosen, order))
            yield sum(found.parts), sum(found.crossing) + found.weights


@pytest.mark.thorough
@settings(max_examples=25)
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


@given(st.integers(1, 3000))
def test_the_sizes_along_an_axis_are_the_least_of_every_number_of_boxes(n: int) -> None:
    assert sizes_along(n)[0] == sorted({-(-n // -(-n // size)) for size in range(1, n + 1)})


LONG = 1 << 40


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("reach", "size"),
    [
        (Reach((LONG,), ((Side(LONG, 0),),)), LONG),
        (Reach((4, 6), ((Side(4, 0), Side(6, 2)),), sums=(LONG,)), 24),
        (Reach((1 << 16, 1 << 16), ((Side(1 << 16, 0), Side(1 << 16, 2)),), sums=(1 << 30,)), 1 << 32),
        (Reach((2,) * 30, (tuple(Side(2, i) for i in range(30)),)), 1 << 30),
        (Reach((24,), ((Side(24, 0, LONG, -LONG, LONG, LONG),),)), 24),
    ],
)
def test_very_long_and_very_many_axes_take_no_longer(reach: Reach, size: int) -> None:
    """Nothing is laid out element by element or for every size: memory for that there is not."""
    operator = OperatorSpec("f", "Softmax", ["x"], ["y"], 0, reach=reach)
    network = Network.build("long", [("x", size, "input"), ("y", size, "activation")], [operator], ["y"])
    ways = box_ways(network, network.operators[0], 1, 1 << 50, 1 << 50).boxes
    assert ways
    assert all(way.scratch_bytes <= 2 * size for way in ways)


@pytest.fixture
def _forgetting() -> Iterator[None]:
    """Ways that were laid out under other limits are none."""
    boxes._stairs.cache_clear()
    yield
    boxes._stairs.cache_clear()


@pytest.mark.usefixtures("_forgetting")
@pytest.mark.parametrize("seed", range(20))
def test_parts_of_the_shapes_have_the_same_best(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network = random_operator(Random(seed))
    together = box_ways(network, network.operators[0], 1, 1 << 50, 1 << 50)
    boxes._stairs.cache_clear()
    monkeypatch.setattr(boxes, "SLAB", 3)
    apart = box_ways(network, network.operators[0], 1, 1 << 50, 1 << 50)
    assert together.complete
    assert apart.complete
    assert [costs(way) for way in together.boxes] == [costs(way) for way in apart.boxes]


def fused(network: Network, chip: Chip, budget: int) -> Plan:
    made = fuse(network, chip, budget, beside=False).plan
    assert made is not None
    return made


def costs(way: boxes.Boxed) -> tuple[int, int, int]:
    return way.scratch_bytes, way.moved_bytes + way.weight_bytes, way.tiles


@pytest.mark.usefixtures("_forgetting")
@pytest.mark.parametrize("joint", [False, True])
def test_what_was_not_looked_at_is_not_claimed(joint: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of boxes of which only some were tried a plan is feasible, its bound holds, and a no says so."""
    better = False
    for seed in range(40):
        network = random_operator(Random(seed))
        budget = sum(t.bytes for t in network.tensors) // 3
        chip = Chip("test", 1)
        made: list[Plan | str] = []
        for most in (boxes.MOST_SHAPES, 2):
            monkeypatch.setattr(boxes, "MOST_SHAPES", most)
            boxes._stairs.cache_clear()
            try:
                made.append(plan(network, chip, budget) if joint else fused(network, chip, budget))
            except Infeasible as no:
                made.append(str(no))
        whole, part = made
        monkeypatch.undo()
        if isinstance(part, str):
            assert "not every size" in part or part == whole
            continue
        assert not isinstance(whole, str)
        assert whole.result.status == "optimal"
        least, moved, bound = (
            whole.result.dram_bytes,
            part.result.dram_bytes,
            part.result.dram_lower_bound_bytes,
        )
        assert bound <= least <= moved
        assert part.result.status == ("optimal" if moved == bound else "feasible")
        better = better or moved > least
    assert better


@pytest.mark.usefixtures("_forgetting")
def test_whole_is_not_the_best_where_boxes_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row of three is needed: whole, all come; row by row, those alone."""
    sides = (Side(18, 0, 3), Side(4, 1))
    operator = OperatorSpec("f", "Resize", ["x"], ["y"], 0, reach=Reach((6, 4), (sides,)))
    network = Network.build("third", [("x", 72, "input"), ("y", 24, "activation")], [operator], ["y"])
    best = fused(network, Chip("test", 1), 200).result
    assert (best.status, best.dram_bytes) == ("optimal", 24 + 24)
    monkeypatch.setattr(boxes, "thinned", lambda every, outer, most: [[n[-1]] for n in every])
    boxes._stairs.cache_clear()
    found = fused(network, Chip("test", 1), 200).result
    assert found.dram_bytes > best.dram_bytes
    assert found.status == "feasible"
    assert found.dram_lower_bound_bytes is not None
    assert found.dram_lower_bound_bytes <= best.dram_bytes


@pytest.mark.parametrize("joint", [False, True])
def test_any_number_of_boxes_is_a_plan(joint: bool) -> None:
    """The checker counts boxes axis by axis, so that one element at a time is a plan of the largest maps."""
    size = 3000 * 2000
    reach = Reach((3000, 2000), ((Side(2000, 1), Side(3000, 0)),))
    operator = OperatorSpec("f", "Transpose", ["x"], ["y"], 0, reach=reach)
    network = Network.build("turned", [("x", size, "input"), ("y", size, "activation")], [operator], ["y"])
    chip = Chip("test", 1)
    made = plan(network, chip, 2, JointOptions(fuse=True, nests=False)) if joint else fused(network, chip, 2)
    assert made.groups[0].subgroups == size
    assert made.result.dram_bytes == 2 * size


@pytest.mark.thorough
def test_what_wraps_around_is_left_out_and_said() -> None:
    """More boxes than integers count: the shapes with fewer are left, and are not all."""
    side = 1 << 20
    reach = Reach((side, side), ((Side(side, 0), Side(side, 1)),), sums=(side, side))
    operator = OperatorSpec("f", "Any", ["x"], ["y"], 0, reach=reach)
    size = side * side
    network = Network.build("vast", [("x", size, "input"), ("y", size, "activation")], [operator], ["y"])
    ways = box_ways(network, network.operators[0], 1, 1 << 50, 1 << 50)
    assert ways.boxes
    assert not ways.complete
    assert all(way.tiles > 0 and 0 < way.moved_bytes < boxes.MOST_MOVED for way in ways.boxes)
