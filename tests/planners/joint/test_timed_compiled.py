"""The compiled time of nests against the checker's, and the compiled search for fast ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from nest_networks import network_of
from onchip.machines.tile_rates import ArraySide
from onchip.network import bits
from onchip.planners.joint.timed.compiled import Compiled, compiled_for
from onchip.planners.joint.timed.pricing import TimedGroup
from onchip.plans import Leaf, Nest
from oracles.compiled_trial import compiled_trial
from timed_plans import TILES, WORDED, example

NETWORK = WORDED.network
STREAMED = frozenset(bits(NETWORK.input_roots | NETWORK.output_roots))


def compiled() -> Compiled:
    """The worked example's two operators."""
    found = compiled_for(NETWORK, (0, 1), STREAMED, TILES)
    assert found is not None
    return found


def test_random_nests_take_the_checkers_time_bytes_and_scratch() -> None:
    found = Counter[str]()
    for seed in range(60):
        found += compiled_trial(seed)
    assert found["equal"] > 40
    assert min(found[kind] for kind in ("with windows", "with a ring", "with copies", "refused by both")) > 0


def test_the_worked_example_has_its_time() -> None:
    found = compiled().price(example())
    assert found is not None
    assert (found.time, found.bytes, found.scratch) == (158_000, 80, 48)


def test_a_search_finds_no_slower_nests_than_it_starts_with_and_all_of_them_are_legal() -> None:
    group = TimedGroup(NETWORK, (0, 1), STREAMED, TILES)
    for room in (48, 72, 200):
        front = compiled().search([example()], room, 150_000)
        times = [one.time for one in front]
        assert times == sorted(times)
        assert all(one.scratch <= room for one in front)
        scratches = [one.scratch for one in front]
        assert scratches == sorted(scratches, reverse=True)
        for one in front:
            judged = group.priced(one.nest, room)
            assert judged is not None
            assert (judged.time, judged.bytes, judged.scratch) == (one.time, one.bytes, one.scratch)
        if room >= 72:
            assert times[0] <= 113_000


@pytest.mark.parametrize(
    ("clock", "sides"), [(10**9, TILES.sides), (10**18 - 1, TILES.sides), (10**18 - 1, ())]
)
def test_more_cycles_than_can_be_counted_are_no_time(clock: int, sides: tuple[ArraySide, ...]) -> None:
    """Blocks of so many cycles, on a clock so fast that a step's time could be counted and its cycles not."""
    tiles = replace(TILES, clock_hertz=clock, block_cycles=10**18 - 1, sides=sides)
    core = compiled_for(NETWORK, (0, 1), STREAMED, tiles)
    assert core is not None
    found = core.price(Nest((Leaf("up"), Leaf("down"))))
    if found is not None:
        judged = TimedGroup(NETWORK, (0, 1), STREAMED, tiles).priced(found.nest, 10**6)
        assert judged is not None
        assert found.time == judged.time


def test_a_search_repeats_itself() -> None:
    first, again = (compiled().search([], 72, 60_000, seed=7) for _ in range(2))
    assert first == again


def test_nothing_is_found_where_nothing_fits() -> None:
    assert compiled().search([example()], 1, 20_000) == []


def test_a_search_ends_where_nothing_can_be_changed() -> None:
    """One operator of one element: no loop, no tile, no order to choose."""
    network = network_of("m=1", ["a Relu: h(m) = x(m)"], ["x"], ["h"]).network
    compiled = compiled_for(network, (0,), frozenset((0, 1)), TILES)
    assert compiled is not None
    found = compiled.search([Nest((Leaf("a"),))], 1_000, 200_000, 0)
    assert found
    assert found[0].bytes == 2
