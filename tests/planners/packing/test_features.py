"""Buffers with an alignment, a place or gaps of their own: every engine, every rule, and the validator."""

from __future__ import annotations

import random
from dataclasses import fields, replace

import pytest

from onchip.planners.packing import Buffer, Rules, fault, irreducible, max_load, minimise, pack
from onchip.planners.packing.cpsat import pack_with_cpsat
from planners.packing.instances import apart, exhaustive, featured

NAMES = [f.name for f in fields(Rules)]
NONE = Rules(**dict.fromkeys(NAMES, False))
SWITCHED = [replace(Rules(), **{n: False}) for n in NAMES] + [replace(NONE, **{n: True}) for n in NAMES]

ODD = [8, 10, 12, 63, 79, 241, 300, 469, 512, 581]
"""Seeds of `featured` that fit their load bound and yet do not pack; found by trying."""


def legal(buffers: list[Buffer], offsets: tuple[int, ...], capacity: int) -> bool:
    boxes = list(zip(buffers, offsets, strict=True))
    return all(
        at >= 0 and at + b.size <= capacity and at % b.alignment == 0 and b.offset in (None, at)
        for b, at in boxes
    ) and all(
        apart(b, c) or at + b.size <= other or other + c.size <= at
        for i, (b, at) in enumerate(boxes)
        for c, other in boxes[:i]
    )


@pytest.mark.parametrize("start", range(0, 400, 40))
def test_the_search_agrees_with_trying_every_offset(start: int) -> None:
    for seed in range(start, start + 40):
        buffers, capacity = featured(seed)
        fits = exhaustive(buffers, capacity)
        for rules in (Rules(), NONE, SWITCHED[seed % len(SWITCHED)]):
            answer = pack(buffers, capacity, rules=rules, engines=("search",))
            assert answer.status == ("packed" if fits else "infeasible"), seed
            assert not fits or legal(buffers, answer.offsets, capacity)


@pytest.mark.parametrize("seed", ODD)
def test_no_rule_changes_the_answer(seed: int) -> None:
    buffers, capacity = featured(seed)
    assert max_load(buffers) <= capacity
    for rules in SWITCHED:
        assert pack(buffers, capacity, rules=rules, engines=("search",)).status == "infeasible"


@pytest.mark.parametrize("seed", range(12))
def test_all_engines_agree(seed: int) -> None:
    buffers, capacity = featured(seed, most=9)
    status, offsets = pack_with_cpsat(buffers, capacity, workers=1)
    assert status != "packed" or legal(buffers, offsets, capacity)
    answer = pack(buffers, capacity)
    assert answer.status == status
    assert status != "packed" or legal(buffers, answer.offsets, capacity)
    repaired = pack(buffers, capacity, engines=("greedy", "repair"))
    assert repaired.status != "packed" or legal(buffers, repaired.offsets, capacity)


@pytest.mark.parametrize("seed", range(40))
def test_minimise_and_its_bounds(seed: int) -> None:
    buffers, _ = featured(seed)
    try:
        extent = minimise(buffers)
    except ValueError:
        fixed = [b for b in buffers if b.offset is not None]
        assert fault(fixed, [b.offset or 0 for b in fixed], 1000) is not None
        return
    assert max_load(buffers) <= extent.bytes == extent.lower_bound
    assert legal(buffers, extent.offsets, extent.bytes)
    assert not exhaustive(buffers, extent.bytes - 1)


@pytest.mark.parametrize("seed", ODD)
def test_irreducible_sets_of_them(seed: int) -> None:
    buffers, capacity = featured(seed)
    which = irreducible(buffers, capacity)
    assert not exhaustive([buffers[i] for i in which], capacity)
    for i in which:
        assert exhaustive([buffers[k] for k in which if k != i], capacity)


def test_the_validator_agrees_with_the_definition() -> None:
    right = 0
    for seed in range(300):
        buffers, capacity = featured(seed, most=3)
        rnd = random.Random(seed)
        offsets = tuple(rnd.randrange(capacity) // b.alignment * b.alignment for b in buffers)
        offsets = tuple(
            at if b.offset is None or rnd.random() < 0.1 else b.offset
            for b, at in zip(buffers, offsets, strict=True)
        )
        assert (fault(buffers, offsets, capacity) is None) == legal(buffers, offsets, capacity)
        right += legal(buffers, offsets, capacity)
    assert right > 20


def test_bytes_are_used_by_others_in_a_gap() -> None:
    shy = Buffer(0, 10, 8, gaps=((2, 5), (6, 8)))
    assert shy.live == ((0, 2), (5, 6), (8, 10))
    buffers = [shy, Buffer(2, 5, 8), Buffer(6, 8, 8)]
    assert max_load(buffers) == 8
    assert pack(buffers, 8).offsets == (0, 0, 0)
    assert pack([shy, Buffer(2, 6, 8)], 15).status == "infeasible"


def test_sizes_need_not_be_rounded_at_the_capacity() -> None:
    buffers = [Buffer(0, 1, 3, alignment=4), Buffer(0, 1, 3, alignment=4)]
    assert max_load(buffers) == 7
    assert pack(buffers, 7, engines=("search",)).status == "packed"
    assert pack(buffers, 6).status == "infeasible"
    assert max_load(buffers, alignment=4) == 8  # asked for all, it rounds sizes as well


def test_fixed_buffers_split_what_is_free() -> None:
    wall = Buffer(0, 4, 2, offset=4)
    assert pack([wall, Buffer(0, 2, 4), Buffer(0, 2, 4)], 10).status == "packed"
    assert pack([wall, Buffer(0, 2, 5)], 10).status == "infeasible"
    assert pack([wall, Buffer(3, 5, 1, offset=5)], 10).status == "infeasible"
    assert pack([wall, Buffer(4, 5, 9)], 10).status == "packed"
    with pytest.raises(ValueError, match="overlap"):
        minimise([wall, Buffer(3, 5, 1, offset=5)])


def test_a_place_that_is_not_aligned_is_refused() -> None:
    with pytest.raises(ValueError, match="multiple"):
        Buffer(0, 1, 1, alignment=4, offset=6)
    with pytest.raises(ValueError, match="multiple"):
        pack([Buffer(0, 1, 1, offset=6)], 64, alignment=4)


@pytest.mark.parametrize(
    "gaps", [((0, 9),), ((2, 2),), ((4, 3),), ((3, 5), (4, 6)), ((5, 6), (3, 4)), ((-1, 2),), ((8, 10),)]
)
def test_what_is_no_gap_is_refused(gaps: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ValueError, match="gap"):
        Buffer(0, 9, 1, gaps=gaps)
