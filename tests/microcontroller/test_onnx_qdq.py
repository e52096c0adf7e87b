"""Quantised ONNX files: the same arithmetic as a `.tflite` file's, beside onnxruntime's floats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from native import made_of, needs_compiler
from onnx_networks import SHAPE, Net, network

from onchip.base.errors import ModelError
from onchip.check import check
from onchip.microcontroller.emulator.verify import inputs_of
from onchip.microcontroller.int8.model import Int8, Int8Model
from onchip.microcontroller.int8.onnx_qdq.read import onnx_model_of
from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.load import int8_model
from onchip.microcontroller.network import network_of
from onchip.microcontroller.result.given_inputs import read_inputs
from onchip.microcontroller.result.microcontroller_plan import planned_for
from onchip.microcontroller.segments import SegmentOptions


def read(content: bytes) -> Int8Model:
    return onnx_model_of(content, name="net", where="net.onnx")


def real(model: Int8Model, x: Int8) -> Any:
    """The floats in the file's order that the bytes of an input are."""
    tensor = model.tensors[model.inputs[0]]
    values = (x.astype(np.float32) - np.float32(tensor.zero_point)) * np.float32(tensor.scale)
    return values.reshape(tensor.shape).transpose(0, 3, 1, 2)


def test_few_bytes_differ_from_onnxruntime_by_one_or_two() -> None:
    content = network(Net(1))
    model = read(content)
    [out] = (model.tensors[t] for t in model.outputs)
    assert model.originals[model.inputs[0]].channels_first
    session = onnxruntime.InferenceSession(content)
    inputs = inputs_of(model, 40)
    ours = np.stack([run(model, [x])[0].reshape(-1) for x in inputs]).astype(int)
    theirs = np.stack([session.run(None, {"image": real(model, x)})[0].reshape(-1) for x in inputs])
    off = np.abs(ours - (np.round(theirs / out.scale) + out.zero_point))
    assert off.max() <= 4
    assert (off > 0).mean() < 0.5
    assert len(np.unique(ours)) > 20


def test_unsigned_bytes_and_operators_on_integers_are_the_same_network() -> None:
    models = [
        read(network(Net(1, unsigned=unsigned, integers=integers)))
        for unsigned, integers in ((False, False), (True, False), (False, True))
    ]
    x = inputs_of(models[0], 1)
    made = [run(model, x)[0].tobytes() for model in models]
    assert made[0] == made[1] == made[2]


@needs_compiler
def test_the_c_makes_the_reference_s_bytes(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(network(Net(1)))
    model = int8_model(tmp_path / "net.onnx")
    plan = planned_for(network_of(model), 1 << 20, SegmentOptions()).plan
    assert check(plan) == plan.result
    inputs = inputs_of(model, 2)
    made = made_of(plan, model, tmp_path / "net", inputs, flags="")
    assert made == b"".join(run(model, [x])[0].tobytes() for x in inputs)


def test_inputs_of_the_user_may_have_channels_first_as_the_file(tmp_path: Path) -> None:
    model = read(network(Net(1)))
    x = np.random.default_rng(0).normal(0, 0.5, (2, 3, 9, 8)).astype(np.float32)
    made = []
    for i, given in enumerate((x, x.transpose(0, 2, 3, 1))):
        np.save(tmp_path / f"{i}.npy", given)
        made.append(read_inputs(tmp_path / f"{i}.npy", model))
    assert np.array_equal(*made)


def test_floats_behind_the_last_bytes_are_left_to_the_caller() -> None:
    net = Net(1)
    x = net.conv(net.quantised("image", 1 / 128), 3, 4)
    model = read(net.file(net.op("Softmax", [x], axis=1), SHAPE))
    [out] = model.outputs
    assert [label.partition(".")[0] for label in model.originals[out].through] == ["Softmax"]


def floats_inside(net: Net) -> str:
    x = net.op("Erf", [net.conv(net.quantised("image", 1 / 128), 3, 4)])
    net.conv(net.quantised(x, 0.1), 4, 4)
    return "floats can stand at the edge only"


def no_conversion(net: Net) -> str:
    net.op("Conv", ["image", net.constant(np.ones((2, 3, 1, 1), np.float32))])
    return "only networks of int8 or int16 are read, with floats at their edge"


def asymmetric_weights(net: Net) -> str:
    x = net.quantised("image", 1 / 128)
    zero = net.constant(np.uint8(7))
    weights = net.constant(net.random.integers(0, 256, (2, 3, 1, 1)).astype(np.uint8))
    w = net.op("DequantizeLinear", [weights, net.constant(np.float32(0.01)), zero])
    net.quantised(net.op("Conv", [x, w]), 0.1)
    return "with a zero point, further from it than int8 holds"


def a_clip_that_no_activation_is(net: Net) -> str:
    x = net.conv(net.quantised("image", 1 / 128), 3, 4)
    ends = [net.constant(np.float32(v)) for v in (-0.2, 0.3)]
    net.quantised(net.op("Clip", [x, *ends]), 0.1)
    return "clips to [-0.2, 0.3], which no activation does"


@pytest.mark.parametrize(
    "spoil", [floats_inside, no_conversion, asymmetric_weights, a_clip_that_no_activation_is]
)
def test_what_is_not_read_is_refused_in_one_line(spoil: Callable[[Net], str]) -> None:
    net = Net(0)
    message = spoil(net)
    with pytest.raises(ModelError) as caught:
        read(net.file(net.nodes[-1].output[0], SHAPE))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
