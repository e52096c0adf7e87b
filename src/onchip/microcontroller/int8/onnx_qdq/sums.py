"""Convolutions and products with a matrix: operators with constant weights."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from onchip.microcontroller.int8.onnx_qdq.steps import Step
from onchip.microcontroller.int8.onnx_qdq.tables import INT8, INT32
from onchip.microcontroller.int8.onnx_qdq.values import CHANNELS_LAST, Array, Held, Quantised, Values
from onchip.microcontroller.int8.onnx_qdq.windows import padded
from onchip.readers.tflite_graph import Quantisation

__all__ = ["conv", "matrix", "transposed_conv"]

MOST_BIAS = (1 << 31) - 1


def _weights(values: Values, step: Step, position: int) -> Quantised:
    name = step.inputs[position] if position < len(step.inputs) else ""
    found = values.stored.get(name)
    if found is None:
        raise values.refuse(step, f"has weights {name} that are no quantised constant")
    if int(found.values.min(initial=0)) < -128 or int(found.values.max(initial=0)) > 127:
        raise values.refuse(step, f"has weights {name} with a zero point, further from it than int8 holds")
    return found


def _constants(
    values: Values, step: Step, held: Held, weights: Quantised, kernel: Array, axis: int
) -> tuple[int, int]:
    """Add weights, with their channels along `axis`, and biases; return their rows."""
    name, channels = step.inputs[1], kernel.shape[axis]
    zeros = (0,) * len(weights.scales)
    row = values.tables.row(name, kernel.shape, INT8, Quantisation(weights.scales, zeros, axis), kernel)
    of_sums = np.float32(values.quantisation(held).scales[0]) * np.asarray(weights.scales, np.float32)
    bias = np.zeros(channels, np.int64)
    if len(step.inputs) > 2 and step.inputs[2]:
        bias = _bias(values, step, of_sums, channels)
    scales = tuple(float(s) for s in of_sums)
    made = values.tables.row(f"{name} bias", bias.shape, INT32, Quantisation(scales, zeros, 0), bias)
    return row, made


def _bias(values: Values, step: Step, of_sums: Array, channels: int) -> Array:
    """Return biases as integers on the scale of the sums; those of the file, if they are on it."""
    name = step.inputs[2]
    stored = values.stored.get(name)
    if stored is None and (found := values.constant(name)) is not None:
        integers = found.dtype == np.int32
        scales = tuple(float(s) for s in of_sums) if integers else (1.0,)
        stored = Quantised(found.astype(np.int64) if integers else found.astype(np.float64), scales, 0)
    if stored is None or stored.values.size not in (1, channels):
        raise values.refuse(step, f"has biases {name} that are no constant of {channels}")
    flat = np.broadcast_to(stored.values.reshape(-1), (channels,))
    given = np.asarray(stored.scales, np.float64)
    if np.allclose(given, of_sums, rtol=1e-3):
        found = flat
    else:
        found = np.round(flat * given / of_sums.astype(np.float64))
    if float(np.abs(found).max(initial=0)) > MOST_BIAS:
        raise values.refuse(step, f"has biases {name} beyond 32 bits")
    return found.astype(np.int64)


def conv(values: Values, step: Step, out: Quantisation, activation: int) -> Held:
    """Add a convolution; one with a group for each channel of its input is depthwise."""
    held = values.ordered(step, values.reading(step), _map(values, step, 0))
    weights = _weights(values, step, 1)
    if weights.values.ndim != 4 or (len(weights.scales) > 1 and weights.axis != 0):
        raise values.refuse(step, f"has weights of shape {list(weights.values.shape)}: only maps are read")
    groups = step.whole("group", 1)
    seen = values.tables.rows[held.row].shape[3]
    depthwise = groups == seen and weights.values.shape[1] == 1 and groups > 1
    kernel = weights.values.transpose((1, 2, 3, 0) if depthwise else (0, 2, 3, 1))
    held, options = padded(values, step, held, weights.values.shape[2:])
    row, bias = _constants(values, step, held, weights, kernel, 3 if depthwise else 0)
    made = values.like(step.outputs[0], values.shape(step.outputs[0]), CHANNELS_LAST, out)
    if depthwise:
        options["DepthMultiplier"] = weights.values.shape[0] // groups
    kind = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    options["FusedActivationFunction"] = activation
    values.tables.node(step.index, kind, (held.row, row, bias), (made.row,), **options)
    return made


def transposed_conv(values: Values, step: Step, out: Quantisation, activation: int) -> Held:
    held = values.ordered(step, values.reading(step), _map(values, step, 0))
    weights = _weights(values, step, 1)
    if weights.values.ndim != 4 or len(weights.scales) > 1 or step.whole("group", 1) != 1:
        raise values.refuse(step, "has weights in groups, with a scale a channel, or of no map")
    shape = values.shape(step.outputs[0])
    stride, kernel = step.many("strides", (1, 1)), weights.values.shape[2:]
    pads = step.many("pads", (0, 0, 0, 0))
    spans = [
        max(0, (-(-size // s) - 1) * s + k - size)
        for size, s, k in zip(shape[2:], stride, kernel, strict=True)
    ]
    same = pads[:2] == [span // 2 for span in spans]
    if (not same and any(pads[:2])) or any(d != 1 for d in step.many("dilations", (1, 1))):
        raise values.refuse(step, f"cuts off {pads}, with dilation {step.many('dilations', (1, 1))}")
    row, bias = _constants(values, step, held, weights, weights.values.transpose(1, 2, 3, 0), 0)
    made = values.like(step.outputs[0], shape, CHANNELS_LAST, out)
    size = values.tables.whole("size", values.tables.rows[made.row].shape)
    options = {"Padding": 0 if same and any(pads[:2]) else 1, "StrideH": stride[0], "StrideW": stride[1]}
    options["FusedActivationFunction"] = activation
    values.tables.node(step.index, "TRANSPOSE_CONV", (size, row, held.row, bias), (made.row,), **options)
    return made


def matrix(values: Values, step: Step, out: Quantisation, activation: int) -> Held:
    """Add a product with a constant matrix, or one of two maps' matrices."""
    held = values.plain(step, values.reading(step))
    options: dict[str, Any] = {"FusedActivationFunction": activation}
    shape = values.shape(step.outputs[0])
    if step.op == "MatMul" and step.inputs[1] in values.held:
        if activation:
            raise values.refuse(step, "has an activation behind a product of two maps")
        other = values.plain(step, values.reading(step, 1))
        made = values.like(step.outputs[0], shape, tuple(range(len(shape))), out)
        values.tables.node(step.index, "BATCH_MATMUL", (held.row, other.row), (made.row,), AdjX=0, AdjY=0)
        return made
    weights = _weights(values, step, 1)
    alike = all(float(step.attributes.get(key, 1.0)) == 1.0 for key in ("alpha", "beta"))
    turned = step.op == "Gemm" and step.whole("transB", 0) == 1
    if weights.values.ndim != 2 or not alike or step.whole("transA", 0):
        raise values.refuse(step, "is no product of vectors with a constant matrix")
    kernel = weights.values if turned else weights.values.T
    if len(weights.scales) > 1 and weights.axis % 2 != (0 if turned else 1):
        raise values.refuse(step, "has a scale for each input of its matrix")
    row, bias = _constants(values, step, held, weights, kernel, 0)
    flat = held
    if prod(values.tables.rows[held.row].shape) != kernel.shape[1] * prod(shape[:-1]):
        raise values.refuse(
            step, f"multiplies {list(values.tables.rows[held.row].shape)} and {list(kernel.shape)}"
        )
    made = values.like(step.outputs[0], shape, tuple(range(len(shape))), out)
    values.tables.node(step.index, "FULLY_CONNECTED", (flat.row, row, bias), (made.row,), **options)
    return made


def _map(values: Values, step: Step, position: int) -> tuple[int, ...]:
    if len(values.shape(step.inputs[position])) != 4:
        raise values.refuse(step, f"reads {list(values.shape(step.inputs[position]))}, which is no map")
    return CHANNELS_LAST
