"""Loops along which windows slide: the worked example of the law, rings, refusals, absurd sizes."""

from __future__ import annotations

import pytest
from nest_plans import slid

from onchip.check.nests import Nested, nested
from onchip.network import Network
from onchip.plans import Group, Leaf, Loop, Nest


def judged(network: Network, nest: Nest) -> Nested:
    members = tuple(op.name for op in network.operators)
    return nested(network, Group("g", members, 0, tiling=nest), range(len(members)), None, 1)


EXAMPLE = slid((8, 8, 4), ((1, 1, 3), (2, 1, 3)))
OVER = (("c1", 0), ("c2", 0))


@pytest.mark.parametrize(
    ("ring", "made", "there", "fetched", "crossing", "scratch"),
    [
        (("h1", "x"), [2, 2, 2, 2], [2, 3, 3, 3], [3, 2, 2, 1], 8 + 4, 8),
        (("h1",), [2, 2, 2, 2], [2, 3, 3, 3], [3, 4, 4, 3], 14 + 4, 7),
        ((), [2, 3, 3, 3], [2, 3, 3, 3], [3, 5, 5, 4], 17 + 4, 8),
    ],
)
def test_the_worked_example(
    ring: tuple[str, ...], made: list[int], there: list[int], fetched: list[int], crossing: int, scratch: int
) -> None:
    law = judged(EXAMPLE, Nest((Loop(OVER, 1, (Leaf("c1"), Leaf("c2")), ("x",), ring),)))
    (windows,) = law.layout.windows
    assert windows.turns == 4
    assert [*windows.made[0].lengths] == made
    assert [*windows.there[1].lengths] == there
    assert [*windows.moved[0].lengths] == fetched
    assert sum(law.crossing.values()) == crossing
    assert law.layout.need == scratch
