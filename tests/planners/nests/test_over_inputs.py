"""Nests of which an output lies over a whole input: the search finds what a walk over every nest finds."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_best_nest import family

from nest_groups import NestCase, Walk, group_of, legal, named, random_nest_case
from onchip.check.nest_overlap import prove_nest_overlap
from onchip.check.nests import nested
from onchip.planners.nests import NestSearch, pairs_of, widened
from onchip.plans.nest import Nest
from oracles.nest_cases import group_of as group_over
from oracles.nest_cases import groups_network, random_whole
from oracles.nest_trial import operands_of, writes_uncut
from oracles.nest_windows import least_scratch, nests_of, sliding_network
from oracles.nests import Failed, run_nest, unfused
from oracles.residuals import residual_network

Pair = tuple[int, int]


def loses_nothing(case: NestCase, nest: Nest, pair: Pair) -> bool:
    """Whether the machine that runs nests by elements reads all of the input before it is gone."""
    tensors = [b.tensor for b in case.group.buffers]
    x, y = (tensors[b] for b in pair)
    assert x is not None
    assert y is not None
    try:
        run_nest(
            case.group,
            nest,
            {t for b in case.leaving if (t := tensors[b]) is not None},
            {t for b in case.whole if (t := tensors[b]) is not None},
            over={x: y},
        )
    except Failed:
        return False
    return True


def stairs_of(case: NestCase, spine: int, pair: Pair, most: int) -> dict[int, int] | None:
    """By scratch, the fewest bytes of any nest that loses nothing; None if there are too many nests."""
    found: dict[int, int] = {}
    for n, nest in enumerate(family(case, spine)):
        if n == most:
            return None
        if not legal(case, nest):
            continue
        walk = Walk(case, nest, any_order=True)
        known = any(need <= walk.scratch and b <= walk.bytes for need, b in found.items())
        if walk.stateless and not known and loses_nothing(case, nest, pair):
            found[walk.scratch] = walk.bytes
    return found


def compared(seed: int, operators: tuple[int, ...], most: int) -> int:
    """Hold the search against every nest of one group; return how many answers are others than apart."""
    rng, stairs = Random(seed), None
    while stairs is None:
        case = random_nest_case(rng, rng.choice(operators), (2, 3))
        pairs = pairs_of(case.group, sorted(case.leaving))
        if not pairs:
            continue
        pair = rng.choice(pairs)
        case = replace(case, whole=case.whole | {*pair})
        spine = rng.choice((1, 2, 2))
        stairs = stairs_of(case, spine, pair, most)
    search = NestSearch(
        case.group,
        case.leaving,
        alignment=case.alignment,
        accumulator=case.accumulator,
        spine=spine,
        passes=0,
        pairs=False,
        in_place=False,
    )
    told = 0
    for room in sorted({r + d for r in stairs for d in (-1, 0)}):
        least = min((b for need, b in stairs.items() if need <= room), default=None)
        found, apart = search.best(case.whole, room, over=pair), search.best(case.whole, room)
        assert (found.bytes if found else None) == least, (seed, room)
        told += (apart and apart.bytes) != least
        if found is not None:
            walk = Walk(case, found.nest)
            assert (walk.bytes, walk.scratch) == (found.bytes, found.scratch)
            assert loses_nothing(case, found.nest, pair)
    return told


@pytest.mark.parametrize("seed", range(4))
def test_no_nest_that_loses_nothing_is_better(seed: int) -> None:
    compared(seed, (1, 2, 2), 400)


@pytest.mark.thorough
def test_no_nest_of_many_groups_is_better() -> None:
    told = sum(compared(seed, (2, 2, 3), 2_000) for seed in range(100, 120))
    assert told  # what lies over an input may not run in every nest


def compared_along_windows(seed: int, most: int) -> int | None:
    """The same where windows slide; None if there are too many nests or nothing may lie over an input."""
    random = Random(seed)
    network = sliding_network(random, random.choice((1, 2, 2, 3)), 5)
    axes, operands, leaving = operands_of(network)
    out = [n for n, b in enumerate(axes.buffers) if b.maker is not None and b.tensor in leaving]
    pairs = pairs_of(axes, out)
    if not pairs or not any(w for op in axes.operators for use in op.reads for w in use.slides):
        return None
    pair = random.choice(pairs)
    x, y = (axes.buffers[b].tensor for b in pair)
    assert x is not None
    assert y is not None
    whole = frozenset({x, y})
    there = [n for n, b in enumerate(axes.buffers) if b.tensor in whole]
    spine, stairs = random.choice((1, 1, 2)), dict[int, int]()
    for n, nest in enumerate(nests_of(axes, frozenset(out), frozenset(there), spine)):
        if n == most:
            return None
        figures = least_scratch(network, nest, frozenset(operands - whole))
        if figures is None or any(need <= figures[1] and b <= figures[0] for need, b in stairs.items()):
            continue
        try:
            run_nest(axes, nest, leaving, whole, over={x: y})
        except Failed:
            continue
        stairs[figures[1]] = figures[0]
    search = NestSearch(axes, out, spine=spine, passes=0, pairs=False, in_place=False, windows=2)
    told = 0
    for room in sorted({need + d for need in stairs for d in (-1, 0)}):
        found, apart = search.best(there, room, over=pair), search.best(there, room)
        least = min((moved for need, moved in stairs.items() if need <= room), default=None)
        assert (found.bytes if found else None) == least, (seed, room)
        told += (apart and apart.bytes) != least
    return told


@pytest.mark.thorough
def test_no_nest_along_windows_is_better() -> None:
    found = [compared_along_windows(seed, 400) for seed in (48, 87, 98, 124, 314, 403, 494, 630, 924)]
    assert len(found) - found.count(None) > 6
    assert sum(told or 0 for told in found) > 2


@pytest.mark.thorough
@settings(max_examples=150)
@given(st.integers(0, 10**9))
def test_what_is_found_is_legal_and_loses_nothing(seed: int) -> None:
    judged(seed)


def judged(seed: int) -> bool:
    """Judge and execute what is found for a group wilder than any network's; return whether there was one."""
    random = Random(seed)
    make = random.choice((groups_network, sliding_network, residual_network))
    network = make(random, random.choice((2, 3, 4)))
    axes, operands, leaving = operands_of(network)
    out = [n for n, b in enumerate(axes.buffers) if b.maker is not None and b.tensor in leaving]
    pairs = pairs_of(axes, out)
    if not pairs or writes_uncut(axes):
        return False
    pair = random.choice(pairs)
    x, y = (axes.buffers[b].tensor for b in pair)
    assert x is not None
    assert y is not None
    whole = random_whole(random, sorted(operands)) | {x, y}
    there = [n for n, b in enumerate(axes.buffers) if b.tensor in whole]
    alignment, wide = random.choice((1, 1, 4)), random.choice((None, None, 2, 4))
    room = random.randint(1, max(2, sum(b.bytes for b in axes.buffers)))
    found = NestSearch(axes, out, alignment=alignment, accumulator=wide).best(there, room, over=pair)
    if found is None:
        return False
    ids = [cut.operator for cut in axes.operators]
    larger = widened(axes, out, there, found.nest, room, alignment=alignment, accumulator=wide)
    for nest in (found.nest, larger):
        law = nested(network, group_over(network, nest), ids, operands - whole, alignment, wide)
        assert sum(law.crossing.values()) + law.weights == found.bytes
        prove_nest_overlap(network, "g", law.layout, y, x, 0)
        ran = run_nest(axes, nest, leaving, whole, over={x: y})
        want = unfused(axes)
        assert all(ran.values[n] == want[n] for n in ran.values)
    return True


def test_a_stream_lies_over_itself() -> None:
    """`y = x + f(norm(x))`: x + f lies over x, so that f has a place of its own."""
    lines = ["n: a(m,d) = x(m,*d) | d", "f: h(m,d) = a(m,e) w(e,d)", "s: y(m,d) = x(m,d) h(m,d)"]
    group = group_of("m=6 d=4 e=4", lines)
    leaving, whole = named(group, "y"), named(group, "x y")
    [pair] = pairs_of(group, leaving)
    assert [group.buffers[b].name for b in pair] == ["x", "y"]
    search, apart = NestSearch(group, leaving), NestSearch(group, leaving, in_place=False)
    for room in range(4, 60, 4):
        over, other = search.best(whole, room, over=pair), apart.best(whole, room)
        assert (over and over.bytes) == (other and other.bytes)
    there = search.best(whole, 20)
    assert there is not None
    assert there.bytes == 16  # f in the place of y
    assert search.best(whole, 20, over=pair).bytes > 16  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="below it"):
        search.best(named(group, "x"), 60, over=pair)


def test_what_is_read_after_it_was_written_over_keeps_its_own_place() -> None:
    lines = ["s: y(m,d) = x(m,d) z(m,d)", "l: u(m,d) = x(m,*d) y(m,d) | d"]
    group = group_of("m=6 d=4", lines)
    pairs = pairs_of(group, named(group, "y u"))
    assert [" under ".join(group.buffers[b].name for b in pair) for pair in pairs] == [
        "z under y",
        "x under u",
        "z under u",
    ]
