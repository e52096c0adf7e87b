"""Chips with a buffer for weights and two for feature maps: each part binds, in both cost models alike."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.machines.chip import Chip, SplitBuffer, load_chip
from onchip.network import Geometry, Network, OperatorSpec
from onchip.network.access import Access
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.cost import GroupCost, group_cost, least_scratch
from onchip.planners.fusion.fuse import fuse
from onchip.planners.fusion.rows import bands_of, walked_rows
from onchip.planners.fusion.search import Fuser
from onchip.planners.fusion.streams import buffer_bytes
from onchip.plans import Blocks
from oracles.fusion_cases import acyclic_partitions, cheapest_partition, random_maps

OPTIONS = {
    "batch_weights": ("per-image", "held", "shared"),
    "isoa": ("channelwise", "channelwise", "off"),
    "residency": ("partial", "partial", "all", "none"),
    "weight_tile": (True, True, False),
    "blocks": ("best", "fallback"),
}


def split_problem(rng: Random, most: int = 6) -> FusionProblem:
    network = random_maps(rng, most)
    options = {key: rng.choice(values) for key, values in OPTIONS.items()}
    chosen = FusionOptions(channel_tile=rng.choice((2, 3)), **options)  # type: ignore[arg-type]
    problem = FusionProblem.of(network, load_chip("generic"), chosen, 1)
    maps = int(sum(t.bytes for t in network.tensors) / problem.batch * rng.choice((0.1, 0.3, 0.6, 1)))
    weights = int(network.weight_bytes * rng.choice((0.1, 0.3, 0.6, 1)))
    return replace(
        problem,
        operators=tuple(replace(op, boxes=()) for op in problem.operators),  # they were made for no parts
        alignment=rng.choice((1, 4)),
        budget=int((maps + weights) * rng.choice((0.8, 1, 1, 1))) + 8,
        maps_budget=maps + 8,
        weights_budget=weights,
    )


def maps_bytes(problem: FusionProblem, cost: GroupCost) -> int:
    """What the feature maps of a group take of its scratchpad."""
    bands = bands_of(problem, cost.members)
    if bands is None:
        return cost.scratch_bytes
    if cost.blocks is not None:
        op = problem.operators[cost.members.bit_length() - 1]
        assert op.access is not None
        return cost.scratch_bytes - problem.round_up(block_weights(op.access, cost.blocks))
    rows = walked_rows(problem, bands, cost.streamed, cost.rows)
    return sum(
        buffer_bytes(problem, x, rows[x], cost.images, bool(cost.streamed >> x & 1)) for x in bands.tensors
    )


def block_weights(access: Access, blocks: Blocks) -> int:
    """One byte an element, and a bias of one an output channel or none."""
    operand, weights = access.operands[0], access.weights
    taps = operand.rows.taps * operand.columns.taps
    ins, outs = access.kernel.inputs, access.kernel.outputs
    bias = weights - taps * ins * outs if weights else 0
    deep = ins if blocks.keep_weights else min(blocks.channels, ins)
    matrix = taps * deep * blocks.output_channels if weights else 0
    return matrix - (-bias * blocks.output_channels // outs)


@pytest.mark.parametrize("seed", range(60))
def test_both_models_keep_to_the_parts(seed: int) -> None:
    rng = Random(seed)
    problem = split_problem(rng)
    fuser, whole = Fuser(problem), Fuser(replace(problem, maps_budget=1 << 40, weights_budget=1 << 40))
    convex = sorted({g for groups in acyclic_partitions(problem.network) for g in groups})
    for members in rng.sample(convex, min(len(convex), 15)):
        expected, found = group_cost(problem, members), fuser.cost(members)
        assert (found and found.dram_bytes) == (expected and expected.dram_bytes), bin(members)
        together = whole.cost(members)
        for cost in (found, expected):
            if cost is not None:
                maps = maps_bytes(problem, cost)
                assert maps <= problem.maps_budget
                assert cost.scratch_bytes - maps <= problem.weights_budget
                assert cost.scratch_bytes <= problem.budget
                assert together is not None
                if cost.blocks is None or problem.options.blocks == "best":
                    assert together.dram_bytes <= cost.dram_bytes
        if together is not None and (found is None or together.dram_bytes < found.dram_bytes):
            # Only a part can be why: what runs in the whole buffer does not fit one of them.
            maps = maps_bytes(problem, together)
            parts_fit = maps <= problem.maps_budget
            assert not parts_fit or together.scratch_bytes - maps > problem.weights_budget


@pytest.mark.parametrize("seed", range(40))
def test_the_search_within_parts_equals_brute_force(seed: int) -> None:
    problem = split_problem(Random(500 + seed))
    fuser = Fuser(problem)

    def price(members: int) -> int | None:
        found = group_cost(problem, members)
        return found and found.dram_bytes

    cheapest = cheapest_partition(problem.network, price)
    if cheapest is None:
        with pytest.raises(Infeasible):
            fuser.best()
        return
    found = fuser.best()
    assert found.complete
    assert found.dram_bytes == found.lower_bound_bytes == cheapest


def pointwise(batch: int = 1) -> Network:
    """A convolution of one pixel from 16 channels to 16 on maps of 8 x 8, a byte an element."""
    shape = (batch, 16, 8, 8)
    conv = Geometry("conv", shape, shape, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1))
    size = batch * 1024
    tensors = [("x", size, "input"), ("y", size, "activation")]
    return Network.build("n", tensors, [OperatorSpec("c", "Conv", ["x"], ["y"], 256, geometry=conv)], ["y"])  # type: ignore[arg-type]


def split_chip(images: int, weights: int) -> Chip:
    buffer = SplitBuffer(images, images, weights)
    return Chip("split", 1, scratchpad_bytes=buffer.bytes, buffer=buffer)


BANDS = FusionOptions(channel_tile=16, isoa="off", blocks="fallback")


@pytest.mark.parametrize(
    ("images", "weights", "dram"),
    [
        (256, 256, 2048 + 256),  # two rows of each map, all weights
        (128, 256, 2048 + 256),  # one row of each
        (128, 512, 2048 + 256),
        (1024, 64, 2048 + 256),  # all rows: a tile of weights is enough, they come once
        (512, 64, 2048 + 2 * 256),  # two bands, and the weights do not fit their part
        (256, 400, 2048 + 256),
        (256, 64, 2048 + 4 * 256),
    ],
)
def test_weights_that_do_not_fit_their_part_come_for_every_band(images: int, weights: int, dram: int) -> None:
    options = replace(BANDS, channel_tile=8)  # a tile of 8 x 8 weights
    made = fuse(pointwise(), split_chip(images, weights), options=options)
    assert made.dram_bytes == dram
    assert made.plan is not None
    assert check(made.plan).dram_bytes == dram
    [group] = made.plan.groups
    assert group.scratch_bytes <= 2 * images + weights


def test_what_fits_only_beyond_a_part_is_refused_with_that_part() -> None:
    network = pointwise()
    opaque = Network.build(
        "n",
        [(t.name, t.bytes, t.kind) for t in network.tensors],
        [OperatorSpec("c", "Conv", ["x"], ["y"], 256)],
        ["y"],
    )
    with pytest.raises(Infeasible) as refused:
        fuse(opaque, split_chip(512, 4096))
    assert (refused.value.needs, refused.value.has) == (2048, 1024)
    assert fuse(opaque, split_chip(1024, 0)).dram_bytes == 2048 + 256
    problem = FusionProblem.of(network, split_chip(512, 4096), BANDS, 5120)
    assert least_scratch(problem, 0) == least_scratch(replace(problem, maps_budget=0, weights_budget=0), 0)


def test_the_image_buffers_of_shidiannao_bind_together() -> None:
    problem = FusionProblem.of(pointwise(), load_chip("shidiannao"), FusionOptions(), 1 << 18)
    assert (problem.maps_budget, problem.weights_budget) == (128 * 1024, 128 * 1024)
    whole = FusionProblem.of(pointwise(), load_chip("optimus"), FusionOptions(), 1 << 18)
    assert min(whole.maps_budget, whole.weights_budget) >= whole.budget
