"""Outputs over operands inside nests: the search finds what hands found, and takes what the law says."""

from __future__ import annotations

from random import Random

import pytest

from nest_groups import NestCase, Walk, group_of, legal, named
from onchip.network.axes import GroupAxes
from onchip.planners.nests import NestSearch, scratch_of
from onchip.plans.nest import Leaf, Loop, Nest, leaves
from oracles.nest_trial import operands_of
from oracles.residuals import residual_network


def over(nest: Nest) -> list[str | None]:
    return [leaf.over for _, leaf in leaves(nest.body)]


def taken(group: GroupAxes, nest: Nest) -> tuple[int, int]:
    """The bytes that cross and the scratch, by a walk turn by turn; `y` leaves."""
    case = NestCase(group, frozenset(named(group, "y")), frozenset(), 1)
    assert legal(case, nest)
    walk = Walk(case, nest)
    return walk.bytes, walk.scratch


def test_an_output_that_leaves_lies_over_its_operand() -> None:
    # A product whose rows a softmax turns into the output: the rows lie in one place.
    group = group_of("m=8 d=4 n=6", ["mm: t(m,n) = x(m,d) w(d,n)", "sm: y(m,n) = t(m,*n) | n"])
    hand = Nest(
        (Loop((("mm", 0), ("sm", 0)), 4, (Leaf("mm", ((2, 1), (1, 1))), Leaf("sm", (), "t")), ("y",)),)
    )
    bytes_, room = taken(group, hand)
    found = NestSearch(group, named(group, "y")).best([], room)
    assert found is not None
    assert found.bytes <= bytes_
    assert over(found.nest) == [None, "t"]
    apart = NestSearch(group, named(group, "y"), in_place=False).best([], room)
    assert apart is None or apart.bytes > found.bytes


def test_an_operand_further_in_lies_under_its_output() -> None:
    # Each row of the softmax and of the sum is made in a pass; the sum is read outside of it.
    group = group_of(
        "m=8 d=4 n=6",
        ["sm: t(m,d) = x(m,*d) | d", "add: a(m,d) = t(m,d) x(m,d)", "mm: y(m,n) = a(m,d) w(d,n)"],
    )
    rows = Loop((("sm", 0), ("add", 0)), 1, (Leaf("sm"), Leaf("add", (), "t")), ("x",))
    hand = Nest((Loop((("sm", 0), ("add", 0), ("mm", 0)), 4, (rows, Leaf("mm", ((1, 1), (2, 1))))),))
    bytes_, room = taken(group, hand)
    found = NestSearch(group, named(group, "y")).best([], room)
    assert found is not None
    assert found.bytes <= bytes_
    assert "t" in over(found.nest)


@pytest.mark.parametrize("passes", [0, 2])
def test_nests_with_outputs_over_operands_take_what_the_law_says(passes: int) -> None:
    leaving_over = 0
    for seed in range(40):
        rng = Random(f"in place {seed}")
        group, _, tensors = operands_of(residual_network(rng, rng.choice((2, 3, 4))))
        leaving = [i for i, b in enumerate(group.buffers) if b.maker is not None and b.tensor in tensors]
        accumulator = rng.choice((None, 4))
        search = NestSearch(group, leaving, spine=seed % 3, passes=passes, accumulator=accumulator)
        least = 1 << 40
        for room in sorted(rng.randint(2, sum(b.bytes for b in group.buffers)) for _ in range(4)):
            found = search.best([], room)
            if found is None:
                continue
            assert found.scratch == scratch_of(group, leaving, [], found.nest, accumulator=accumulator)
            assert found.bytes <= least
            least = found.bytes
            makers = {group.buffers[b].maker for b in leaving}
            places = {op.name: at for at, op in enumerate(group.operators)}
            leaving_over += any(
                leaf.over is not None and places[leaf.operator] in makers
                for _, leaf in leaves(found.nest.body)
            )
    assert leaving_over > 0
