"""Files that are wrong or not supported: one line that names file and operator, whatever they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcontroller.int8_layers import KINDS
from microcontroller.interpreters import random_inputs
from onchip.base.errors import ModelError
from onchip.microcontroller.int8.read import model_of, read_model
from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.made import Builder
from onchip.microcontroller.made.flatbuffer import FileOperator, FileTensor, write
from onchip.microcontroller.network import network_of

Tensors = list[FileTensor]
Operators = list[FileOperator]


def small() -> tuple[Tensors, Operators]:
    """A convolution, a pool, an addition: tensors are input, weights, bias, conv, pool, sum."""
    b = Builder(0)
    x = b.conv(b.input((1, 6, 6, 3)), 4, 3, activation="RELU")
    b.add(b.max_pool(x, 3, 1, padding="SAME"), x)
    return b.tensors, b.operators


def refusal(tensors: Tensors, operators: Operators, outputs: tuple[int, ...] = (5,)) -> str:
    with pytest.raises(ModelError) as caught:
        model_of(write(tensors, operators, [0], outputs), name="net", where="net.tflite")
    message = str(caught.value)
    assert message.startswith("net.tflite: ")
    assert "\n" not in message
    return message


def test_the_file_that_is_spoilt_below_is_sound() -> None:
    tensors, operators = small()
    assert len(model_of(write(tensors, operators, [0], [5]), name="net", where="net.tflite").layers) == 3


def test_a_concat_of_nothing() -> None:
    b = Builder(0)
    x = b.input((1, 2, 3, 4))
    b.concat(x, x)
    b.operators[-1] = replace(b.operators[-1], inputs=())
    assert refusal(b.tensors, b.operators, (1,)) == "net.tflite: CONCATENATION.0: joins nothing"


INPUT, WEIGHTS, BIAS, CONV, POOL, SUM = range(6)


@pytest.mark.parametrize(
    ("tensor", "change", "message"),
    [
        (CONV, {"scales": ()}, "CONV_2D.0: has map3 without a scale: the network is not quantised"),
        (CONV, {"scales": (0.0,)}, "CONV_2D.0: has map3 with scale 0.0"),
        (CONV, {"scales": (-1.0,)}, "CONV_2D.0: has map3 with scale -1.0"),
        (CONV, {"scales": (float("nan"),)}, "CONV_2D.0: has map3 with scale nan"),
        (CONV, {"scales": (float("inf"),)}, "CONV_2D.0: has map3 with scale inf"),
        (CONV, {"scales": (1e-44,)}, "CONV_2D.0: scales by"),
        (CONV, {"scales": (1e-20,)}, "CONV_2D.0: scales by"),
        (CONV, {"zero_points": (200,)}, "CONV_2D.0: has map3 with zero point 200, which is no INT8"),
        (CONV, {"scales": (1.0, 1.0), "zero_points": (0, 0)}, "CONV_2D.0: has map3 with 2 scales"),
        (CONV, {"zero_points": ()}, "CONV_2D.0: has map3 with 1 scales"),
        (CONV, {"shape": (1, 6, 7, 4)}, "CONV_2D.0: makes [1, 6, 7, 4] of [1, 6, 6, 3]"),
        (CONV, {"shape": (2, 6, 6, 4)}, "CONV_2D.0: has map3 of shape [2, 6, 6, 4]: a batch of 2"),
        (
            CONV,
            {"shape": (1, 1, 1, 6, 6, 4, 1)},
            "CONV_2D.0: has map3 of shape [1, 1, 1, 6, 6, 4, 1]: a batch",
        ),
        (
            CONV,
            {"shape": (2, 1, 6, 6, 4)},
            "CONV_2D.0: has map3 of shape [2, 1, 6, 6, 4]: more than four axes",
        ),
        (CONV, {"shape": (1, 0, 6, 4)}, "CONV_2D.0: makes"),
        (CONV, {"shape": (1, 6, 6, -4)}, "tensor map3: has shape [1, 6, 6, -4]: not between"),
        (INPUT, {"shape": (1, 6, 6, 4)}, "CONV_2D.0: has weights of shape [4, 3, 3, 3]"),
        (INPUT, {"shape": (1, 40000, 40000, 3)}, "tensor input: has shape [1, 40000, 40000, 3]: not between"),
        (INPUT, {"shape": (1, -1, 6, 3)}, "tensor input: has shape"),
        (INPUT, {"element": "FLOAT32"}, "CONV_2D.0: reads input of FLOAT32: only networks of int8 or int16"),
        (INPUT, {"element": "INT16", "zero_points": (3,)}, "CONV_2D.0: has input of INT16 with zero point 3"),
        (WEIGHTS, {"zero_points": (0, 1, 0, 0)}, "CONV_2D.0: has weights weights1 with a zero point"),
        (WEIGHTS, {"axis": 1}, "CONV_2D.0: has weights weights1 with 4 scales along axis 1"),
        (WEIGHTS, {"scales": (1.0, 1.0)}, "CONV_2D.0: has weights weights1 with 2 scales along axis 0"),
        (WEIGHTS, {"scales": ()}, "CONV_2D.0: has weights weights1 without a scale"),
        (WEIGHTS, {"scales": (1.0, 1.0, 1.0, 0.0)}, "CONV_2D.0: has weights1 with scale 0.0"),
        (WEIGHTS, {"data": None}, "CONV_2D.0: has weights weights1 that are no plain constant"),
        (WEIGHTS, {"element": "UINT8"}, "CONV_2D.0: has weights weights1 that are no plain constant"),
        (BIAS, {"data": np.zeros(3, np.int32), "shape": (3,)}, "CONV_2D.0: has 3 biases for 4 output"),
        (BIAS, {"data": np.zeros(4, np.int64), "element": "INT64"}, "CONV_2D.0: has biases"),
        (POOL, {"scales": (0.5,)}, "MAX_POOL_2D.1: changes scale from"),
        (POOL, {"zero_points": (-9,)}, "MAX_POOL_2D.1: changes scale from"),
        (SUM, {"shape": (83886081, 6, 6, 4)}, "BROADCAST_TO.2: makes map4_spread of shape"),
        (SUM, {"scales": (1e-12,)}, "ADD.2: adds operands of scale"),
        (SUM, {"shape": (1, 36, 4)}, "ADD.2: "),
    ],
)
def test_a_spoilt_tensor_is_refused(tensor: int, change: dict[str, Any], message: str) -> None:
    tensors, operators = small()
    tensors[tensor] = replace(tensors[tensor], **change)
    assert message in refusal(tensors, operators)


@pytest.mark.parametrize(
    ("operator", "options", "message"),
    [
        (0, {"StrideH": 0}, "CONV_2D.0: has kernel [3, 3], stride [0, 1]"),
        (0, {"DilationWFactor": -2}, "CONV_2D.0: has kernel"),
        (0, {"StrideH": 2}, "CONV_2D.0: makes [1, 6, 6, 4] of [1, 6, 6, 3], which SAME padding does not"),
        (0, {"Padding": 1}, "CONV_2D.0: makes [1, 6, 6, 4] in the file, and [1, 4, 4, 4]"),
        (0, {"FusedActivationFunction": 4}, "CONV_2D.0: has fused activation 4"),
        (0, {"FusedActivationFunction": -1}, "CONV_2D.0: has fused activation -1"),
        (1, {"FilterHeight": 1 << 20}, "MAX_POOL_2D.1: has kernel"),
        (1, {"FilterHeight": 0}, "MAX_POOL_2D.1: has kernel [0, 3]"),
    ],
)
def test_spoilt_options_are_refused(operator: int, options: dict[str, int], message: str) -> None:
    tensors, operators = small()
    old = operators[operator]
    operators[operator] = replace(old, options={**old.options, **options})
    assert message in refusal(tensors, operators)


def without_options(operators: Operators) -> None:
    operators[0] = replace(operators[0], table="", options={})


def other_kind(operators: Operators) -> None:
    operators[1] = replace(operators[1], type="ONE_HOT", table="", options={})


def without_weights(operators: Operators) -> None:
    operators[0] = replace(operators[0], inputs=(0,))


def weights_left_away(operators: Operators) -> None:
    operators[0] = replace(operators[0], inputs=(0, -1, -1))


def in_another_order(operators: Operators) -> None:
    operators.reverse()


def made_twice(operators: Operators) -> None:
    operators[1] = replace(operators[1], outputs=(3,))


def two_outputs(operators: Operators) -> None:
    operators[0] = replace(operators[0], outputs=(3, 4))


def no_such_tensor(operators: Operators) -> None:
    operators[0] = replace(operators[0], inputs=(0, 1, 77))


def writes_a_constant(operators: Operators) -> None:
    operators[0] = replace(operators[0], outputs=(2,))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (without_options, "CONV_2D.0: has no option StrideH"),
        (other_kind, "ONE_HOT.1: is not supported; supported are ABS, ADD, "),
        (without_weights, "CONV_2D.0: lacks its input 1"),
        (weights_left_away, "CONV_2D.0: lacks its input 1"),
        (in_another_order, "ADD.0: reads "),
        (made_twice, "MAX_POOL_2D.1: writes map3, which is there already"),
        (two_outputs, "CONV_2D.0: has 2 outputs, not one"),
        (no_such_tensor, "CONV_2D.0: names tensor 77 of 6"),
        (writes_a_constant, "CONV_2D.0: writes bias2, which is there already"),
    ],
)
def test_spoilt_operators_are_refused(spoil: Callable[[Operators], None], message: str) -> None:
    tensors, operators = small()
    spoil(operators)
    assert message in refusal(tensors, operators)


def test_outputs_that_are_not_made_are_refused() -> None:
    assert "outputs: has no outputs" in refusal(*small(), ())
    assert "outputs: names tensor 99 of 6" in refusal(*small(), (99,))
    assert "output input: is an input of the network" in refusal(*small(), (0,))
    assert "output weights1: is made by no operator" in refusal(*small(), (1,))


def test_names_with_anything_in_them_make_one_line() -> None:
    tensors, operators = small()
    tensors[CONV] = replace(tensors[CONV], name='"); system("x\n', scales=())
    assert r'has "); system("x\n without a scale' in refusal(tensors, operators)


def test_floats_inside_are_refused() -> None:
    b = Builder(0)
    x = b.conv(b.input((1, 4, 4, 3)), 4)
    b.tensors.append(FileTensor("real", x.shape, "FLOAT32"))
    b.operators.append(FileOperator("DEQUANTIZE", (x.index,), (4,), "DequantizeOptions"))
    b.tensors.append(FileTensor("again", x.shape, "INT8", None, (0.1,), (0,)))
    b.tensors.append(FileTensor("shares", x.shape, "FLOAT32"))
    b.operators.append(FileOperator("SOFTMAX", (4,), (6,), "SoftmaxOptions"))
    b.operators.append(FileOperator("QUANTIZE", (6,), (5,), "QuantizeOptions"))
    assert "QUANTIZE.3: " in refusal(b.tensors, b.operators)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.tflite"
    path.write_bytes(b"GIF89a__________")
    with pytest.raises(ModelError, match=r"x\.tflite: is no TensorFlow Lite model"):
        read_model(path)
    with pytest.raises(ModelError, match=r"y\.tflite: no such file"):
        read_model(tmp_path / "y.tflite")


@pytest.mark.thorough
@settings(max_examples=100)
@given(st.sampled_from(sorted(KINDS)), st.data())
def test_scales_of_any_size_are_refused_or_computed_with(kind: str, data: st.DataObject) -> None:
    b = Builder(0, samples=1)
    end = KINDS[kind](b, data)
    quantised = [i for i, t in enumerate(b.tensors) if t.scales]
    for i in data.draw(st.lists(st.sampled_from(quantised), min_size=1, max_size=3)):
        scale = data.draw(st.sampled_from((3e38, 1e30, 1e8, 1e-8, 1e-30, 1.2e-38)))
        b.tensors[i] = replace(b.tensors[i], scales=(scale,) * len(b.tensors[i].scales))
    said = "net.tflite: "
    try:
        model = model_of(b.file(end), name="net", where="net.tflite")
        run(model, random_inputs(model, 0))
    except ModelError as refused:
        said = str(refused)
    assert said.startswith("net.tflite: ")


@cache
def sound() -> bytes:
    b = Builder(0)
    x = b.conv(b.pad(b.input((1, 6, 6, 3)), (1, 1, 1, 1)), 4, 3, padding="VALID")
    x = b.add(b.depthwise(x), b.constant((1, 1, 1, 4)))
    x = b.reshape(b.mean(b.hard_swish(b.concat(x, b.prelu(x)))), (1, 8))
    return b.file(b.softmax(b.fully_connected(x, 3)))


@pytest.mark.thorough
@settings(max_examples=200)
@given(data=st.data())
def test_what_is_damaged_is_refused_in_one_line_or_computes(data: st.DataObject) -> None:
    content = bytearray(sound())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))]
    said = "net.tflite: "
    try:
        model = model_of(bytes(content), name="net", where="net.tflite")
        network_of(model)
        if sum(t.bytes for t in model.tensors) < 1 << 16:
            run(model, random_inputs(model, 0))
    except ModelError as refused:
        said = str(refused)
    assert said.startswith("net.tflite: ")
    assert "\n" not in said
