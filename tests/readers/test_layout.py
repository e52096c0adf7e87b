"""A layout says the same as numpy does with real data, or says nothing."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onchip.readers.layout import Layout


def addresses(layout: Layout) -> list[int]:
    """Where each element lies, in row-major order of the layout's shape."""
    result = []
    for index in product(*(range(n) for n in layout.shape)):
        at = layout.offset
        for i, atoms in zip(index, layout.dims, strict=True):
            for size, stride in reversed(atoms):
                i, digit = divmod(i, size)
                at += digit * stride
        result.append(at)
    return result


def factorings(size: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes with this many elements."""

    @st.composite
    def shape(draw: st.DrawFn) -> tuple[int, ...]:
        rest, dims = size, []
        while rest > 1 and len(dims) < 4:
            dims.append(draw(st.sampled_from([d for d in range(1, rest + 1) if rest % d == 0])))
            rest //= dims[-1]
        return (*dims, rest) if rest > 1 or not dims else tuple(dims)

    return shape()


@pytest.mark.thorough
@given(st.data())
def test_a_layout_is_what_numpy_does(data: st.DataObject) -> None:
    shape = data.draw(
        st.lists(st.integers(1, 6), min_size=1, max_size=4).filter(lambda s: math.prod(s) <= 400)
    )
    array = np.arange(math.prod(shape)).reshape(shape)
    layout = Layout.whole(shape)
    for _ in range(data.draw(st.integers(0, 6))):
        kind = data.draw(st.sampled_from(["reshape", "transpose", "slice"]))
        if kind == "reshape":
            target = data.draw(factorings(array.size))
            following = layout.reshape(target)
            moved = array.reshape(target)
        elif kind == "transpose":
            order = data.draw(st.permutations(range(array.ndim)))
            following, moved = layout.transpose(order), array.transpose(order)
        else:
            axis = data.draw(st.integers(0, array.ndim - 1))
            start = data.draw(st.integers(0, array.shape[axis] - 1))
            step = data.draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
            most = len(range(start, array.shape[axis] if step > 0 else -1, step))
            count = data.draw(st.integers(1, most))
            following = layout.slice(axis, start, count, step)
            moved = np.take(array, range(start, start + count * step, step), axis=axis)
        if following is None:
            continue  # it may say nothing, and then the value is copied
        layout, array = following, moved
        assert layout.shape == array.shape
        assert layout.size == array.size
        assert addresses(layout) == array.reshape(-1).tolist()
        first = array.reshape(-1)[0]
        assert layout.contiguous == (array.reshape(-1) == np.arange(array.size) + first).all()


@pytest.mark.thorough
@given(st.data())
def test_reshapes_and_slices_of_a_tensor_as_it_lies_always_have_a_layout(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    layout = Layout.whole(shape)
    target = data.draw(factorings(layout.size))
    assert layout.reshape(target) == Layout.whole(target)
    axis = data.draw(st.integers(0, len(shape) - 1))
    start = data.draw(st.integers(0, shape[axis] - 1))
    assert layout.slice(axis, start, shape[axis] - start) is not None


def test_the_end_of_an_attention_block_has_a_layout() -> None:
    heads = Layout.whole((2, 4, 8, 16)).transpose((0, 2, 1, 3))
    merged = heads.reshape((2, 8, 64))
    assert merged is not None
    assert not merged.contiguous


def test_another_number_of_elements_is_refused() -> None:
    with pytest.raises(ValueError, match="6 elements cannot take the shape"):
        Layout.whole((2, 3)).reshape((4, 2))
