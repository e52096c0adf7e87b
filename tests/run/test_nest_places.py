"""The executor and the checker find homes and addresses of a nest on their own, and find the same."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.check.nests import nested
from onchip.check.rules import Broken
from onchip.plans import PlanChip
from onchip.run.tiled.nests.levels import Beside
from onchip.run.tiled.nests.places import places_of
from onchip.run.tiled.nests.tree import Tree
from oracles.nest_cases import group_of, groups_network, random_nest, random_whole
from oracles.nest_trial import operands_of


@pytest.mark.thorough
@settings(max_examples=200)
@given(st.integers(0, 10**9))
def test_every_use_finds_its_buffer_where_the_law_places_it(seed: int) -> None:
    random = Random(seed)
    network = groups_network(random)
    axes, operands, leaving = operands_of(network)
    whole, alignment = random_whole(random, sorted(operands)), random.choice((1, 1, 4))
    out = {n for n, b in enumerate(axes.buffers) if b.maker is not None and b.tensor in leaving}
    there = {n for n, b in enumerate(axes.buffers) if b.tensor in whole}
    outside = {
        b.name: b.maker is not None
        for n, b in enumerate(axes.buffers)
        if n not in there and (b.maker is None or n in out)
    }
    nest, wide = random_nest(random, axes, outside), random.choice((None, 2, 4))
    ids = [cut.operator for cut in axes.operators]
    try:
        law = nested(network, group_of(network, nest), ids, operands - whole, alignment, wide)
    except Broken:
        return
    tree = Tree(nest, axes, out, there, wide)
    found, extent = places_of(tree, axes, PlanChip("test", alignment, accumulator_bytes=wide))
    assert extent == law.layout.extent
    lives = {use: (p.first, p.last + 1, p.bytes) for p in law.layout.places for use in p.uses}
    beside = {(p.uses[0][0], p.carried): (p.first, p.last + 1, p.bytes) for p in law.layout.accumulators}
    for home, (start, end) in found.items():
        if isinstance(home, Beside):
            assert beside.pop((home.operator, home.values > 0)) == (*tree.lives(home), end - start)
            continue
        for use in home.uses:
            assert lives.pop(use) == (*tree.lives(home), end - start)
    assert not lives
    assert not beside
