"""The planners' view of an int8 network: sizes, weights and walks of its layers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcontroller.int8_layers import KINDS
from microcontroller.interpreters import random_inputs
from onchip.microcontroller.int8.model import Conv, Depthwise, FullyConnected
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import layer_output
from onchip.microcontroller.int8.shapes import macs
from onchip.microcontroller.made import Builder, made_model
from onchip.microcontroller.network import network_of


def test_operators_are_the_layers_and_tensors_the_activations() -> None:
    model = model_of(made_model("made:kws"), name="kws", where="kws")
    network = network_of(model)
    assert [op.name for op in network.operators] == [layer.name for layer in model.layers]
    assert [op.work for op in network.operators] == [macs(layer) for layer in model.layers]
    held = sum(
        layer.weights.size + 8 * layer.bias.size
        for layer in model.layers
        if isinstance(layer, Conv | Depthwise | FullyConnected)
    )
    assert held < network.weight_bytes < 1.25 * held
    assert sum(t.bytes for t in network.tensors if t.kind == "input") == 490
    assert max(t.bytes for t in network.tensors) == 25 * 5 * 64


@pytest.mark.thorough
@settings(max_examples=80)
@given(st.sampled_from(sorted(KINDS)), st.data())
def test_a_geometry_names_all_that_an_output_pixel_depends_on(kind: str, data: st.DataObject) -> None:
    """Changing an input row outside the windows of an output row changes nothing in that row."""
    b = Builder(data.draw(st.integers(0, 100)), samples=1)
    model = model_of(b.file(KINDS[kind](b, data)), name=kind, where=kind)
    for layer, op in zip(model.layers, network_of(model).operators, strict=True):
        geometry = op.geometry
        assert geometry is not None
        if geometry.kind not in ("conv", "depthwise", "pool", "pad"):
            continue
        rows, made = layer.input_shapes[0][1], layer.output_shape[1]
        kernel, stride = (*geometry.kernel, 1, 1)[0], (*geometry.stride, 1, 1)[0]
        dilation = (*geometry.dilation, 1, 1)[0]
        y = data.draw(st.integers(0, made - 1))
        top = y * stride - geometry.padding[0]
        read = {top + k * dilation for k in range(kernel)} & set(range(rows))
        rng = np.random.default_rng(0)
        x = [rng.integers(-128, 128, shape, np.int8) for shape in layer.input_shapes]
        other = x[0].copy()
        for row in set(range(rows)) - read:
            other[:, row] = rng.integers(-128, 128, other[:, row].shape, np.int8)
        assert np.array_equal(layer_output(layer, x)[:, y], layer_output(layer, [other, *x[1:]])[:, y])


def test_inputs_may_have_any_shape_of_the_right_size() -> None:
    from onchip.microcontroller.int8.reference import run

    model = model_of(made_model("made:ad01"), name="ad01", where="ad01")
    [x] = random_inputs(model, 0)
    assert np.array_equal(run(model, [x])[0], run(model, [x.reshape(640)])[0])
