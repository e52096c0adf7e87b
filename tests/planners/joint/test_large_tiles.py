"""A plan's nests take the room that is free: larger tiles, no byte more."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from random import Random

import pytest

import onchip
from nest_networks import nest_of
from onchip.base.errors import Infeasible
from onchip.check import certify, check
from onchip.check.nests import nested
from onchip.machines.chip import Chip, SplitBuffer
from onchip.network import Geometry, Network, OperatorSpec
from onchip.network.axes import GroupAxes, axes_of
from onchip.planners.fusion.fuse import fuse
from onchip.planners.joint.large_tiles import larger, with_large_tiles
from onchip.planners.limits import NO_LIMITS
from onchip.planners.nests.widening import places, tile_at
from onchip.plans import Group, Nest, Plan
from oracles.fusion_cases import random_maps
from timed_plans import TILES, WORDED, timed_plan

ANY = Chip("any", 1)


def again(plan: Plan) -> Plan:
    """The plan with the figures that its program has."""
    r = plan.result
    return certify(
        plan.network,
        plan.chip,
        plan.budget,
        plan.program,
        status="feasible",
        lower_bound_bytes=r.lower_bound_bytes,
        dram_lower_bound_bytes=r.dram_lower_bound_bytes,
        seconds=0.0,
        groups=plan.groups,
    )


def small(room: int) -> Plan:
    """The worked example with the smallest tiles, in so many bytes."""
    lines = "keep x z\nfor f 1\n  keep A B\n  run up slices 2:1 0:1\n  run down slices 1:1 0:1"
    nest, _ = nest_of(WORDED, lines.splitlines())
    return replace(timed_plan(WORDED.network, [nest], [["up", "down"]]), budget=room)


@pytest.mark.parametrize("room", [44, 60, 80, 200])
def test_tiles_grow_as_far_as_the_room_goes(room: int) -> None:
    plan = again(small(room))
    wide = again(with_large_tiles(plan, ANY, NO_LIMITS))
    check(wide)
    assert wide.result.dram_bytes == plan.result.dram_bytes
    [group], axes = wide.groups, axes_of(WORDED.network, (0, 1))
    assert isinstance(axes, GroupAxes)
    assert isinstance(group.tiling, Nest)
    assert group.scratch_bytes <= room
    sizes = {cut.name: cut.axes for cut in axes.operators}
    found = [tile_at(group.tiling, sizes, place) for place in places(group.tiling.body)]
    assert all(tile == size for tile, size, _ in found) == (room >= 80)


@pytest.mark.parametrize("seed", range(20))
def test_plans_of_fewest_bytes_have_no_tile_that_may_be_twice_as_large(seed: int) -> None:
    """Plans of random maps, with windows: no group of them grows any further."""
    random = Random(seed)
    network = random_maps(random)
    budget = random.randint(40, 400)
    try:
        made = onchip.plan(network, Chip("c", 1), budget, fuse=True)
    except Infeasible:
        return
    check(made)
    once = again(made)
    assert with_large_tiles(once, ANY, NO_LIMITS).groups == made.groups


def test_more_never_crosses_for_larger_tiles() -> None:
    """Two turns of f hold half of A and of B; with z streamed out in each turn one turn stores it once."""
    lines = "keep x\nfor f 3\n  keep A B z\n  run up\n  run down"
    nest, _ = nest_of(WORDED, lines.splitlines())
    group = Group("g", ("up", "down"), 0, tiling=nest)
    network = WORDED.network
    before = nested(network, group, (0, 1), None, 1).moved
    grown = larger(network, group, (0, 1), {0, 1, 2}, 1_000)
    assert nested(network, grown, (0, 1), None, 1).moved <= before


def test_fewer_bytes_that_cross_stand_in_the_program() -> None:
    """A search that the clock ends may leave a nest that stores and reads sums again: larger tiles do not."""
    lines = "keep x\nfor f 3\n  keep A B z\n  run up\n  run down"
    nest, _ = nest_of(WORDED, lines.splitlines())
    plan = again(replace(timed_plan(WORDED.network, [nest], [["up", "down"]]), budget=1_000))
    wide = again(with_large_tiles(plan, ANY, NO_LIMITS))
    check(wide)
    assert wide.result.dram_bytes < plan.result.dram_bytes


def strided(channels: tuple[int, int], side: int) -> Network:
    """A convolution of one pixel that strides by two, a byte an element."""
    read, made = (1, channels[0], side, side), (1, channels[1], -(-side // 2), -(-side // 2))
    conv = Geometry("conv", read, made, (1, 1), (2, 2), (0, 0, 0, 0), (1, 1))
    tensors = [("x", prod(read), "input"), ("y", prod(made), "activation")]
    spec = OperatorSpec("c", "Conv", ["x"], ["y"], prod(channels), geometry=conv)
    return Network.build("n", tensors, [spec], ["y"])  # type: ignore[arg-type]


@pytest.mark.parametrize("side", [8, 9])
@pytest.mark.parametrize("channels", [(8, 32), (8, 64), (16, 64)])
@pytest.mark.parametrize("parts", [(64, 64), (64, 128), (32, 64)])
def test_nothing_grows_beyond_a_part_of_the_buffer(
    parts: tuple[int, int], channels: tuple[int, int], side: int
) -> None:
    """Blocks on such a chip have as many weights as their part takes, though there is room besides."""
    buffer = SplitBuffer(parts[0], parts[0], parts[1])
    chip = Chip("split", 1, scratchpad_bytes=buffer.bytes, buffer=buffer)
    made = onchip.plan(strided(channels, side), chip, fuse=True)
    check(made)
    blocks = fuse(strided(channels, side), chip)
    assert made.result.dram_bytes == blocks.dram_bytes
    assert made.result.status == "optimal"


def test_a_bound_is_no_higher_than_what_a_larger_nest_moves() -> None:
    """Blocks made for parts become nests that two window loops have, a family that no search looks at."""
    buffer = SplitBuffer(64, 64, 64)
    split = Chip("split", 1, scratchpad_bytes=buffer.bytes, buffer=buffer)
    made = onchip.plan(strided((8, 64), 9), split, fuse=True)
    wide = with_large_tiles(made, ANY, NO_LIMITS)
    assert wide.result.dram_bytes < made.result.dram_bytes
    assert again(wide).result.dram_bytes == wide.result.dram_bytes == wide.result.dram_lower_bound_bytes


def test_on_a_chip_with_rates_of_tiles_the_plan_of_fewest_bytes_has_a_time() -> None:
    """Whole tensors fit and nothing can move less; but whole operators have no times there."""
    chip = Chip("example", 1, "int8", tiles=TILES)
    made = onchip.plan(WORDED.network, chip, 1_000)
    check(made)
    assert made.result.latency_picoseconds is not None
    assert made.result.status == "optimal"
    assert made.result.dram_bytes == onchip.plan(WORDED.network, Chip("c", 1), 1_000).result.dram_bytes
