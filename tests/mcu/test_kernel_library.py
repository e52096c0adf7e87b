"""The library form: one kernel for all shapes of a kind, the same bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_cases import Walk, Windowed, distance, drive, random_input, windowed

from onchip.mcu.kernel import Pointer, Ram
from onchip.mcu.kernels.library import library_for, library_functions
from onchip.mcu.reference import layer_output


@given(layer=st.one_of(windowed(depthwise=False), windowed(depthwise=True)))
@settings(max_examples=60)
def test_any_shape_makes_the_reference_s_bytes_over_its_input(layer: Windowed) -> None:
    use = library_for(layer)
    assert use.function in library_functions()
    x, size = random_input(layer), int(np.prod(layer.output_shape))
    apart = distance(layer, Walk(use.pixels, use.channels, False))
    end = max(apart + x.size, size)
    ram = Ram(end + use.workspace)
    ram.put(Pointer("in", apart), x.tobytes())
    out = Pointer("out", 0)
    drive(use.function, layer, use.words, ram, Pointer("in", apart), out, patch=Pointer("patch", end))
    got = np.frombuffer(ram.get(out, size), np.int8).reshape(layer.output_shape)
    assert np.array_equal(got, layer_output(layer, [x]))
