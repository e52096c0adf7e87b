"""Nests whose buffers have copies, and plans made for the shortest time, executed."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from random import Random

import pytest

import onchip
from onchip.check.rules import Broken
from onchip.machines.chip import Chip
from onchip.network.axes import axes_of
from onchip.plans import Leaf, Loop, Nest, Ways
from onchip.run.tiled.nests.levels import Home
from onchip.run.tiled.nests.run import NestRun
from run.nested import Alone, model, random_nest
from timed_plans import TILES, few_looks

CHAIN = """chain (float[12,8] x) => (float[12,6] y) {
    a = MatMul(x, w)  b = Add(a, c)  r = Relu(b)  z = MatMul(r, v)  y = Add(z, d)
}"""
WEIGHTS: dict[str, tuple[int, ...]] = {"w": (8, 10), "c": (10,), "v": (10, 6), "d": (6,)}

IMAGE = """image (float[1,3,11,11] x) => (float[1,4,9,9] y) {
    a = Conv<pads=[1,1,1,1]>(x, w)  r = Relu(a)  y = Conv(r, v)
}"""
FILTERS: dict[str, tuple[int, ...]] = {"w": (4, 3, 3, 3), "v": (4, 4, 3, 3)}


def copied(random: Random, nest: Nest) -> Nest:
    """The nest with copies of what its bodies keep."""

    def ways(keep: tuple[str, ...]) -> Ways:
        return Ways(tuple((name, random.randint(2, 4)) for name in keep if random.random() < 0.8))

    def item(one: Loop | Leaf) -> Loop | Leaf:
        if isinstance(one, Leaf):
            return one
        return replace(one, body=tuple(map(item, one.body)), ways=ways(one.keep))

    return replace(nest, body=tuple(map(item, nest.body)), ways=ways(nest.keep))


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> dict[Home, set[tuple[int, int]]]:
    """By home, the ranges in which its fills lie."""
    found: dict[Home, set[tuple[int, int]]] = {}
    begin = NestRun.begin

    def begun(self: NestRun, home: Home) -> None:
        found.setdefault(home, set()).add(self.place(home))
        begin(self, home)

    monkeypatch.setattr(NestRun, "begin", begun)
    return found


def test_every_fill_lies_in_the_slot_of_its_turn(
    tmp_path: Path, places: dict[Home, set[tuple[int, int]]]
) -> None:
    alone = Alone(model(CHAIN, tmp_path, **WEIGHTS))
    network, random, used = alone.network, Random(3), 0
    for _ in range(30):
        first = random.randrange(len(network.order))
        ids = network.order[first : random.randint(first + 1, first + 3)]
        axes = axes_of(network, ids)
        assert not isinstance(axes, str)
        nest = copied(random, random_nest(random, axes, alone.leaving(ids)))
        places.clear()
        with suppress(Broken):  # partial sums that may have no copies
            alone.lawful(nest, *(network.operators[v].name for v in ids))
        for home, ranges in places.items():
            assert len(ranges) <= home.slots
            assert all(a[1] <= b[0] or b[1] <= a[0] for a, b in combinations(ranges, 2))
            used += len(ranges) > 1
    assert used > 5


@pytest.mark.parametrize(
    ("text", "weights", "budget"), [(CHAIN, WEIGHTS, 300), (IMAGE, FILTERS, 700)], ids=["chain", "image"]
)
def test_plans_for_the_shortest_time_compute_the_same(
    text: str,
    weights: dict[str, tuple[int, ...]],
    budget: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Copies of every kind, groups beside each other: as many bytes cross as planned."""
    few_looks(monkeypatch)
    source = model(text, tmp_path, **weights)
    chip = Chip("example", 4, "float32", tiles=TILES)
    made = onchip.plan(source, chip, 4 * budget, fuse=True, objective="latency")
    assert any(copies(group.tiling) for group in made.groups if isinstance(group.tiling, Nest))
    report = made.run()
    moved = report.moved
    assert moved.compulsory + moved.spill + moved.reload + moved.weights == made.result.dram_bytes


def copies(nest: Nest | Loop | Leaf) -> bool:
    """Whether some buffer has several copies."""
    return not isinstance(nest, Leaf) and (bool(nest.ways.copies) or any(map(copies, nest.body)))
