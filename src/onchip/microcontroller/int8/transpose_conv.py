"""TRANSPOSE_CONV: every pixel of the input adds a window of weights to the output, where it has these places.

Seen from the output, a place sums the taps at which a pixel of the input lies `stride` times as far in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from onchip.microcontroller.int8.arithmetic import clamped, scaled, wrapped
from onchip.microcontroller.int8.model import Int8, Int32, Own, Pair, frozen_array
from onchip.microcontroller.int8.read_site import INT8, Site
from onchip.microcontroller.int8.read_sums import channels_of
from onchip.microcontroller.int8.read_window import SAME

__all__ = ["TransposeConv", "transpose_conv", "turned_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class TransposeConv(Own):
    """`weights` is [out, kernel rows, kernel columns, in]; `before` are the places cut off in front."""

    weights: Int8
    bias: Int32
    multiplier: Int32
    shift: Int32
    input_offset: int
    output_offset: int
    low: int
    high: int
    stride: Pair
    before: Pair

    def compute(self, seen: Sequence[Int8]) -> Int8:
        _, rows, columns, _ = self.input_shapes[0]
        _, high, wide, channels = self.output_shape
        x = seen[0].reshape(self.input_shapes[0])[0].astype(np.float64) + self.input_offset
        down, across = self.stride
        _, taps_down, taps_across, _ = self.weights.shape
        whole = np.zeros(
            (
                max((rows - 1) * down + taps_down, high + self.before[0]),
                max((columns - 1) * across + taps_across, wide + self.before[1]),
                channels,
            )
        )
        for ky in range(taps_down):
            for kx in range(taps_across):
                part = x @ self.weights[:, ky, kx].T.astype(np.float64)
                whole[
                    ky : ky + (rows - 1) * down + 1 : down, kx : kx + (columns - 1) * across + 1 : across
                ] += part
        top, left = self.before
        total = wrapped(whole[top : top + high, left : left + wide].astype(np.int64) + self.bias)
        made = scaled(total, self.multiplier, self.shift) + self.output_offset
        return clamped(made, self.low, self.high)


@dataclass(frozen=True)
class Turned:
    """A transposed convolution as its file states it; the site's operands are the map, weights, biases."""

    site: Site
    weights: Int8
    stride: Pair
    before: Pair


def turned_of(site: Site) -> Turned:
    """Return what the operator states; its operands are the output's shape, weights, input, biases."""
    node = site.node
    turned = (*(node.inputs[p] for p in (2, 1)), *node.inputs[3:4]) if len(node.inputs) > 2 else ()
    site = replace(site, node=replace(node, inputs=turned))
    seen, made = site.seen(0), site.made()
    weights = site.constant(1, INT8, "weights")
    if weights.ndim != 4 or 0 in weights.shape or (weights.shape[0], weights.shape[3]) != (made[3], seen[3]):
        raise site.refuse(f"has weights of shape {list(weights.shape)} from {list(seen)} to {list(made)}")
    stride = (site.option("StrideH"), site.option("StrideW"))
    if min(stride) < 1 or max(*stride, *weights.shape[1:3]) > 1 << 12:
        raise site.refuse(f"has stride {list(stride)} and weights of shape {list(weights.shape)}")
    before = (0, 0)
    if site.option("Padding") == SAME:
        spans = [
            (-(-size // step) - 1) * step + kernel - size
            for size, step, kernel in zip(made[1:3], stride, weights.shape[1:3], strict=True)
        ]
        before = (max(0, spans[0]) // 2, max(0, spans[1]) // 2)
    return Turned(site, frozen_array(weights, np.int8), stride, before)


def transpose_conv(site: Site) -> TransposeConv:
    """Return the operator as a layer."""
    found = turned_of(site)
    return TransposeConv(
        **found.site.head(0),
        **channels_of(found.site, found.weights.shape[0], 0),
        weights=found.weights,
        stride=found.stride,
        before=found.before,
    )
