"""What the search says of a nest is what the checker derives of it, on groups wilder than any network's."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.check.nests import nested
from onchip.planners.nests import best_nest, widened
from oracles.nest_cases import group_of, groups_network, random_whole
from oracles.nest_trial import operands_of


@pytest.mark.thorough
@settings(max_examples=200)
@given(st.integers(0, 10**9))
def test_the_best_nest_moves_and_holds_what_the_law_says(seed: int) -> None:
    random = Random(seed)
    network = groups_network(random, 3)
    axes, operands, leaving = operands_of(network)
    whole, alignment = random_whole(random, sorted(operands)), random.choice((1, 1, 4))
    buffers = list(enumerate(axes.buffers))
    out = [n for n, b in buffers if b.maker is not None and b.tensor in leaving]
    there = [n for n, b in buffers if b.tensor in whole]
    room = random.randint(1, max(2, sum(b.bytes for b in axes.buffers)))
    wide = random.choice((None, None, 2, 3, 4))
    found = best_nest(axes, out, there, room, alignment=alignment, accumulator=wide)
    if found is None:
        return
    ids = [cut.operator for cut in axes.operators]
    larger = widened(axes, out, there, found.nest, room, alignment=alignment, accumulator=wide)
    for nest in (found.nest, larger):
        law = nested(network, group_of(network, nest), ids, operands - whole, alignment, wide)
        assert sum(law.crossing.values()) + law.weights == found.bytes
        assert law.layout.need == found.scratch if nest is found.nest else law.layout.need <= room
