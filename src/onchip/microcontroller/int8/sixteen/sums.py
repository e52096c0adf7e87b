"""Convolutions and products with a matrix: sums of products of 16-bit numbers and 8-bit weights.

A convolution, a depthwise one and a product with a matrix are one layer: groups of channels, and windows that
may have one tap. Biases of 64 bits make sums of 64 bits, scaled by a multiplier of 15 bits; biases of 32 bits
make sums of 32 bits, which wrap and are scaled as in int8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from onchip.microcontroller.int8.arithmetic import scaled, wrapped
from onchip.microcontroller.int8.factors import channel_factor
from onchip.microcontroller.int8.model import Int8, Int32, Own, Pair, Quad, frozen_array
from onchip.microcontroller.int8.read_site import INT8, INT32, INT64, Site
from onchip.microcontroller.int8.read_window import map_shape, window
from onchip.microcontroller.int8.sixteen.values import clamped_bytes, in_bytes, numbers, scaled_wide
from onchip.microcontroller.int8.transpose_conv import turned_of

__all__ = ["Sums16", "TransposeConv16", "conv", "depthwise", "fully_connected", "transpose_conv"]

Int64 = np.ndarray[Any, np.dtype[np.int64]]
MOST_SUM = 1 << 47
"""The bound of sums that are scaled by a multiplier of 15 bits."""
MOST_LEFT = 7
"""The most bits by which such a factor may exceed one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Weighted16(Own):
    """y = clamp(scaled(bias + sum x * w, multiplier[c], shift[c]), low, high); 32 bits if `narrow`."""

    weights: Int8
    bias: Int64
    multiplier: Int32
    shift: Int32
    low: int
    high: int
    stride: Pair
    narrow: bool = False

    def made(self, sums: Any) -> Int8:
        """Return the output's bytes for sums without biases."""
        total = np.asarray(sums).astype(np.int64) + self.bias
        if self.narrow:
            found = scaled(wrapped(total), self.multiplier, self.shift)
        else:
            found = scaled_wide(total, self.multiplier, self.shift)
        return clamped_bytes(found, self.low, self.high)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums16(_Weighted16):
    """`weights` is [out, kernel rows, kernel columns, in / groups]; places outside the map add nothing."""

    dilation: Pair = (1, 1)
    padding: Quad = (0, 0, 0, 0)
    groups: int = 1

    def compute(self, seen: Sequence[Int8]) -> Int8:
        top, left, bottom, right = self.padding
        x = np.pad(numbers(seen[0]), ((0, 0), (top, bottom), (left, right), (0, 0)))[0].astype(np.float64)
        _, rows, columns, _ = self.output_shape
        channels, down, across, deep = self.weights.shape
        wide = channels // self.groups
        w = self.weights.astype(np.float64)
        total = np.zeros((1, rows, columns, channels))
        for ky in range(down):
            for kx in range(across):
                y0, x0 = ky * self.dilation[0], kx * self.dilation[1]
                part = x[y0 : y0 + (rows - 1) * self.stride[0] + 1 : self.stride[0]]
                part = part[:, x0 : x0 + (columns - 1) * self.stride[1] + 1 : self.stride[1]]
                for g in range(self.groups):
                    out, read = slice(g * wide, (g + 1) * wide), slice(g * deep, (g + 1) * deep)
                    total[0, ..., out] += part[..., read] @ w[out, ky, kx].T
        return self.made(total)


@dataclass(frozen=True, kw_only=True, eq=False)
class TransposeConv16(_Weighted16):
    """`weights` is [out, kernel rows, kernel columns, in]; `before` are the places cut off in front."""

    before: Pair

    def compute(self, seen: Sequence[Int8]) -> Int8:
        x = numbers(seen[0])[0].astype(np.float64)
        rows, columns, _ = x.shape
        _, high, wide, _ = self.output_shape
        channels, taps_down, taps_across, _ = self.weights.shape
        (down, across), (top, left) = self.stride, self.before
        whole = np.zeros(
            (
                max((rows - 1) * down + taps_down, high + top),
                max((columns - 1) * across + taps_across, wide + left),
                channels,
            )
        )
        for ky in range(taps_down):
            for kx in range(taps_across):
                part = x @ self.weights[:, ky, kx].T.astype(np.float64)
                whole[
                    ky : ky + (rows - 1) * down + 1 : down, kx : kx + (columns - 1) * across + 1 : across
                ] += part
        return self.made(whole[None, top : top + high, left : left + wide])


def _factors(site: Site, channels: int, axis: int, taps: int, *, wide_only: bool = False) -> dict[str, Any]:
    """Return biases, factors and bounds of a layer whose sums have so many products each."""
    inner, out = site.scale(0), site.out_scale()
    bias, narrow = np.zeros(channels, np.int64), False
    if site.has(2):
        element = site.row(2).element
        kinds = (INT64,) if wide_only else (INT64, INT32)
        bias = site.constant(2, element if element in kinds else INT64, "biases").astype(np.int64).reshape(-1)
        narrow = element == INT32
        if bias.size != channels:
            raise site.refuse(f"has {bias.size} biases for {channels} output channels")
    factors = [channel_factor(inner.scale, s, out.scale) for s in site.weight_scales(1, axis, channels)]
    for factor in factors:
        site.factor(factor)
        if not narrow and (factor[1] > MOST_LEFT or factor[0] < 0):
            raise site.refuse(
                f"scales its sums by {factor[0] * 2.0 ** (factor[1] - 31):g}: at most 128 and above 0"
            )
    if len(factors) == 1:
        factors *= channels
    if not narrow and int(np.abs(bias).max(initial=0)) + (taps << 22) >= MOST_SUM:
        raise site.refuse("has sums of 48 bits and more, which its kernel does not scale")
    low, high = site.bounds()
    return {
        "bias": frozen_array(bias, np.int64),
        "multiplier": frozen_array([multiplier for multiplier, _ in factors], np.int32),
        "shift": frozen_array([shift for _, shift in factors], np.int32),
        "low": low,
        "high": high,
        "narrow": narrow,
    }


def _head(site: Site, seen: tuple[int, int, int, int], made: tuple[int, int, int, int]) -> dict[str, Any]:
    return {
        "name": site.node.label,
        "inputs": (site.value(0).tensor,),
        "output": site.output,
        "input_shapes": (in_bytes(seen),),
        "output_shape": in_bytes(made),
    }


def _dilation(site: Site) -> Pair:
    return site.option("DilationHFactor", 1), site.option("DilationWFactor", 1)


def _windows(site: Site, weights: Int8, groups: int, axis: int) -> Sums16:
    """Return a convolution by weights of [out, rows, columns, in / groups]."""
    seen, made = map_shape(site), site.made()
    dilation = _dilation(site)
    stride, padding = window(site, seen, weights.shape[1:3], dilation)
    if made[3] != weights.shape[0]:
        raise site.refuse(f"makes {list(made)} by {weights.shape[0]} channels of weights")
    return Sums16(
        **_head(site, seen, made),
        **_factors(
            site, weights.shape[0], axis, prod(weights.shape[1:]), wide_only=site.node.type != "CONV_2D"
        ),
        weights=frozen_array(weights, np.int8),
        stride=stride,
        dilation=dilation,
        padding=padding,
        groups=groups,
    )


def conv(site: Site) -> Sums16:
    seen, weights = map_shape(site), site.constant(1, INT8, "weights")
    if weights.ndim != 4 or 0 in weights.shape or seen[3] % weights.shape[3]:
        raise site.refuse(f"has weights of shape {list(weights.shape)} for a map of shape {list(seen)}")
    groups = seen[3] // weights.shape[3]
    if weights.shape[0] % groups:
        raise site.refuse(f"has {weights.shape[0]} output channels in {groups} groups")
    return _windows(site, weights, groups, 0)


def depthwise(site: Site) -> Sums16:
    """Return a depthwise convolution: a group for each channel of the input."""
    seen, weights = map_shape(site), site.constant(1, INT8, "weights")
    if weights.ndim != 4 or weights.shape[0] != 1 or 0 in weights.shape or weights.shape[3] % seen[3]:
        raise site.refuse(f"has weights of shape {list(weights.shape)} for a map of shape {list(seen)}")
    return _windows(site, weights.transpose(3, 1, 2, 0), seen[3], 3)


def fully_connected(site: Site) -> Sums16:
    """Return a product with a matrix as a convolution of one tap over its vectors."""
    seen, weights = site.seen(0), site.constant(1, INT8, "weights")
    if weights.ndim != 2 or 0 in weights.shape or prod(seen) % weights.shape[1]:
        raise site.refuse(f"has weights of shape {list(weights.shape)} for a map of shape {list(seen)}")
    if site.option("WeightsFormat", 0):
        raise site.refuse("has its weights in a shuffled format")
    outputs, deep = weights.shape
    vectors = prod(seen) // deep
    lines = seen[1:3] if seen[3] == deep else (1, vectors)
    if prod(site.out.shape) != vectors * outputs:
        raise site.refuse(f"makes {list(site.out.shape)} of {vectors} vectors and {outputs} outputs")
    return Sums16(
        **_head(site, (1, *lines, deep), (1, *lines, outputs)),
        **_factors(site, outputs, 0, deep),
        weights=frozen_array(weights.reshape(outputs, 1, 1, deep), np.int8),
        stride=(1, 1),
    )


def transpose_conv(site: Site) -> TransposeConv16:
    """Return the operator as a layer."""
    found = turned_of(site)
    seen, made = found.site.seen(0), found.site.made()
    return TransposeConv16(
        **_head(found.site, seen, made),
        **_factors(found.site, made[3], 0, prod(found.weights.shape[1:]), wide_only=True),
        weights=found.weights,
        stride=found.stride,
        before=found.before,
    )
