"""The compiled time of one random nest against the checker's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from random import Random

from onchip.check.nest_clock import work_of
from onchip.check.nest_layouts import disagreement
from onchip.check.nest_times import NestTimes, NoTimes
from onchip.check.nest_walk import Moving, tree_of
from onchip.check.nests import nested
from onchip.check.rules import Broken
from onchip.machines.tile_rates import TileRates
from onchip.planners.joint.timed.compiled import Compiled
from onchip.planners.joint.timed.lying import Lying, durations_of
from onchip.plans import Leaf, Loop, Nest, TensorLayout
from oracles.band_cases import banded_nest, banded_network
from oracles.nest_cases import group_of, groups_network, random_nest, random_whole
from oracles.nest_clock_trial import (
    long_network,
    looped,
    random_layouts,
    random_tiles,
    random_ways,
    randomly_late,
    without_copies,
)
from oracles.nest_trial import operands_of, writes_uncut

__all__ = ["compiled_trial"]


def in_loops(nest: Nest) -> Nest:
    """The nest with the slices of its leaves as loops."""

    def item(one: Loop | Leaf) -> Loop | Leaf:
        if isinstance(one, Loop):
            return replace(one, body=tuple(map(item, one.body)))
        found: Loop | Leaf = replace(one, slices=())
        for axis, tile in reversed(one.slices):
            found = Loop(((one.operator, axis),), tile, (found,))
        return found

    return replace(nest, body=tuple(map(item, nest.body)))


def compiled_trial(seed: int) -> Counter[str]:
    """Try one nest of one group; return what it was. Raises `AssertionError` where the two differ."""
    random = Random(seed)
    tiles = random_tiles(random)
    kind = random.choice(("banded", "any", "any", "long"))
    if kind == "long":
        network = long_network(random)
    elif kind == "banded":
        network = banded_network(random)
    else:
        network = groups_network(random, most=3, windows=random.random() < 0.6)
    axes, operands, leaving = operands_of(network)
    if writes_uncut(axes):
        return Counter(["an output that is not cut"])
    whole = random_whole(random, sorted(operands))
    outside = {
        b.name: b.maker is not None
        for b in axes.buffers
        if b.tensor not in whole and (b.maker is None or b.tensor in leaving)
    }
    if kind == "long" and len(axes.operators) == 1:
        nest = looped(random, axes, outside)
    else:
        nest = (banded_nest if kind == "banded" else random_nest)(random, axes, outside)
    nest = in_loops(random_ways(random, nest, tiles))
    alignment, accumulator = random.choice((1, 4)), random.choice((None, None, 2, 4))
    ids = [cut.operator for cut in axes.operators]
    layouts: dict[int, TensorLayout] = {}
    if random.random() < 0.5:
        with suppress(Broken):
            law = nested(network, group_of(network, nest), ids, operands - whole, alignment, accumulator)
            layouts = random_layouts(random, law.layout, agreed=random.random() < 0.7)
    compiled = Compiled(
        network,
        axes,
        tiles,
        [n for n, b in enumerate(axes.buffers) if b.maker is not None and b.tensor in leaving],
        [
            n
            for n, b in enumerate(axes.buffers)
            if b.tensor in whole and (b.maker is None or b.tensor in leaving)
        ],
        alignment=alignment,
        accumulator=accumulator,
        lying=Lying(layouts),
    )
    found = Counter[str]()
    for tried in dict.fromkeys((nest, randomly_late(nest, axes, leaving), without_copies(nest))):
        if compiled.item(tried) is None:
            return Counter(["a loop along no class of axes"])
        ours = compiled.price(tried)
        laid = tried if ours is None else ours.nest
        try:
            law = nested(network, group_of(network, laid), ids, operands - whole, alignment, accumulator)
        except Broken:
            law = None
        if law is None or disagreement(law.layout, layouts):
            assert ours is None, seed
            found["refused by both"] += 1
            continue
        tree = tree_of(laid, law.layout, leaving)
        clock, timed = NestTimes(tiles), True
        try:
            clock.run(
                tree,
                durations_of(law.layout, tiles, work_of(network, law.layout), accumulator, Lying(layouts)),
                _channels(tiles),
            )
        except NoTimes:
            timed = False
        if not timed:
            assert ours is None, seed
            continue
        time = clock.finish()
        if any(
            state != law.layout.places[one.number].crosses
            for one, state in zip(tree.moving, clock.states(), strict=True)
        ):
            assert ours is None, seed
            found["a buffer that nothing uses in some turn"] += 1
            continue
        if ours is None:
            item = compiled.item(tried)
            assert item is not None
            found[f"refused by the compiled code alone: {compiled.core.refusal(nest=item)}"] += 1
            continue
        moved = sum(law.crossing.values()) + law.weights
        assert (ours.time, ours.bytes, ours.scratch) == (time, moved, law.layout.extent), (
            seed,
            (ours.time, ours.bytes, ours.scratch),
            (time, moved, law.layout.extent),
        )
        assert (ours.work, list(ours.busy)) == (clock.totals[0].work, clock.totals[0].busy), seed
        again = compiled.price(tried, every_turn=True)
        assert again == ours, seed
        found["equal"] += 1
        found["with tensors in tiles"] += bool(layouts)
        found["with windows"] += bool(law.layout.windows)
        found["with a ring"] += any(place.ring is not None for place in law.layout.places)
        found["with copies"] += any(place.copies > 1 for place in law.layout.places)
        found["with late stores"] += any(home.late for home in law.layout.homes)
        found["with an operand replaced"] += any(home.guests for home in law.layout.homes)
        found["with spilled sums"] += any(
            any(b.count > 1 for b in one.sums) for one in tree.moving if one.stored
        )
    return found


def _channels(tiles: TileRates) -> Callable[[Moving], tuple[int, int]]:
    def channels(one: Moving) -> tuple[int, int]:
        home = one.home
        load = tiles.first("loads") if home.load is None else home.load
        return load, tiles.first("stores") if home.store is None else home.store

    return channels
