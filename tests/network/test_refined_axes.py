"""The refined axes of wild groups: sides multiply to the elements, and boxes are those of the reach."""

from __future__ import annotations

from itertools import product
from math import prod
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.network.axes import ALL, GroupAxes, Use, axes_of
from oracles.nest_cases import groups_network


def refined(seed: int) -> tuple[Network, GroupAxes]:
    network = groups_network(Random(seed), windows=seed % 2 == 1)
    axes = axes_of(network, network.order)
    assert not isinstance(axes, str), axes
    return network, axes


@pytest.mark.thorough
@settings(max_examples=150)
@given(st.integers(0, 10**9))
def test_axes_and_sides_multiply_to_what_they_cut(seed: int) -> None:
    network, group = refined(seed)
    for cut in group.operators:
        op = network.operators[cut.operator]
        assert op.reach is not None
        assert prod(cut.axes[: cut.outputs]) == prod(op.reach.output)
        assert prod(cut.axes[a] for a in cut.sums) == prod(op.reach.sums)
        for use in cut.uses:
            buffer = group.buffers[use.buffer]
            along = [a for a in use.axes if a != ALL]
            assert len(set(along)) == len(along)
            assert all(
                cut.axes[a] == size for a, size in zip(use.axes, buffer.sides, strict=True) if a != ALL
            )
        made = group.buffers[cut.writes.buffer]
        left = [a for a in range(cut.outputs) if cut.axes[a] > 1 and a not in cut.writes.axes]
        assert cut.together.issuperset(left)
        assert made.first == (0,) * len(made.sides)
    for buffer in group.buffers:
        assert all(f + n <= w for f, n, w in zip(buffer.first, buffer.sides, buffer.whole, strict=True))
        if buffer.tensor is not None:
            end = (buffer.offset + prod(buffer.whole)) * buffer.element
            assert end <= network.tensors[buffer.tensor].bytes
            assert buffer.maker is None or (buffer.offset, end) == (0, network.tensors[buffer.tensor].bytes)
    used = [use.buffer for cut in group.operators for use in cut.uses]
    assert set(used) == set(range(len(group.buffers)))


@pytest.mark.thorough
@settings(max_examples=100)
@given(st.integers(0, 10**9))
def test_the_box_of_a_use_holds_what_the_reach_needs_and_no_more_where_all_sides_follow(seed: int) -> None:
    network, group = refined(seed)
    random = Random(seed)
    for cut in group.operators:
        op = network.operators[cut.operator]
        assert op.reach is not None
        output = tuple(Side(n, i) for i, n in enumerate(op.reach.output))
        sides = (*op.reach.reads, *(c.sides or (Side(c.bytes),) for c in op.reach.weights), output)
        tensors = (*op.inputs, *(None for _ in op.reach.weights), *op.outputs)
        for use, own, t in zip(cut.uses, sides, tensors, strict=True):
            element = group.buffers[use.buffer].element
            view = None if t is None else (network.offset[t] // element, network.tensors[t].bytes // element)
            for place in random.sample(range(prod(cut.axes)), min(8, prod(cut.axes))):
                there = box(group, use, digits(place, cut.axes))
                needs = needed(own, digits(place, op.reach.extents))
                if view is not None:  # the bytes of its root
                    needs = {view[0] + n for n in needs}
                    assert (view[1] < prod(group.buffers[use.buffer].whole)) == bool(use.seen)
                if use.seen:
                    there = {n for n in there if view and view[0] <= n < sum(view)}
                assert needs <= there
                if use.seen:
                    continue
                if all(axis != ALL or window for axis, window in zip(use.axes, use.slides, strict=True)):
                    assert needs == there


def box(group: GroupAxes, use: Use, at: list[int]) -> set[int]:
    """The elements of the whole tensor that a turn of one index along each axis has there."""
    buffer = group.buffers[use.buffer]
    ranges = [
        range(first, first + n) if a == ALL else range(first + at[a], first + at[a] + 1)
        for a, n, first in zip(use.axes, buffer.sides, buffer.first, strict=True)
    ]
    for side, window in enumerate(use.slides):
        if window is not None:
            low = (at[window.axis] * window.stride - window.before) // window.per
            first, n = buffer.first[side], buffer.sides[side]
            assert (window.size, use.axes[side]) == (n, ALL)
            ranges[side] = range(first + max(0, low), first + min(n, low + window.span))
    return {buffer.offset + flat(index, buffer.whole) for index in product(*ranges)}


def needed(sides: tuple[Side, ...], at: list[int]) -> set[int]:
    ranges = []
    for side in sides:
        low = ((0 if side.axis < 0 else at[side.axis]) * side.stride - side.before) // side.per
        ranges.append(range(max(0, low), min(side.size, low + side.span)))
    return {flat(index, tuple(side.size for side in sides)) for index in product(*ranges)}


def digits(place: int, sizes: tuple[int, ...]) -> list[int]:
    found = []
    for n in reversed(sizes):
        place, digit = divmod(place, n)
        found.append(digit)
    return found[::-1]


def flat(index: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    place = 0
    for i, n in zip(index, sizes, strict=True):
        place = place * n + i
    return place


@pytest.mark.parametrize("before", [-9, 9])
def test_a_window_that_never_meets_its_tensor_has_one_index_of_it(before: int) -> None:
    reach = Reach((2,), ((Side(5, 0, 1, before, 1),),))
    network = Network.build(
        "beyond",
        [("x", 5, "input"), ("y", 2, "activation")],
        [OperatorSpec("f", "Any", ["x"], ["y"], reach=reach)],
        ["y"],
    )
    group = axes_of(network, network.order)
    assert not isinstance(group, str)
    assert (group.buffers[0].sides, group.buffers[0].first) == ((1,), (0 if before > 0 else 4,))
