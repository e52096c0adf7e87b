"""The cost model against what the checker derives, and against trying everything."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.machines.chip import load_chip
from onchip.network import Network, bits
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.blocks import best_blocks
from onchip.planners.fusion.cost import bands_cost, least_scratch
from onchip.planners.fusion.fuse import fuse
from onchip.planners.fusion.residency import Weights, choose
from onchip.planners.fusion.rows import bands_of, buffer_rows, overlaps, rows_of, walk
from onchip.planners.fusion.search import Fuser
from onchip.planners.fusion.streams import candidates, legal
from oracles.fusion_cases import acyclic_partitions, random_maps, shaped
from oracles.fusion_cost import blocks_by_trying, cost_by_trying, streamable

EXECUTABLE = {
    "batch_weights": ("per-image", "held"),
    "isoa": ("channelwise", "channelwise", "off"),
    "halo": ("lines", "lines", "paper"),
    "residency": ("partial", "partial", "all", "none"),
    "blocks": ("best", "fallback"),
    "search": ("exact", "exact", "algorithm1", "online"),
}


def problem_of(network: Network, budget: int, **options: object) -> FusionProblem:
    return FusionProblem.of(network, load_chip("generic"), FusionOptions(**options), budget)  # type: ignore[arg-type]


def groups_of(problem: FusionProblem, rng: Random, most: int) -> list[int]:
    """Some convex groups without opaque operators."""
    found = sorted({g for groups in acyclic_partitions(problem.network) for g in groups})
    found = [g for g in found if bands_of(problem, g) is not None]
    return rng.sample(found, min(most, len(found)))


def random_streams(problem: FusionProblem, members: int, rng: Random) -> int:
    bands = bands_of(problem, members)
    assert bands is not None
    return sum(1 << x for x in bits(candidates(problem, bands)) if rng.random() < 0.5)


@pytest.mark.parametrize("seed", range(40))
def test_buffers_hold_what_every_band_needs(seed: int) -> None:
    rng = Random(seed)
    problem = problem_of(random_maps(rng, 6), 1, channel_tile=2)
    for members in groups_of(problem, rng, 10):
        bands = bands_of(problem, members)
        assert bands is not None
        rows = rows_of(problem, bands.tensors)
        streamed = random_streams(problem, members, rng)
        for t in range(1, bands.longest + 1):
            most = buffer_rows(problem, bands, overlaps(problem, bands, streamed), t)
            last = dict.fromkeys(bands.tensors, 0)
            for band in walk(problem, bands, streamed, t):
                assert all(high - low <= most[x] for x, (_, low, high) in band.items())
                last = {x: high for x, (_, _, high) in band.items()}
            assert all(last[x] == rows[x] for x in bits(bands.escaping))


def test_a_band_may_begin_late() -> None:
    """Padding at the top: the first band needs nothing of what is padded, and the second twice as much."""
    rows = [
        ("y", "conv", ["x"], (2, 16, 4), {"weights": 4}),
        ("seven", "conv", ["y"], (2, 10, 4), {"kernel": 7, "weights": 4}),
        ("one", "conv", ["y"], (2, 16, 4), {"weights": 4}),
        ("three", "conv", ["one"], (2, 16, 4), {"kernel": 3, "padding": 1, "weights": 4}),
        ("padded", "pad", ["three"], (2, 18, 6), {"padding": 1}),
    ]
    problem = problem_of(shaped("late", rows, (2, 16, 4), 1), 1)
    bands = bands_of(problem, 0b11111)
    assert bands is not None
    y = problem.network.tensor_id["y"]
    held = buffer_rows(problem, bands, overlaps(problem, bands, 0), 1)
    needed = max(high - low for band in walk(problem, bands, 0, 1) for _, low, high in [band[y]])
    assert needed == held[y] == 8


@pytest.mark.parametrize("seed", range(40))
def test_what_may_be_streamed_is_what_the_checker_proves(seed: int) -> None:
    rng = Random(100 + seed)
    problem = problem_of(random_maps(rng, 7), 1, channel_tile=1)
    for members in groups_of(problem, rng, 12):
        bands = bands_of(problem, members)
        assert bands is not None
        streamed = sum(1 << x for x in bands.tensors if rng.random() < 0.5)
        assert legal(problem, bands, streamed) == streamable(problem, members, streamed)


@pytest.mark.parametrize(
    "seed",
    [
        *(1, 2, 4, 8, 11),
        *(pytest.param(s, marks=pytest.mark.slow) for s in range(12, 18)),
        *(pytest.param(s, marks=pytest.mark.campaign) for s in range(18, 30)),
    ],
)
def test_a_group_costs_the_least_of_all_ways_to_run_it(seed: int) -> None:
    """As much as the cheapest way that the checker accepts; the compiled search says the same."""
    rng = Random(200 + seed)
    how = {key: rng.choice(EXECUTABLE[key]) for key in ("residency",)}
    tile = rng.choice((2, 3))
    problem = problem_of(random_maps(rng, 5), 1, batch_weights="held", channel_tile=tile, **how)
    small = [g for g in groups_of(problem, rng, 30) if g.bit_count() <= 3 and _tensors(problem, g) <= 5][:3]
    for members in small:
        least = least_in_bands(problem, members)
        problem = replace(problem, budget=rng.choice((least, least + 7, 2 * least, 4 * least)))
        found = bands_cost(problem, members)
        assert found is not None
        if problem.options.residency == "partial":
            tried = cost_by_trying(problem, members)
            assert tried == found.dram_bytes
            if members.bit_count() > 1:  # alone it may do better in blocks
                compiled = Fuser(problem).cost(members)
                assert compiled is not None
                assert compiled.dram_bytes == tried


def least_in_bands(problem: FusionProblem, members: int) -> int:
    low, high = 0, 1 << 30
    while low < high:
        middle = (low + high) // 2
        if bands_cost(replace(problem, budget=middle), members) is None:
            low = middle + 1
        else:
            high = middle
    return low


def _tensors(problem: FusionProblem, members: int) -> int:
    bands = bands_of(problem, members)
    return 99 if bands is None else len(bands.tensors)


@pytest.mark.parametrize("seed", range(25))
def test_blocks_are_the_best_of_all_blocks(seed: int) -> None:
    rng = Random(300 + seed)
    problem = problem_of(random_maps(rng, 4), 1 << 30, channel_tile=rng.choice((1, 2)))
    for v, op in enumerate(problem.operators):
        made = problem.maps[op.outputs[0]]
        if not op.windowed or made is None or made.channels * made.rows * made.columns > 400:
            continue
        least = least_scratch(problem, v)
        tight = replace(problem, budget=rng.choice((least, 2 * least, 5 * least)))
        found = best_blocks(tight, v)
        slices = (1, 2)[: problem.channel_tile]
        tried = blocks_by_trying(tight, v, slices)
        if found is None:
            assert tried is None
            continue
        moved = found.input_bytes + found.weight_bytes + problem.network.tensors[op.outputs[0]].bytes
        whole = found.blocks.channels >= min(
            problem.channel_tile, problem.maps[op.operands[0].tensor].channels
        )  # type: ignore[union-attr]
        assert tried is not None
        assert tried <= moved
        if problem.channel_tile == 1 and whole:
            assert tried == moved


def test_the_residents_are_the_best_of_all() -> None:
    for seed in range(300):
        rng = Random(seed)
        weights = []
        for v in range(rng.randint(0, 6)):
            size = rng.randint(1, 20)
            weights.append(Weights(v, size, size + rng.randint(0, 3), rng.randint(0, size)))
        room = rng.randint(0, 60)
        best: int | None = None
        for n in range(len(weights) + 1):
            for kept in combinations(weights, n):
                others = [w for w in weights if w not in kept]
                size = sum(w.resident for w in kept) + max((w.tile for w in others), default=0)
                if size <= room:
                    refilled = sum(w.bytes for w in others)
                    best = refilled if best is None else min(best, refilled)
        found = choose(weights, room, "partial")
        assert (None if found is None else found.refilled_bytes) == best
        if found is not None:
            assert found.scratch_bytes <= room


@pytest.mark.parametrize(
    "seed", [*range(25), 154, 209, 228, *(pytest.param(s, marks=pytest.mark.slow) for s in range(300, 500))]
)
def test_every_plan_is_certified_with_the_cost_it_was_planned_for(seed: int) -> None:
    rng = Random(400 + seed)
    network = random_maps(rng, 7)
    options = {key: rng.choice(values) for key, values in EXECUTABLE.items()}
    options["channel_tile"] = rng.choice((1, 2, 3, 4))
    chip = replace(load_chip("generic"), alignment_bytes=rng.choice((1, 1, 4)))
    largest = sum(t.bytes for t in network.tensors) + network.weight_bytes
    budget = max(64, int(largest * rng.choice((0.05, 0.1, 0.2, 0.4, 1))))
    chosen = FusionOptions(**options)  # type: ignore[arg-type]
    problem = FusionProblem.of(network, chip, chosen, budget)
    if any(least_scratch(problem, v) > budget for v in range(len(network.operators))):
        with pytest.raises(Infeasible):
            fuse(network, chip, budget, chosen)
        return
    found = fuse(network, chip, budget, chosen)
    if options["halo"] != "paper":
        assert found.plan is not None
    if found.plan is not None:
        result = check(found.plan)
        assert result.dram_bytes == found.dram_bytes >= found.lower_bound_bytes
        assert result.peak_bytes <= budget
