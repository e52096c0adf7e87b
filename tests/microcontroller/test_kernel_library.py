"""The library form: one kernel for all shapes of a kind, the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import Walk, Windowed, random_input, windowed
from test_kernel_windows import FORMS, run_overlapped

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Conv, Shape
from onchip.microcontroller.int8.reference import layer_output
from onchip.microcontroller.kernels.library import library_for, library_functions, library_workspace

ANY = st.one_of(windowed(depthwise=False), windowed(depthwise=True))


@pytest.mark.thorough
@given(layer=ANY, reverse=st.booleans(), further=st.integers(0, 9), forms=FORMS)
@settings(max_examples=40)
def test_any_shape_makes_the_reference_s_bytes_over_its_input(
    layer: Windowed, reverse: bool, further: int, forms: Forms
) -> None:
    use = library_for(layer, reverse=reverse, forms=forms)
    assert use.function in library_functions(forms)
    walk = Walk(use.pixels, use.channels, reverse)
    got = run_overlapped(layer, use.function, list(use.words), walk, use.workspace, further)
    assert np.array_equal(got, layer_output(layer, [random_input(layer)]))


def turned(layer: Windowed) -> Windowed:
    """The layer of the transposed map."""

    def shape(of: Shape) -> Shape:
        return of[0], of[2], of[1], of[3]

    top, left, bottom, right = layer.padding
    axes = (0, 2, 1, 3) if isinstance(layer, Conv) else (1, 0, 2)
    return replace(
        layer,
        weights=layer.weights.transpose(axes),
        stride=layer.stride[::-1],
        dilation=layer.dilation[::-1],
        padding=(left, top, right, bottom),
        input_shapes=(shape(layer.input_shapes[0]),),
        output_shape=shape(layer.output_shape),
    )


@pytest.mark.thorough
@given(layer=ANY, reverse=st.booleans())
@settings(max_examples=40)
def test_along_columns_it_is_the_layer_of_the_transposed_map(layer: Windowed, reverse: bool) -> None:
    use, other = (
        library_for(layer, columns=True, reverse=reverse),
        library_for(turned(layer), reverse=reverse),
    )
    assert (use.words, use.workspace, use.pixels) == (other.words, other.workspace, other.pixels)
    assert use.workspace <= library_workspace(layer)
