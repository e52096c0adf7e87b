"""SVDF: a product with a matrix, whose last results are kept and weighed over time, in two layers.

The first puts the new results behind the old ones and drops the oldest: the new state. The second weighs the
state. As in TensorFlow Lite Micro: the state is int8, or int16 with its two bytes as neighbouring channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onchip.microcontroller.int8.arithmetic import clamped, quantised_multiplier, scaled, wrapped
from onchip.microcontroller.int8.model import Int8, Int32, Own, frozen_array
from onchip.microcontroller.int8.read_edges import plain_value
from onchip.microcontroller.int8.read_site import INT8, INT32, Site
from onchip.microcontroller.int8.read_state import States
from onchip.readers.tflite_graph import Node

__all__ = ["SvdfState", "SvdfSum", "svdf", "whole_numbers"]

INT16 = 5  # ONNX's element type


def whole_numbers(values: Int8, width: int) -> Any:
    """Return bytes as numbers of one or two bytes, the lower first."""
    flat = np.ascontiguousarray(values.reshape(-1))
    return (flat if width == 1 else flat.view("<i2")).astype(np.int64)


def _as_bytes(values: Any, width: int) -> Int8:
    found: Int8 = values.astype(np.int8 if width == 1 else "<i2").view(np.int8)
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class SvdfState(Own):
    """The new state of x and the old: for each filter its memory without the oldest, and the new result.

    A result is scaled(sum (x + input_offset) * w), clamped to `width` bytes, moved by `zero_point`.
    """

    weights: Int8
    memory: int
    width: int
    input_offset: int
    multiplier: int
    shift: int
    zero_point: int

    def compute(self, seen: Sequence[Int8]) -> Int8:
        x = seen[0].reshape(-1).astype(np.int64) + self.input_offset
        made = scaled(wrapped(self.weights.astype(np.int64) @ x), self.multiplier, self.shift)
        most = (1 << (8 * self.width - 1)) - 1
        kept = whole_numbers(seen[1], self.width).reshape(-1, self.memory)
        newest = np.clip(made, -most - 1, most) + self.zero_point
        new = np.concatenate([kept[:, 1:], newest[:, None]], axis=1)
        return _as_bytes(new, self.width).reshape(self.output_shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class SvdfSum(Own):
    """The outputs of a state: for each unit the sum over its filters and their memory, scaled and moved."""

    weights: Int32
    """By filter and time."""
    bias: Int32
    width: int
    state_offset: int
    multiplier: int
    shift: int
    output_offset: int

    def compute(self, seen: Sequence[Int8]) -> Int8:
        state = whole_numbers(seen[0], self.width).reshape(self.weights.shape) + self.state_offset
        by_filter = wrapped((state * self.weights).sum(axis=1))
        total = wrapped(by_filter.reshape(self.bias.size, -1).sum(axis=1) + self.bias)
        made = scaled(total, self.multiplier, self.shift) + self.output_offset
        return clamped(made).reshape(self.output_shape)


def svdf(reading: States, node: Node) -> None:
    """Read an SVDF as its two layers, and the state that they keep."""
    site = reading.site(node)
    state = site.row(4)
    width = {INT8: 1, INT16: 2}.get(state.element)
    features, times = site.constant(1, INT8, "weights"), site.constant(2, state.element, "weights over time")
    found = state.quantisation
    if width is None or not state.variable or found is None or len(found.scales) != 1:
        raise site.refuse(f"keeps {state.name} of {state.stated}: only variables of INT8 or INT16 are read")
    if features.ndim != 2 or times.ndim != 2 or len(features) != len(times):
        raise site.refuse(f"has weights of shapes {list(features.shape)} and {list(times.shape)}")
    filters, memory = times.shape
    units, inputs = site.out.elements, site.seen(0)
    rank = site.option("Rank")
    if rank < 1 or units * rank != filters or inputs != (1, 1, 1, features.shape[1]):
        raise site.refuse(
            f"makes {list(site.out.shape)} of {list(inputs)} by {filters} filters of rank {rank}"
        )
    bias = site.constant(3, INT32, "biases") if site.has(3) else np.zeros(units, np.int32)
    if bias.size != units or state.elements != filters * memory:
        raise site.refuse(f"has {bias.size} biases and {state.elements} kept numbers")
    scale, zero = site.scale(4) if width == 1 else (found.scales[0], 0)
    if width == 2 and (any(found.zero_points) or not scale > 0):
        raise site.refuse(f"keeps {state.name} with a zero point, or on scale {scale:g}")
    into, out_of = _factors(site, scale)
    old = reading.begin(f"{node.label} state", filters * memory * width, scale, zero if width == 1 else 0)
    kept = reading.tensors[old].shape
    new = reading.add_made(f"{node.label} state (new)", kept, scale, zero)
    reading.layers.append(
        SvdfState(
            name=f"{node.label}/0",
            inputs=(site.value(0).tensor, old),
            output=new,
            input_shapes=(inputs, kept),
            output_shape=kept,
            weights=frozen_array(features, np.int8),
            memory=memory,
            width=width,
            input_offset=-site.scale(0).zero_point,
            multiplier=into[0],
            shift=into[1],
            zero_point=zero,
        )
    )
    reading.new[f"{node.label} state"] = plain_value(new, kept)
    made = SvdfSum(
        name=f"{node.label}/1",
        inputs=(new,),
        output=len(reading.tensors),
        input_shapes=(kept,),
        output_shape=(1, 1, 1, units),
        weights=frozen_array(times, np.int32),
        bias=frozen_array(bias.reshape(-1), np.int32),
        width=width,
        state_offset=-zero,
        multiplier=out_of[0],
        shift=out_of[1],
        output_offset=site.out_scale().zero_point,
    )
    reading.add_layer(made, site.out, plain_value(made.output, site.out.shape))


def _factors(site: Site, state: float) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the factors into the state and out of it, in single precision."""
    single = np.float32
    features, times = (site.row(p).quantisation for p in (1, 2))
    if features is None or times is None or len(features.scales) != 1 or len(times.scales) != 1:
        raise site.refuse("has weights without one scale for all")
    if any((*features.zero_points, *times.zero_points)):
        raise site.refuse("has weights with a zero point: weights must be symmetric")
    into = single(site.scale(0).scale) * single(features.scales[0]) / single(state)
    out_of = single(state) * single(times.scales[0]) / single(site.out_scale().scale)
    return (
        site.factor(quantised_multiplier(float(into))),
        site.factor(quantised_multiplier(float(out_of))),
    )
