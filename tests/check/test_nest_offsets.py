"""The offsets of a nest's buffers: apart while they live, and no order of the three ends lower."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.check.nest_places import Held, offsets_of

LEAVES = 6

buffers = st.lists(
    st.tuples(st.integers(1, 9), st.integers(0, LEAVES - 1), st.integers(0, LEAVES - 1)).map(
        lambda b: (b[0], min(b[1:]), max(b[1:]))
    ),
    max_size=8,
)


def need_of(held: list[Held]) -> int:
    return max(sum(size for size, first, last in held if first <= leaf <= last) for leaf in range(LEAVES))


def extent_of(held: list[Held]) -> int:
    found = offsets_of(held, LEAVES, need_of(held))
    return max((at + size for at, (size, _, _) in zip(found, held, strict=True)), default=0)


@given(buffers)
def test_buffers_that_live_together_share_no_byte(held: list[Held]) -> None:
    found = offsets_of(held, LEAVES, need_of(held))
    for (at, a), (other, b) in combinations(zip(found, held, strict=True), 2):
        assert a[1] > b[2] or b[1] > a[2] or at + a[0] <= other or other + b[0] <= at
    assert extent_of(held) >= need_of(held)


@pytest.mark.parametrize(
    "held",
    [
        [(2, 0, 1), (3, 2, 3), (4, 1, 2), (2, 1, 1)],  # the largest first alone waste nothing
        [(2, 0, 1), (3, 1, 2), (4, 2, 3), (3, 0, 1)],  # those that begin first
        [(5, 0, 1), (4, 2, 3), (5, 1, 3), (3, 2, 3)],  # those that end last
    ],
)
def test_each_order_is_the_best_of_some(held: list[Held]) -> None:
    assert extent_of(held) == need_of(held)
