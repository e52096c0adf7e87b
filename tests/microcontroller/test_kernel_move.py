"""Kernels that pick bytes, in the form of every core: all rows, each from its places."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import frozen_array
from onchip.microcontroller.int8.move import Move
from onchip.microcontroller.kernel_language.interpret import Pointer, Ram, run
from onchip.microcontroller.kernels.move import move_use, piece_of


@st.composite
def moved(draw: st.DrawFn) -> Move:
    """A layer that picks pieces of equal length: places of each axis in steps, or anywhere from the first."""

    def places(most: int, apart: int) -> list[int]:
        count = draw(st.integers(1, most))
        if draw(st.booleans()):
            return [i * apart for i in range(count)]
        return [0, *draw(st.lists(st.integers(-40, 40), min_size=count - 1, max_size=count - 1))]

    piece = draw(st.sampled_from([1, 2, 3, 4, 6, 7, 8, 16, 19, 35]))
    pieces = places(3, draw(st.integers(0, 2 * piece)))
    channels = [start + i for start in pieces for i in range(piece)]
    columns, rows = places(4, len(channels)), places(3, 50)
    first = -(min(rows) + min(columns) + min(channels))
    rows = [row + first for row in rows]
    size = 1 + max(rows) + max(columns) + max(channels)
    return Move(
        name="m",
        inputs=(0,),
        output=1,
        input_shapes=((1, 1, 1, size),),
        output_shape=(1, len(rows), len(columns), len(channels)),
        rows=frozen_array(rows, np.int32),
        columns=frozen_array(columns, np.int32),
        channels=frozen_array(channels, np.int32),
    )


@pytest.mark.parametrize("forms", get_args(Forms))
@given(layer=moved(), data=st.data())
@settings(max_examples=60)
def test_every_byte_comes_from_its_place(forms: Forms, layer: Move, data: st.DataObject) -> None:
    use = move_use(layer, forms)
    function = use.make("m", use.shape)
    _, rows, columns, channels = layer.output_shape
    x = np.random.default_rng(0).integers(-128, 128, layer.input_shapes[0]).astype(np.int8)
    expected = layer.compute([x]).reshape(rows, columns * channels)
    x0 = data.draw(st.integers(0, columns))
    x1 = data.draw(st.integers(x0, columns))
    for y in range(rows):
        ram = Ram(x.size + columns * channels)
        ram.put(Pointer("x", 0), x.tobytes())
        out = Pointer("out", x.size)
        before = bytes(columns * channels)
        ram.put(out, before)
        given_values = {"lines": [Pointer("x", 0)], "out": out, "x0": x0, "x1": x1, "y": y}
        run(function, ram, {**given_values, "weights": use.words})
        made = np.frombuffer(ram.get(out, columns * channels), np.int8)
        assert np.array_equal(made[x0 * channels : x1 * channels], expected[y, x0 * channels : x1 * channels])
        assert not made[: x0 * channels].any()
        assert not made[x1 * channels :].any()


@pytest.mark.parametrize(
    ("places", "piece"),
    [([0], 1), ([3, 4, 5], 3), ([0, 1, 4, 5], 2), ([0, 1, 2, 4, 5, 6, 7, 8], 1), ([5, 4, 3], 1)],
)
def test_a_piece_is_what_lies_side_by_side_everywhere(places: list[int], piece: int) -> None:
    assert piece_of(frozen_array(places, np.int32)) == piece
