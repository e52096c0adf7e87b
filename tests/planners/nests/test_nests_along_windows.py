"""The search along windows finds what a walk over every nest of small groups finds, and what the law says."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from nest_groups import group_of, named
from onchip.network import Network
from onchip.planners.limits import NO_LIMITS
from onchip.planners.nests import NestRules, NestSearch, best_nest, group_key, widened
from onchip.plans.nest import Loop
from oracles.nest_cases import random_whole
from oracles.nest_trial import operands_of
from oracles.nest_windows import judged, least_scratch, nests_of, sliding_network

EXAMPLE = group_of("x=8 H=8 h=4", ["c1: h(H) = x(x@H:1:1:3)", "c2: y(h) = h(H@h:2:1:3)"])


@pytest.mark.parametrize(("room", "crossing"), [(7, 18), (8, 12), (16, 12)])
def test_two_convolutions(room: int, crossing: int) -> None:
    found = best_nest(EXAMPLE, named(EXAMPLE, "y"), (), room)
    assert found is not None
    assert found.bytes == crossing
    assert found.scratch <= room
    assert best_nest(EXAMPLE, named(EXAMPLE, "y"), (), 6) is None


def test_rings_are_said() -> None:
    found = best_nest(EXAMPLE, named(EXAMPLE, "y"), (), 9)
    assert found is not None
    (loop,) = found.nest.body
    assert isinstance(loop, Loop)
    assert set(loop.ring) == {"x", "h"}


def test_without_windows_along_loops_the_maps_lie_whole() -> None:
    assert best_nest(EXAMPLE, named(EXAMPLE, "y"), (), 15, windows=0) is None


def test_windows_are_in_the_key() -> None:
    other = group_of("x=8 H=8 h=4", ["c1: h(H) = x(x@H:1:1:3)", "c2: y(h) = h(H@h:2:0:3)"])
    assert group_key(EXAMPLE, [2]) != group_key(other, [2])


def drawn(random: Random, most: int, rows: int = 7) -> tuple[Network, list[int], frozenset[int]]:
    network = sliding_network(random, most, rows)
    axes, operands, leaving = operands_of(network)
    return (
        network,
        [n for n, b in enumerate(axes.buffers) if b.maker is not None and b.tensor in leaving],
        operands,
    )


def agrees_with_the_law(seed: int, rooms: int) -> None:
    random = Random(f"law{seed}")
    network, out, operands = drawn(random, 4)
    axes, _, _ = operands_of(network)
    whole = random_whole(random, sorted(operands)) if random.random() < 0.3 else frozenset()
    there, alignment = [n for n, b in enumerate(axes.buffers) if b.tensor in whole], random.choice((1, 1, 4))
    total = sum(b.bytes for b in axes.buffers)
    for room in (random.randint(1, total) for _ in range(rooms)):
        sums = random.choice((None, None, 3, 4))
        found = best_nest(
            axes, out, there, room, alignment=alignment, windows=random.choice((1, 2)), accumulator=sums
        )
        if found is None:
            continue
        law = judged(network, found.nest, operands - whole, alignment, sums)
        assert sum(law.crossing.values()) + law.weights == found.bytes, (seed, room)
        assert law.layout.need == found.scratch <= room, (seed, room)
        wide = judged(
            network,
            widened(axes, out, there, found.nest, room, alignment=alignment, accumulator=sums),
            operands - whole,
            alignment,
            sums,
        )
        assert wide.layout.need <= room, (seed, room)
        assert wide.crossing == law.crossing, (seed, room)


@pytest.mark.parametrize("seed", range(12))
def test_the_law_says_the_same(seed: int) -> None:
    agrees_with_the_law(seed, 2)


@pytest.mark.thorough
def test_the_law_says_the_same_of_many() -> None:
    for seed in range(100, 300):
        agrees_with_the_law(seed, 3)


def by_force(seed: str, most: int) -> bool:
    """Hold the search against every nest of a group; false if there are too many of them."""
    random = Random(seed)
    network, out, operands = drawn(random, random.choice((1, 2, 2, 3)), 5)
    axes, _, _ = operands_of(network)
    spine, stairs = random.choice((1, 1, 2)), dict[int, int]()
    for n, nest in enumerate(nests_of(axes, frozenset(out), frozenset(), spine)):
        if n == most:
            return False
        if (figures := least_scratch(network, nest, operands)) is not None:
            moved, need = figures
            stairs[need] = min(moved, stairs.get(need, moved))
    search = NestSearch(axes, out, spine=spine, passes=False, pairs=False, in_place=False, windows=2)
    for room in sorted({need + d for need in stairs for d in (-1, 0)}):
        found = search.best((), room)
        least = min((moved for need, moved in stairs.items() if need <= room), default=None)
        assert (found.bytes if found else None) == least, (seed, room)
    return True


@pytest.mark.thorough
def test_no_nest_is_better() -> None:
    tried = sum(by_force(f"force{seed}", 250) for seed in (*range(15), 202, 268))
    assert tried > 6


RULES = ("tiles", "inner", "outer", "exchange", "slices", "rings", "bounds")


@pytest.mark.thorough
@pytest.mark.parametrize("rule", RULES)
def test_a_rule_changes_no_bytes(rule: str) -> None:
    without = replace(NestRules(), **{rule: False})
    for seed in range(8):
        random = Random(f"{rule}{seed}")
        network, out, _ = drawn(random, 3, 5)
        axes, _, _ = operands_of(network)
        wide = random.choice((None, 4))
        quick, plain = (
            NestSearch(axes, out, spine=2, rules=rules, windows=2, accumulator=wide)
            for rules in (NestRules(), without)
        )
        for room in (3, 5, 8, 12, 17, 30, 60):
            one, other = quick.best((), room), plain.best((), room)
            assert (one and one.bytes) == (other and other.bytes), (seed, room)


@pytest.mark.parametrize("seed", range(4))
def test_looks_where_least_may_cross_find_as_few_bytes(seed: int) -> None:
    random = Random(f"looks{seed}")
    network, out, _ = drawn(random, 3, 5)
    wide = random.choice((None, 4))
    axes, _, _ = operands_of(network)
    plain, best_first = (
        NestSearch(axes, out, spine=2, windows=2, accumulator=wide, in_order=looks) for looks in (None, 0)
    )
    for room in (3, 5, 8, 12, 17, 30, 60):
        one, other = plain.best((), room), best_first.best((), room)
        assert (one and one.bytes) == (other and other.bytes), (seed, room)


def cut_off(search: NestSearch, room: int, looks: int) -> bool:
    """Hold what a search that ends early says against one that does not; return whether it says something."""
    limits = NO_LIMITS.core(lambda _: False)
    answer = search.core.best(whole=[], room=room, below=None, most_shapes=looks, in_order=1, limits=limits)
    found = search.best((), room)
    if found is None:
        assert answer.found is None
        return False
    assert answer.bound <= found.bytes
    assert answer.found is None or answer.found.bytes >= found.bytes
    assert answer.end != "complete" or answer.bound == found.bytes
    return answer.end != "complete" and answer.bound > search.least


CHAIN = group_of(
    "h=40 i=40 j=20 k=20 c=6 d=8 e=12 f=6",
    [
        "a: p(i,d) = x(h@i:1:1:3,c) A(c,d)",
        "b: q(j,e) = p(i@j:2:1:3,d) B(d,e)",
        "g: r(k,f) = q(j@k:1:1:3,e) C(e,f)",
    ],
)


def test_a_search_that_is_cut_off_bounds_all_nests() -> None:
    """Some of these bounds say more than what crosses in any nest."""
    search = NestSearch(CHAIN, named(CHAIN, "r"), passes=0, pairs=False)
    sharp = [cut_off(search, room, looks) for room in (60, 100, 150, 200, 300) for looks in (50, 100, 200)]
    assert sum(sharp) >= 3


def test_what_must_cross_leaves_out_gaps_between_windows() -> None:
    gaps = group_of("H=7 h=4", ["c: y(h) = x(H@h:2:0:1)"])
    search = NestSearch(gaps, named(gaps, "y"))
    found = search.best((), 2)
    assert found is not None
    assert search.least == found.bytes == 4 + 4


def test_shapes_are_counted_up_to_a_limit() -> None:
    search = NestSearch(EXAMPLE, named(EXAMPLE, "y"))
    assert search.shapes(9) > 3
    assert search.shapes(9, 2) == 3
