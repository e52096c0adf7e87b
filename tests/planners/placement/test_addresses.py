"""Addresses for fixed residencies: legal, at the least relocation, and never refused when every step fits."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations

import pytest

from onchip.planners.packing import Buffer, irreducible
from onchip.planners.placement.addresses import Placement, Rectangle, Relocation, place, relocation_bytes
from onchip.planners.placement.addresses_exact import place_exact
from planners.packing.instances import exhaustive, tight_instance


def assert_legal(rectangles: list[Rectangle], budget: int, placed: Placement, alignment: int = 1) -> None:
    """Every use is covered by exactly one piece, and no two pieces overlap in time and bytes."""
    for i, r in enumerate(rectangles):
        pieces = [p for p in placed.pieces if p.rectangle == i]
        for step in r.uses or range(r.start, r.end):
            assert sum(p.start <= step < p.end for p in pieces) == 1
        moves = [m for m in placed.relocations if m.rectangle == i]
        assert len(moves) == len(pieces) - 1
        assert r.movable or not moves
    for p in placed.pieces:
        assert p.address % alignment == 0
        assert rectangles[p.rectangle].offset in (None, p.address)
        assert 0 <= p.address <= budget - rectangles[p.rectangle].size
    for p, q in combinations(placed.pieces, 2):
        a, b = rectangles[p.rectangle].size, rectangles[q.rectangle].size
        assert (
            p.end <= q.start or q.end <= p.start or p.address + a <= q.address or q.address + b <= p.address
        )
    assert placed.relocation_bytes == relocation_bytes(rectangles, placed.relocations)


def least_relocation(rectangles: list[Rectangle], budget: int) -> int:
    """By trying every set of moves, each with every address."""
    moves = [Relocation(i, a, b) for i, r in enumerate(rectangles) for a, b in r.gaps]
    best: int | None = None
    for k in range(len(moves) + 1):
        for chosen in combinations(moves, k):
            cost = relocation_bytes(rectangles, chosen)
            if best is not None and cost >= best:
                continue
            buffers = []
            for i, r in enumerate(rectangles):
                cuts = sorted((m.after + 1, m.before) for m in chosen if m.rectangle == i)
                begins = [r.start, *(b for _, b in cuts)]
                ends = [*(a for a, _ in cuts), r.end]
                buffers += [Buffer(b, e, r.size) for b, e in zip(begins, ends, strict=True)]
            if exhaustive(buffers, budget):
                best = cost
    assert best is not None
    return best


def rectangles_of(buffers: list[Buffer], seed: int) -> list[Rectangle]:
    rnd = random.Random(seed)
    result = []
    for i, b in enumerate(buffers):
        middle = [t for t in range(b.lower + 1, b.upper - 1) if rnd.random() < 0.5]
        uses = tuple(sorted({b.lower, b.upper - 1, *middle}))
        result.append(Rectangle(i, b.lower, b.upper, b.size, uses, rnd.random() < 0.5, b.upper - b.lower > 1))
    return result


@pytest.mark.parametrize("seed", range(60))
def test_every_step_that_fits_is_placed(seed: int) -> None:
    buffers, budget = tight_instance(seed)
    rectangles = rectangles_of(buffers, seed)
    placed = place(rectangles, budget)
    assert placed.status != "unknown"
    assert_legal(rectangles, budget, placed)


SMALL = [1578, 6671, 7209, 7589, 12542, 17113, 22858]


@pytest.mark.parametrize("seed", SMALL)
def test_relocation_is_the_least(seed: int) -> None:
    buffers, budget = tight_instance(seed)
    rectangles = [
        Rectangle(
            i, b.lower, b.upper, b.size, (b.lower, b.upper - 1) if b.upper - b.lower > 1 else (b.lower,)
        )
        for i, b in enumerate(buffers[k] for k in irreducible(buffers, budget))
    ]
    placed = place(rectangles, budget)
    assert_legal(rectangles, budget, placed)
    assert placed.status == "relocated"
    assert placed.conflict == tuple(range(len(rectangles)))
    assert placed.relocation_bytes == placed.lower_bound == least_relocation(rectangles, budget)


@pytest.mark.parametrize("seed", [*SMALL, *range(0, 60, 7)])
def test_relocation_agrees_with_cpsat(seed: int) -> None:
    buffers, budget = tight_instance(seed)
    rectangles = rectangles_of(buffers, seed)
    placed, model = place(rectangles, budget), place_exact(rectangles, budget)
    assert_legal(rectangles, budget, model)
    assert placed.relocation_bytes == placed.lower_bound
    assert placed.relocation_bytes == model.relocation_bytes == model.lower_bound


def with_places(rectangles: list[Rectangle], budget: int, seed: int) -> list[Rectangle]:
    """Up to three of them fixed, apart from each other."""
    rnd = random.Random(seed)
    result = list(rectangles)
    for i in rnd.sample(range(len(rectangles)), min(3, len(rectangles))):
        r = rectangles[i]
        at = rnd.choice([0, budget - r.size, rnd.randint(0, budget - r.size)])
        others = [o for o in result if o.offset is not None and o.start < r.end and r.start < o.end]
        if all(at + r.size <= o.offset or o.offset + o.size <= at for o in others if o.offset is not None):
            result[i] = replace(r, offset=at)
    return result


@pytest.mark.parametrize("seed", [*SMALL, *range(0, 90, 6)])
def test_fixed_rectangles_stay_where_they_must(seed: int) -> None:
    buffers, budget = tight_instance(seed)
    rectangles = with_places(rectangles_of(buffers, seed), budget, seed)
    placed = place(rectangles, budget)
    try:
        model = place_exact(rectangles, budget)
    except ValueError:
        assert placed.status == "unknown"
        return
    assert_legal(rectangles, budget, model)
    assert model.status == placed.status
    assert_legal(rectangles, budget, placed)
    assert placed.relocation_bytes == placed.lower_bound == model.relocation_bytes


def test_a_place_beyond_the_budget_or_off_the_alignment_is_refused() -> None:
    with pytest.raises(ValueError, match="beyond"):
        place([Rectangle(0, 0, 2, 6, offset=6)], 11)
    with pytest.raises(ValueError, match="multiple"):
        place([Rectangle(0, 0, 2, 6, offset=6)], 16, alignment=4)


def test_a_step_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError):
        place([Rectangle(0, 0, 2, 6), Rectangle(1, 1, 3, 6)], 11)


def test_alignment_counts() -> None:
    rectangles = [Rectangle(0, 0, 2, 3), Rectangle(1, 0, 2, 5), Rectangle(2, 1, 2, 1)]
    assert_legal(rectangles, 24, place(rectangles, 24, alignment=8), alignment=8)
    with pytest.raises(ValueError):
        place(rectangles, 23, alignment=8)


def test_a_tensor_is_written_once() -> None:
    rectangles = [Rectangle(7, 0, 4, 10), Rectangle(8, 0, 4, 5, copied=True)]
    assert relocation_bytes(rectangles, [Relocation(0, 0, 1), Relocation(0, 2, 3)]) == 30
    assert relocation_bytes(rectangles, [Relocation(1, 0, 1)]) == 5
