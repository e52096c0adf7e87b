"""What the search says of a nest is what the checker derives of it, on groups wilder than any network's."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.check.nests import nested
from onchip.network import Network, OperatorSpec, Reach, Side
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


def test_windows_over_a_whole_tensor_made_beside_them_are_no_slices() -> None:
    """One of those that share slices steps by two over what another makes, by one over what both read."""
    network = Network.build(
        "steps",
        [("x", 5, "input"), ("a", 5, "activation"), ("b", 5, "activation"), ("y", 5, "activation")],
        [
            OperatorSpec("f", "Any", ["x"], ["a"], reach=Reach((5,), ((Side(5, 0),),))),
            OperatorSpec("g", "Any", ["a"], ["b"], reach=Reach((5,), ((Side(5, 0),),))),
            OperatorSpec(
                "h", "Any", ["a", "b"], ["y"], reach=Reach((5,), ((Side(5, 0),), (Side(5, 0, 2, 1),)))
            ),
        ],
        ["b", "y"],
    )
    axes, operands, leaving = operands_of(network)
    out = [n for n, b in enumerate(axes.buffers) if b.maker is not None and b.tensor in leaving]
    there = [n for n, b in enumerate(axes.buffers) if b.name == "b"]
    whole = frozenset(t for n in there if (t := axes.buffers[n].tensor) is not None)
    for room in range(1, 16):
        found = best_nest(axes, out, there, room, passes=3, windows=1)
        if found is not None:
            law = nested(network, group_of(network, found.nest), list(network.order), operands - whole, 1)
            assert sum(law.crossing.values()) == found.bytes
            assert law.layout.need == found.scratch
