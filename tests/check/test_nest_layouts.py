"""Tensors in tiles: how they lie in other sides, the pieces of their boxes, the times of a plan of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from math import prod
from random import Random

import pytest

from nest_networks import nest_of, network_of
from onchip.base.errors import IllegalPlan, PlanFormatError
from onchip.check import check
from onchip.check.figures import times_of
from onchip.check.nest_layouts import tile_along
from onchip.check.nest_pieces import pieces_of
from onchip.plans import Plan, TensorLayout, from_json, from_text, to_json, to_text
from timed_plans import timed_plan

PAIR = network_of(
    "m=8 d=4 f=6 y=4",
    ["up MatMul: h(m,f) = x(m,d) A(d,f)", "down MatMul: z(m,y) = h(m,f) B(f,y)"],
    ["x"],
    ["z"],
)


def pair(*, box: tuple[int, int] = (4, 3), read: tuple[int, int] | None = None) -> Plan:
    """A product, and another one that reads what it stored, in boxes of m x f, through one copy of each."""
    (m, f), (n, g) = box, read or box
    first = f"keep x A\nfor m {m}\n  for f {f}\n    keep h\n    run up"
    second = f"keep B z\nfor m {n}\n  for f {g}\n    keep h\n    run down"
    nests = [nest_of(PAIR, text.splitlines())[0] for text in (first, second)]
    return timed_plan(PAIR.network, nests, [["up"], ["down"]])


def laid(plan: Plan, *tile: int, sides: tuple[int, ...] = (8, 6)) -> Plan:
    """The plan with h in tiles, and with the figures that follow."""
    made = replace(plan, layouts=(TensorLayout("h", sides, tile),), timing=())
    times = times_of(made)
    assert times is not None
    latest = max(t.end for t in times)
    result = replace(made.result, latency_picoseconds=latest, claim_sha256="")
    return replace(made, result=result, timing=times)


def test_a_box_of_whole_tiles_is_one_piece_both_ways() -> None:
    """h in boxes of 4 x 3 is stored and fetched in 4 fills each. Row by row a box is 4 pieces of 3 bytes, in
    4 bytes of bursts: 2 + 4 + 16 = 22 ns; in tiles of a box it is one: 2 + 1 + 12 = 15 ns.
    """
    plan = pair()
    check(plan)
    tiled = laid(plan, 4, 3)
    check(tiled)
    before, after = plan.result.latency_picoseconds, tiled.result.latency_picoseconds
    assert before is not None
    assert after is not None
    assert before - after == 8 * (22_000 - 15_000)
    assert laid(plan, 8, 6).result.latency_picoseconds == before  # one tile is row by row
    assert laid(plan, 1, 1).result.latency_picoseconds == before  # and so are tiles of one element
    assert laid(plan, 4, 6).result.latency_picoseconds == before


def test_maker_and_reader_may_move_other_boxes_of_the_same_tiles() -> None:
    plan = pair(box=(4, 3), read=(2, 6))
    tiled = laid(plan, 2, 3)
    check(tiled)
    # a box that is stored is two tiles, 2 + 2 + 16 ns instead of 22; one that is fetched is one piece
    assert (plan.result.latency_picoseconds or 0) - (tiled.result.latency_picoseconds or 0) == 4 * 2_000


@pytest.mark.parametrize("tile", [(3, 3), (4, 4), (4, 2)])
def test_a_nest_that_moves_other_boxes_does_not_agree(tile: tuple[int, int]) -> None:
    with pytest.raises(IllegalPlan, match="in boxes of"):
        check(replace(pair(), layouts=(TensorLayout("h", (8, 6), tile),)))


def test_layouts_are_written_and_read_in_both_forms() -> None:
    plan = laid(pair(), 4, 3)
    assert "layout h sides 8 6 tile 4 3" in to_text(plan)
    assert from_text(to_text(plan)) == plan
    assert from_json(to_json(plan)) == plan
    for text in (to_text(plan), to_json(plan)):
        read = from_text if text.startswith("onchip") else from_json
        with pytest.raises(PlanFormatError, match=r"onchip\.plan/2"):
            read(text.replace("onchip.plan/2", "onchip.plan/1"))


@pytest.mark.parametrize("seed", range(300))
def test_pieces_are_the_runs_of_addresses(seed: int) -> None:
    random = Random(seed)
    count = random.randint(1, 3)
    sides = tuple(random.randint(1, 7) for _ in range(count))
    tile = tuple(random.randint(1, side) for side in sides)
    box = []
    for side, size in zip(sides, tile, strict=True):
        if side % size == 0 and random.random() < 0.5:  # a part of one tile
            length = random.choice([n for n in range(1, size + 1) if size % n == 0])
            low = random.randrange(0, side, length)
            box.append(range(low, low + length))
        else:  # whole tiles
            first = random.randrange(0, side, size)
            box.append(range(first, min(side, first + size * random.randint(1, 3))))

    def where(at: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return (
            tuple(n // size for n, size in zip(at, tile, strict=True)),
            tuple(n % size for n, size in zip(at, tile, strict=True)),
        )

    place = {at: n for n, at in enumerate(sorted(product(*map(range, sides)), key=where))}
    flat = sorted(place[at] for at in product(*box))
    runs = [1]
    for one, other in pairwise(flat):
        if other == one + 1:
            runs[-1] += 1
        else:
            runs.append(1)
    assert pieces_of([len(along) for along in box], sides, tile) == Counter(runs)


@pytest.mark.parametrize(
    ("tile", "sides", "expected"),
    [
        ((32, 64), (197, 768), (32, 64)),
        ((32, 64), (197, 12, 64), (32, 1, 64)),
        ((32, 128), (197, 12, 64), (32, 2, 64)),
        ((32, 16), (197, 12, 64), (32, 1, 16)),
        ((32, 320), (197, 12, 64), (32, 5, 64)),  # two tiles of 5 heads, and one of 2
        ((32, 96), (197, 12, 64), None),
        ((32, 24), (197, 12, 64), None),
        ((32, 768), (197, 12, 64), (32, 12, 64)),
        ((197, 768), (197 * 768,), None),
        ((32, 64), (1, 197, 1, 768), (1, 32, 1, 64)),
    ],
)
def test_a_tile_in_finer_sides(
    tile: tuple[int, ...], sides: tuple[int, ...], expected: tuple[int, ...] | None
) -> None:
    found = tile_along(TensorLayout("t", (197, 768), tile), sides)
    assert found == expected
    if found is not None:
        assert prod(found) == prod(tile)


WINDOWS = network_of(
    "c=4 R=8 w=6 d=3 r=8",
    ["up MatMul: h(c,R,w) = x(d,R,w) A(c,d)", "down Pool: z(c,r,w) = h(c,R@r:1:1:3,w)"],
    ["x"],
    ["z"],
)
"""A product, and a window of 3 rows over what it makes."""


@pytest.mark.parametrize(("tile", "agreed"), [((4, 1, 6), True), ((2, 1, 6), True), ((4, 2, 6), False)])
def test_windows_slide_over_tiles_of_one_row(tile: tuple[int, int, int], agreed: bool) -> None:
    """Bands of 2 rows with 4 channels: a fill is one piece in rows of all channels, two in those of half of
    them, and else one for each channel."""
    first = "keep A\nfor R 2\n  keep x h\n  run up"
    second = "for r 2\n  keep h z\n  run down"
    nests = [nest_of(WINDOWS, text.splitlines())[0] for text in (first, second)]
    plan = timed_plan(WINDOWS.network, nests, [["up"], ["down"]])
    check(plan)
    if not agreed:
        with pytest.raises(IllegalPlan, match="windows slide over it"):
            check(replace(plan, layouts=(TensorLayout("h", (4, 8, 6), tile),)))
        return
    tiled = laid(plan, *tile, sides=(4, 8, 6))
    check(tiled)
    before, after = plan.result.latency_picoseconds, tiled.result.latency_picoseconds
    assert before is not None
    assert after is not None
    assert after < before
