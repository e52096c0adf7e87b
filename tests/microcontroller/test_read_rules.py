"""What reading names away or merges: fewer layers, the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from microcontroller.interpreters import litert, random_inputs, tflm
from onchip.microcontroller.int8.factors import Scale
from onchip.microcontroller.int8.model import Int8, Int8Model, Pad, kind
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import run
from onchip.microcontroller.made import Builder, WideBuilder
from onchip.microcontroller.made.flatbuffer import FileOperator, FileTensor, write
from onchip.microcontroller.network import network_of


def read(content: bytes) -> Int8Model:
    """The model, equal to the interpreters that it follows on some inputs."""
    model = model_of(content, name="net", where="net.tflite")
    interpreters = [lambda *given: litert(*given)[0], tflm]
    if "FullyConnected" in kinds(model):
        del interpreters[0]
    for seed in range(3):
        inputs = random_inputs(model, seed)
        ours = [y.reshape(-1) for y in run(model, inputs)]
        for interpreter in interpreters:
            theirs = interpreter(content, model, inputs)
            assert all(np.array_equal(a, b.reshape(-1)) for a, b in zip(ours, theirs, strict=True))
    assert network_of(model).operators
    return model


def kinds(model: Int8Model) -> list[str]:
    return [kind(layer) for layer in model.layers]


def test_padding_goes_into_all_that_read_it() -> None:
    b = Builder(1)
    x = b.conv(b.input((1, 9, 8, 3)), 4, activation="RELU")
    padded = b.pad(x, (1, 0, 2, 1))
    one = b.conv(padded, 4, 3, 2, padding="VALID")
    two = b.depthwise(padded, 3, 2, padding="VALID")
    model = read(b.file(b.add(one, two)))
    assert kinds(model) == ["Conv", "Conv", "Depthwise", "Add"]
    assert model.layers[1].input_shapes == ((1, 9, 8, 4),)


def test_padding_of_the_smallest_byte_goes_into_a_maximum() -> None:
    b = Builder(2)
    x = b.conv(b.input((1, 6, 6, 3)), 4, activation="RELU")
    assert x.scale.zero_point == -128
    assert kinds(read(b.file(b.max_pool(b.pad(x, (1, 1, 1, 1)), 3, 2)))) == ["Conv", "MaxPool"]


@pytest.mark.parametrize("other", ["average", "maximum", "output", "channels", "same"])
def test_padding_stays_where_somebody_cannot_take_it(other: str) -> None:
    b = Builder(3)
    x = b.conv(b.input((1, 6, 6, 3)), 4)
    assert x.scale.zero_point > -128
    padded = b.pad(x, (1, 1, 1, 1), (0, 2) if other == "channels" else (0, 0))
    ends = [b.conv(padded, 4, 3, padding="VALID")]
    if other == "average":
        ends.append(b.average_pool(padded, 3))
    elif other == "maximum":
        ends.append(b.max_pool(padded, 3))
    elif other == "output":
        ends.append(padded)
    elif other == "same":
        ends.append(b.add(padded, padded))
    assert "Pad" in kinds(read(b.file(*ends)))


def test_what_moves_no_byte_is_no_layer() -> None:
    b = Builder(4)
    x = b.pad(b.conv(b.input((1, 4, 4, 3)), 6, 3, 2), (0, 0, 0, 0))
    x = b.fully_connected(b.reshape(x, (1, 24)), 8)
    x = b.conv(b.reshape(x, (1, 2, 2, 2)), 3, 2, padding="VALID")
    model = read(b.file(b.reshape(b.mean(x), (1, 3))))
    assert kinds(model) == ["Conv", "FullyConnected", "Conv"]
    assert model.layers[2].input_shapes == ((1, 2, 2, 2),)
    assert model.tensors[model.layers[2].inputs[0]].shape == (1, 1, 1, 8)


def test_means_over_one_axis_each_stay_two_layers_over_the_axes_as_they_lie() -> None:
    b = Builder(5)
    x = b.conv(b.input((1, 5, 7, 3)), 6)
    model = read(b.file(b.mean_channels_first(x)))
    assert [layer.axes for layer in model.layers if hasattr(layer, "axes")] == [(2,), (1,)]
    assert [layer.output_shape for layer in model.layers[1:]] == [(1, 5, 1, 6), (1, 1, 1, 6)]


def test_a_mean_over_one_place_is_the_place() -> None:
    b = Builder(6)
    x = b.conv(b.input((1, 1, 7, 3)), 6)
    assert kinds(read(b.file(b.mean_channels_first(x)))) == ["Conv", "Mean"]


def test_floats_at_the_ends_are_cut_off_and_their_scales_kept() -> None:
    b = Builder(7)
    x = b.input((1, 5, 5, 3), 0.02, 7, floats=True)
    model = read(b.file(b.conv(x, 4, 3), floats=True))
    assert kinds(model) == ["Conv"]
    [fed], [made] = model.inputs, model.outputs
    assert (model.tensors[fed].name, model.tensors[fed].zero_point) == ("input", 7)
    assert model.tensors[fed].scale == pytest.approx(0.02)
    assert model.tensors[made].name == "output0"


def test_unsigned_bytes_at_the_ends_are_cut_off() -> None:
    def tensor(name: str, element: str, zero: int) -> FileTensor:
        return FileTensor(name, (1, 4, 4, 2), element, None, (0.5,), (zero,))

    unsigned, signed = ("UINT8", 130), ("INT8", 2)
    content = write(
        [tensor("in", *unsigned), tensor("x", *signed), tensor("y", *signed), tensor("out", *unsigned)],
        [
            FileOperator("QUANTIZE", (0,), (1,), "QuantizeOptions"),
            FileOperator("MAX_POOL_2D", (1,), (2,), "Pool2DOptions", {
                "Padding": 0, "StrideH": 1, "StrideW": 1, "FilterHeight": 3, "FilterWidth": 3,
            }),
            FileOperator("QUANTIZE", (2,), (3,), "QuantizeOptions"),
        ],
        [0],
        [3],
    )  # fmt: skip
    model = read(content)
    assert kinds(model) == ["MaxPool"]
    assert [model.tensors[t].zero_point for t in (*model.inputs, *model.outputs)] == [2, 2]


def test_a_quantize_between_scales_is_a_table_and_one_that_changes_nothing_is_none() -> None:
    b = Builder(8)
    x = b.conv(b.input((1, 4, 4, 3)), 4)
    same = b.quantize(x, x.scale)
    other = b.quantize(x, Scale(x.scale.scale * 2, 5))
    assert kinds(read(b.file(b.add(same, other)))) == ["Conv", "Quantize", "Add"]


def test_layers_that_no_output_depends_on_are_left_out() -> None:
    b = Builder(9)
    x = b.input((1, 4, 4, 3))
    b.conv(x, 9, 3)
    model = read(b.file(b.depthwise(x)))
    assert kinds(model) == ["Depthwise"]
    assert [t.id for t in model.tensors] == [0, 1]


def test_the_smaller_operand_is_the_second() -> None:
    b = Builder(10)
    x = b.input((1, 4, 4, 3))
    gate = b.logistic(b.mean(x))
    model = read(b.file(b.add(gate, x)))
    assert model.layers[-1].input_shapes == ((1, 4, 4, 3), (1, 1, 1, 3))


def test_a_matrix_is_applied_to_every_pixel_of_a_map() -> None:
    b = Builder(12)
    x = b.reshape(b.conv(b.input((1, 2, 3, 4)), 8, 3), (6, 8))
    flat = b.fully_connected(x, 5)
    tensors = list(b.tensors)
    [end] = b.operators[-1].outputs
    reshape = next(op for op in b.operators if op.type == "RESHAPE")
    operators = [op for op in b.operators if op is not reshape]
    operators[-1] = replace(operators[-1], inputs=(reshape.inputs[0], *operators[-1].inputs[1:]))
    model = read(write(tensors, operators, b.inputs, [end]))
    [layer] = model.layers[1:]
    assert layer.input_shapes == ((1, 2, 3, 8),)
    assert layer.output_shape == model.tensors[layer.output].shape == (1, 2, 3, 5)
    assert np.array_equal(run(model, [b_input(b)])[0].reshape(-1), flat.samples[0].reshape(-1))


def b_input(b: Builder) -> Int8:
    """The first sample of a builder's input, drawn again."""
    again = Builder(12)
    return again.input(b.tensors[b.inputs[0]].shape).samples[0]


def test_axes_of_one_index_in_front_change_nothing() -> None:
    b = Builder(13)
    x = b.conv(b.input((1, 4, 4, 3)), 4)
    deep = b.logistic(b.reshape(x, (1, 1, 4, 4, 4)))
    model = read(b.file(b.max_pool(b.reshape(deep, (1, 4, 4, 4)), 2)))
    assert kinds(model) == ["Conv", "Logistic", "MaxPool"]


def test_padding_with_a_value() -> None:
    b = Builder(14)
    x = b.conv(b.input((1, 4, 4, 3)), 4)
    padded = b.pad(x, (0, 1, 2, 0))
    value = replace(b.tensors[x.index], name="value", shape=(1,), data=np.array([-77], np.int8))
    b.tensors.append(value)
    pad = b.operators[-1]
    b.operators[-1] = replace(
        pad, type="PADV2", table="PadV2Options", inputs=(*pad.inputs, len(b.tensors) - 1)
    )
    model = read(b.file(padded))
    [layer] = [layer for layer in model.layers if isinstance(layer, Pad)]
    assert (layer.value, layer.padding) == (-77, (0, 1, 2, 0))


def test_several_inputs_and_outputs_keep_their_order() -> None:
    b = Builder(11)
    x, y = b.input((1, 4, 4, 3)), b.input((1, 4, 4, 3), 0.3, -5)
    both = b.add(x, y)
    model = read(b.file(b.depthwise(both), both))
    assert [model.tensors[t].name for t in model.inputs] == ["input", "input1"]
    assert len(model.outputs) == 2
    assert model.producer[model.outputs[1]].name.startswith("ADD")


def test_floats_of_a_transposed_map_come_in_the_file_s_order() -> None:
    b = WideBuilder(3)
    x = b.conv(b.input((1, 5, 5, 3), 0.02, 7, floats=True), 4, 3)
    model = read(b.file(b.transpose(x, (0, 3, 1, 2)), floats=True))
    assert [model.tensors[t].shape for t in model.outputs] == [(1, 4, 5, 5)]


@pytest.mark.parametrize("multiplier", [1, 5, 8])
def test_a_depthwise_convolution_of_one_channel_is_a_convolution(multiplier: int) -> None:
    b = Builder(14)
    x = b.depthwise(b.input((1, 9, 8, 1)), (4, 5), (2, 1), multiplier=multiplier, dilation=(1, 1))
    model = read(b.file(b.depthwise(x, 3)))
    assert kinds(model)[0] == "Conv"
    assert model.layers[0].name.startswith("DEPTHWISE")
