"""The arena's best fit, and the two rules: Belady's takes the furthest, the greedy one the least traffic."""

from __future__ import annotations

from itertools import chain, combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.comparison.baselines.arena import Arena
from onchip.comparison.baselines.replacement import Evictable, belady, least_traffic


def arena_of(capacity: int, *held: tuple[int, int]) -> Arena:
    """An arena with (address, size) held by 0, 1, ..."""
    arena = Arena(capacity)
    for item, (address, size) in enumerate(held):
        arena.hold(item, address, size)
    return arena


def test_best_fit_takes_the_smallest_gap_that_is_large_enough() -> None:
    arena = arena_of(100, (10, 10), (24, 6), (33, 7), (50, 10))  # gaps of 10, 4, 3, 10, then 40 at the end
    assert arena.fit(3) == 30
    assert arena.fit(4) == 20
    assert arena.fit(5) == 0  # two of 10: the lower
    assert arena.fit(11) == 60
    assert arena.fit(40) == 60
    assert arena.fit(41) is None


def test_the_end_is_taken_only_when_no_gap_will_do() -> None:
    assert arena_of(12, (0, 1), (9, 1)).fit(2) == 1  # the room of 2 behind the last would be tighter


def test_what_is_released_is_free_again() -> None:
    arena = arena_of(10, (0, 5), (5, 5))
    assert arena.fit(1) is None
    copy = arena.copy()
    copy.release(0)
    assert copy.fit(5) == 0
    assert arena.fit(5) is None
    assert 0 in arena
    assert 0 not in copy


def test_belady_takes_the_furthest_next_use_whatever_it_costs() -> None:
    arena = arena_of(30, (0, 10), (10, 10), (20, 10))
    may_go = {0: Evictable(5, 10), 1: Evictable(9, 20), 2: Evictable(7, 10)}
    assert belady(arena, 1, may_go) == (1,)
    del may_go[1]
    assert belady(arena, 1, may_go) == (2,)
    assert belady(arena, 1, {}) == ()


def test_belady_takes_the_largest_of_equals() -> None:
    arena = arena_of(30, (0, 10), (10, 12), (22, 8))
    assert belady(arena, 1, {i: Evictable(4, 1) for i in range(3)}) == (1,)


def random_arena(rng: Random) -> tuple[Arena, dict[int, Evictable]]:
    """Up to seven tensors with gaps between, some of which may not go."""
    arena, top, may_go = Arena(0), 0, {}
    for item in range(rng.randint(0, 7)):
        top += rng.choice((0, 0, 1, 2, 3))
        size = rng.randint(1, 6)
        arena.hold(item, top, size)
        top += size
        if rng.random() < 0.8:
            may_go[item] = Evictable(rng.randint(1, 9), size * rng.choice((1, 2)))
    arena.capacity = top + rng.randint(0, 3)
    return arena, may_go


@given(st.randoms(use_true_random=False), st.integers(1, 20))
def test_the_greedy_rule_finds_the_cheapest_set_that_makes_room(rng: Random, size: int) -> None:
    arena, may_go = random_arena(rng)
    if size > arena.capacity or arena.fit(size) is not None:
        return

    def makes_room(gone: tuple[int, ...]) -> bool:
        left = arena.copy()
        for item in gone:
            left.release(item)
        return left.fit(size) is not None

    sets = chain.from_iterable(combinations(may_go, n) for n in range(len(may_go) + 1))
    costs = [sum(may_go[item].traffic for item in gone) for gone in sets if makes_room(gone)]
    chosen = least_traffic(arena, size, may_go)
    if not costs:
        assert chosen == ()
        return
    assert makes_room(chosen)
    assert sum(may_go[item].traffic for item in chosen) == min(costs)


@pytest.mark.parametrize("rule", [belady, least_traffic])
def test_a_rule_names_only_who_may_go(rule: object) -> None:
    rng = Random(7)
    for _ in range(200):
        arena, may_go = random_arena(rng)
        if arena.fit(4) is None:
            assert set(rule(arena, 4, may_go)) <= set(may_go)  # type: ignore[operator]
