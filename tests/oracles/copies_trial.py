"""One random nest: its best copies by branch and bound, and by looking at all; and its bound."""

from __future__ import annotations

from itertools import product
from random import Random

from nest_networks import network_of
from onchip.check.nest_clock import tree_for, work_of
from onchip.check.nest_durations import Durations
from onchip.check.nest_times import NestTimes
from onchip.check.nests import leaving_of
from onchip.check.rules import Broken
from onchip.machines.tile_rates import TileRates
from onchip.network import Network
from onchip.planners.joint.timed.bound import least_picoseconds
from onchip.planners.joint.timed.copies import best_copies
from onchip.planners.joint.timed.pricing import Opened, TimedGroup
from oracles.nest_cases import random_nest
from oracles.nest_clock_trial import looped, random_tiles
from oracles.nest_trial import operands_of

__all__ = ["bound_trial", "copies_trial", "random_opened"]


def random_opened(random: Random) -> Opened | None:
    """One product, or two after each other, in a random nest on a random chip; None if it is not legal."""
    sizes = [random.randint(1, 4) for _ in range(4)]
    sizes[random.randrange(4)] = random.randint(5, 12)
    lines = ["one MatMul+bias: h(m,f) = x(m,d) A(d,f) c(f)", "two MatMul: z(m,y) = h(m,f) B(f,y)"]
    count = random.choice((1, 1, 2))
    words = " ".join(f"{letter}={size}" for letter, size in zip("mfdy", sizes, strict=True))
    network: Network = network_of(words, lines[:count], ["x"], ["h", "z"][count - 1 : count]).network
    axes, operands, leaving = operands_of(network)
    outside = {b.name: b.maker is not None for b in axes.buffers if b.maker is None or b.tensor in leaving}
    make = looped if count == 1 else random_nest
    nest = make(random, axes, outside)
    tiles: TileRates = random_tiles(random)
    alignment = random.choice((1, 4))
    ids = tuple(cut.operator for cut in axes.operators)
    group = TimedGroup(network, ids, frozenset(operands), tiles, alignment, random.choice((None, 4)))
    assert leaving_of(network, ids) == frozenset(leaving)
    return group.opened(nest)


def price(opened: Opened, copies: tuple[int, ...]) -> tuple[int, int] | None:
    """The time and the scratch of a nest with copies, derived anew from its words; None if it is refused."""
    group, nest = opened.group, opened.with_copies(copies)
    try:
        law = group.law(nest)
    except Broken:
        return None
    tree = tree_for(group.network, group.group(nest), law.layout)
    durations = Durations(law.layout, group.tiles, work_of(group.network, law.layout), group.accumulator)
    times = NestTimes(group.tiles, walk_all=True)
    first = group.tiles.first("loads"), group.tiles.first("stores")
    times.run(tree, durations, lambda _: first)
    assert law.layout.need == opened.need(copies)
    return times.finish(), law.layout.extent


def copies_trial(seed: int) -> bool:
    """Compare the best copies in some rooms with all there are; return whether there was a choice."""
    random = Random(seed)
    opened = random_opened(random)
    if opened is None or not 1 <= len(opened.units) <= 6:
        return False
    every = [
        found for copies in product((1, 2), repeat=len(opened.units)) if (found := price(opened, copies))
    ]
    rooms = sorted({scratch for _, scratch in every})
    for room in {rooms[0] - 1, rooms[0], random.choice(rooms), rooms[-1]}:
        best = min((time for time, scratch in every if scratch <= room), default=None)
        found = best_copies(opened, room, more=False)
        assert (None if found is None else found.priced.time) == best, (seed, room, best)
        again = best_copies(opened, room)
        assert (again is None) == (best is None)
        assert again is None or best is None or again.priced.time <= best
    return len(rooms) > 1


def bound_trial(seed: int) -> bool:
    """Hold a random nest's time against the bound of its network; return whether there was one."""
    opened = random_opened(Random(seed))
    if opened is None:
        return False
    group = opened.group
    least = sum(t.bytes for t in group.network.tensors if group.network.input_roots >> t.id & 1)
    least += sum(t.bytes for t in group.network.tensors if group.network.output_roots >> t.id & 1)
    least += group.network.weight_bytes
    bound = least_picoseconds(group.network, group.tiles, least)
    time = opened.time([1] * len(opened.units))
    assert time is not None
    assert opened.floor() <= time
    assert bound <= time
    return True
