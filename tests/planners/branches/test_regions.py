"""Addresses within a module: legal, preferred where possible, and an honest no."""

from __future__ import annotations

import random
from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.planners.branches.region_body import ALL_RULES, RegionRules
from onchip.planners.branches.regions import Piece, Placed, Undecided, overload, place
from oracles import regions

NAMES = [f.name for f in fields(RegionRules)]
NONE = RegionRules(**dict.fromkeys(NAMES, False))
EXACT = replace(ALL_RULES, quick=False)
SWITCHED = [
    ALL_RULES,
    NONE,
    *(replace(EXACT, **{n: False}) for n in NAMES),
    *(replace(NONE, **{n: True}) for n in NAMES),
]


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[Piece], int, int]:
    """A few pieces, up to two clusters with gaps, some given addresses; capacity, alignment."""
    alignment = draw(st.sampled_from([1, 1, 2]))
    capacity = draw(st.integers(3, 9)) * alignment + draw(st.integers(0, alignment - 1))
    pieces = []
    for i in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, 4))
        end = draw(st.integers(start + 1, 5))
        cluster = draw(st.sampled_from([None, None, "out", "out", "inner"]))
        offset = 0 if cluster is None else draw(st.integers(0, 4)) * alignment
        at = draw(st.integers(0, 5)) * alignment if draw(st.integers(0, 4)) == 0 else None
        pieces.append(Piece(f"p{i}", draw(st.integers(0, 4 * alignment)), start, end, at, cluster, offset))
    return pieces, capacity, alignment


def tight(seed: int) -> tuple[list[Piece], int]:
    """Pieces cut out of a full memory, some clustered or given, now and then one unit off."""
    rnd = random.Random(seed)
    steps, capacity = rnd.randint(3, 5), rnd.randint(6, 9)
    tiles = [(0, steps, 0, capacity)]
    for _ in range(rnd.randint(3, 7)):
        t0, t1, a0, a1 = tiles.pop(rnd.randrange(len(tiles)))
        if rnd.random() < 0.5 and t1 - t0 > 1:
            cut = rnd.randint(t0 + 1, t1 - 1)
            tiles += [(t0, cut, a0, a1), (cut, t1, a0, a1)]
        elif a1 - a0 > 1:
            cut = rnd.randint(a0 + 1, a1 - 1)
            tiles += [(t0, t1, a0, cut), (t0, t1, cut, a1)]
        else:
            tiles.append((t0, t1, a0, a1))
    rnd.shuffle(tiles)
    pieces = [Piece(f"p{i}", a1 - a0, t0, t1) for i, (t0, t1, a0, a1) in enumerate(tiles)]
    members = rnd.sample(range(len(tiles)), min(len(tiles), rnd.choice([0, 2, 3])))
    lowest = min((tiles[i][2] for i in members), default=0)
    for i in members:
        wrong = rnd.choice([0, 0, 0, 1])  # sometimes a distance at which nothing fits
        pieces[i] = replace(pieces[i], cluster="out", offset=tiles[i][2] - lowest + wrong)
    for i in rnd.sample(range(len(tiles)), rnd.choice([0, 0, 1])):
        pieces[i] = replace(pieces[i], at=max(0, tiles[i][2] + rnd.choice([0, 0, 1, -1])))
    return pieces, capacity


def agrees(pieces: list[Piece], capacity: int, alignment: int, rules: RegionRules) -> None:
    found = place(pieces, capacity, alignment, rules=rules)
    assert not isinstance(found, Undecided)
    assert (found is not None) == regions.fits(pieces, capacity, alignment)
    if found is not None:
        assert regions.wrong(pieces, found.addresses, found.bases, capacity, alignment) is None


@pytest.mark.thorough
@given(problems(), st.sampled_from(SWITCHED))
@settings(max_examples=300)
def test_addresses_exactly_where_trying_all_finds_some(
    problem: tuple[list[Piece], int, int], rules: RegionRules
) -> None:
    agrees(*problem, rules)


@pytest.mark.parametrize("start", range(0, 160, 40))
def test_full_memories_too(start: int) -> None:
    answers = set()
    for seed in range(start, start + 40):
        pieces, capacity = tight(seed)
        for rules in (ALL_RULES, EXACT, SWITCHED[seed % len(SWITCHED)]):
            agrees(pieces, capacity, 1, rules)
        answers.add(place(pieces, capacity, 1) is None)
    assert answers == {True, False}


def module(seed: int, pieces: int) -> tuple[list[Piece], int]:
    """A module at its real size: an input, branches of layers one after another, an output of their parts."""
    rnd = random.Random(seed)
    unit = 256
    found: list[Piece] = []
    step, offset = 0, 0
    while len(found) < pieces:
        length = rnd.randint(1, 4)
        for k in range(length):
            size, last = rnd.randint(20, 300) * unit, k == length - 1
            found.append(Piece(f"w{step}", rnd.randint(1, 120) * unit, step, step + 1))
            if last:
                found.append(Piece(f"o{step}", size, step, 10_000, None, "out", offset))
                offset += size
            else:
                found.append(Piece(f"t{step}", size, step, step + 2))
            step += 1
    found = [replace(p, end=min(p.end, step)) for p in found]
    found.append(Piece("in", rnd.randint(200, 900) * unit, 0, step, 0))
    load = max(sum(p.bytes for p in found if p.start <= t < p.end) for t in range(step))
    return found, load + rnd.choice([0, 4, 40]) * unit


@pytest.mark.parametrize("seed", range(12))
def test_modules_of_real_sizes_are_decided(seed: int) -> None:
    pieces, capacity = module(seed, 12 + seed * 2)
    found = place(pieces, capacity, 64)
    assert not isinstance(found, Undecided)
    if found is not None:
        assert regions.wrong(pieces, found.addresses, found.bases, capacity, 64) is None
    assert isinstance(place(pieces, 2 * capacity, 64), Placed)


def test_a_part_above_what_the_cluster_itself_holds_up() -> None:
    # The upper part rests on a piece that rests on the lower part: pushing one at a time is stuck.
    pieces = [
        Piece("a1", 1, 0, 2, None, "out", 0),
        Piece("a2", 1, 0, 2, None, "out", 3),
        Piece("between", 2, 0, 2),
        Piece("given", 2, 1, 2, 0),
    ]
    found = place(pieces, 6, 1)
    assert isinstance(found, Placed)
    assert regions.wrong(pieces, found.addresses, found.bases, 6, 1) is None
    assert place(pieces, 5, 1) is None


def test_parts_that_are_not_there_leave_their_bytes() -> None:
    pieces = [
        Piece("first", 4, 0, 4, None, "out", 0),
        Piece("second", 4, 2, 4, None, "out", 4),
        Piece("early", 4, 0, 2),
        Piece("late", 2, 2, 4),
    ]
    assert isinstance(place(pieces, 10, 1), Placed)
    assert place(pieces, 9, 1) is None


def test_a_preferred_base_is_taken_where_it_can_be() -> None:
    pieces = [Piece("in", 30, 0, 3, 0), Piece("a", 20, 0, 3, None, "out", 0), Piece("t", 10, 1, 2)]
    for base in (40, 60, 80):
        found = place(pieces, 100, 10, prefer={"out": [0, base]})
        assert isinstance(found, Placed)
        assert found.bases == {"out": base}


def test_the_most_crowded_step_is_named() -> None:
    pieces = [Piece("a", 5, 0, 2), Piece("b", 6, 1, 3), Piece("c", 1, 2, 3), Piece("none", 0, 0, 3)]
    assert overload(pieces, 16, 4) is None
    crowd = overload(pieces, 15, 4)
    assert crowd is not None
    assert (crowd.step, crowd.bytes) == (1, 16)
    assert {p.name for p in crowd.pieces} == {"a", "b", "none"}
    assert place(pieces, 15, 4) is None


def test_no_nodes_leave_it_undecided() -> None:
    pieces, capacity = next(
        (p, c) for p, c in map(tight, range(1000)) if place(p, c, 1) is None and not overload(p, c, 1)
        and isinstance(place(p, c, 1, most_nodes=0), Undecided)
    )  # fmt: skip
    assert place(pieces, capacity, 1) is None


@pytest.mark.parametrize(
    ("piece", "complaint"),
    [
        (lambda: Piece("x", -1, 0, 1), "negative"),
        (lambda: Piece("x", 1, 1, 1), "no step"),
        (lambda: Piece("x", 1, 0, 1, offset=4), "of no cluster"),
        (lambda: Piece("x", 1, 0, 1, None, "c", -4), "negative"),
    ],
)
def test_what_is_no_piece_is_refused(piece: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        piece()  # type: ignore[operator]


@pytest.mark.parametrize("piece", [Piece("x", 1, 0, 1, 6), Piece("x", 1, 0, 1, None, "c", 6)])
def test_what_is_not_aligned_is_refused(piece: Piece) -> None:
    with pytest.raises(ValueError, match="no multiple of 4"):
        place([piece], 100, 4)
