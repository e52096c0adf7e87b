"""Sums of products as layers: convolutions, depthwise convolutions, products with a matrix."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from onchip.microcontroller.int8.factors import channel_factor
from onchip.microcontroller.int8.model import Conv, Depthwise, FullyConnected, Layer, Pair, frozen_array
from onchip.microcontroller.int8.read_site import INT8, INT32, Site
from onchip.microcontroller.int8.read_window import map_shape, window

__all__ = ["channels_of", "conv", "depthwise", "fully_connected"]


def channels_of(site: Site, channels: int, axis: int) -> dict[str, Any]:
    """Return bias, factors, offsets and bounds of a layer of sums of products with so many channels."""
    inner, out = site.scale(0), site.out_scale()
    bias = np.zeros(channels, np.int32)
    if site.has(2):
        bias = site.constant(2, INT32, "biases")
        if bias.size != channels:
            raise site.refuse(f"has {bias.size} biases for {channels} output channels")
    scales = site.weight_scales(1, axis, channels)
    factors = [channel_factor(inner.scale, scale, out.scale) for scale in scales]
    factors = [site.factor(factor) for factor in factors]
    if len(factors) == 1:
        factors *= channels
    low, high = site.bounds()
    return {
        "bias": frozen_array(bias.reshape(-1), np.int32),
        "multiplier": frozen_array([multiplier for multiplier, _ in factors], np.int32),
        "shift": frozen_array([shift for _, shift in factors], np.int32),
        "input_offset": -inner.zero_point,
        "output_offset": out.zero_point,
        "low": low,
        "high": high,
    }


def _dilation(site: Site) -> Pair:
    return site.option("DilationHFactor", 1), site.option("DilationWFactor", 1)


def conv(site: Site) -> Layer:
    seen = map_shape(site)
    weights = site.constant(1, INT8, "weights")
    if weights.ndim != 4 or 0 in weights.shape or seen[3] % weights.shape[3]:
        raise site.refuse(f"has weights of shape {list(weights.shape)} for a map of shape {list(seen)}")
    groups = seen[3] // weights.shape[3]
    if weights.shape[0] % groups:
        raise site.refuse(f"has {weights.shape[0]} output channels in {groups} groups")
    dilation = _dilation(site)
    stride, padding = window(site, seen, weights.shape[1:3], dilation)
    return Conv(
        **site.head(0),
        **channels_of(site, weights.shape[0], 0),
        weights=frozen_array(weights, np.int8),
        stride=stride,
        dilation=dilation,
        padding=padding,
        groups=groups,
    )


def depthwise(site: Site) -> Layer:
    seen = map_shape(site)
    weights = site.constant(1, INT8, "weights")
    if weights.ndim != 4 or weights.shape[0] != 1 or 0 in weights.shape or weights.shape[3] % seen[3]:
        raise site.refuse(f"has weights of shape {list(weights.shape)} for a map of shape {list(seen)}")
    dilation = _dilation(site)
    stride, padding = window(site, seen, weights.shape[1:3], dilation)
    head = {
        **site.head(0),
        **channels_of(site, weights.shape[3], 3),
        "stride": stride,
        "dilation": dilation,
        "padding": padding,
    }
    if seen[3] == 1:  # the same sums, whose kernel makes several outputs of a byte
        return Conv(**head, weights=frozen_array(weights.transpose(3, 1, 2, 0), np.int8))
    return Depthwise(
        **head, weights=frozen_array(weights[0], np.int8), depth_multiplier=weights.shape[3] // seen[3]
    )


def fully_connected(site: Site) -> Layer:
    seen = site.seen(0)
    weights = site.constant(1, INT8, "weights")
    if weights.ndim != 2 or 0 in weights.shape or prod(seen) % weights.shape[1]:
        raise site.refuse(f"has weights of shape {list(weights.shape)} for a map of shape {list(seen)}")
    if site.option("WeightsFormat", 0):
        raise site.refuse("has its weights in a shuffled format")
    pixels = prod(seen) // weights.shape[1]
    lines = seen[1:3] if seen[3] == weights.shape[1] else (1, pixels)
    if prod(site.out.shape) != pixels * weights.shape[0]:
        raise site.refuse(f"makes {list(site.out.shape)} of {pixels} vectors and {weights.shape[0]} outputs")
    head = site.head(0, output_shape=(1, *lines, weights.shape[0]))
    head["input_shapes"] = ((1, *lines, weights.shape[1]),)
    _bias_on_its_scale(site)
    return FullyConnected(
        **head, **channels_of(site, weights.shape[0], 0), weights=frozen_array(weights, np.int8)
    )


def _bias_on_its_scale(site: Site) -> None:
    """Refuse a matrix product whose biases have another scale than its sums, as interpreters do."""
    weights = site.row(1).quantisation
    bias = site.row(2).quantisation if site.has(2) else None
    if weights is None or bias is None or len(weights.scales) != 1 or len(bias.scales) != 1:
        return
    apart = abs(site.scale(0).scale * weights.scales[0] - bias.scales[0])
    if not apart <= 0.02 * site.out_scale().scale:
        raise site.refuse(f"has biases of scale {bias.scales[0]:g}, not that of its products")
