"""Pools of 16-bit numbers: the mean or the greatest of a window's places that lie in the map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onchip.microcontroller.int8.model import Int8, Own, Pair, Quad
from onchip.microcontroller.int8.read_site import Site
from onchip.microcontroller.int8.read_window import map_shape, window
from onchip.microcontroller.int8.sixteen.values import LOWEST, clamped_bytes, in_bytes, numbers

__all__ = ["Pool16", "pool"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool16(Own):
    """Clamped to [low, high]; a mean is rounded to the nearest, halves away from zero."""

    greatest: bool
    kernel: Pair
    stride: Pair
    padding: Quad
    low: int
    high: int

    def compute(self, seen: Sequence[Int8]) -> Int8:
        x, out = numbers(seen[0])[0], self.output_shape[1:3]
        top, left, bottom, right = self.padding
        around = ((top, bottom), (left, right), (0, 0))
        padded = np.pad(x, around, constant_values=LOWEST if self.greatest else 0)
        inside = np.pad(np.ones((*x.shape[:2], 1), np.int64), around)
        total = np.full((*out, x.shape[2]), LOWEST if self.greatest else 0, np.int64)
        count = np.zeros((*out, 1), np.int64)
        for ky in range(self.kernel[0]):
            for kx in range(self.kernel[1]):
                rows = slice(ky, ky + (out[0] - 1) * self.stride[0] + 1, self.stride[0])
                columns = slice(kx, kx + (out[1] - 1) * self.stride[1] + 1, self.stride[1])
                part = padded[rows, columns]
                total = np.maximum(total, part) if self.greatest else total + part
                count += inside[rows, columns]
        if not self.greatest:
            total = np.sign(total) * ((np.abs(total) + count // 2) // count)
        return clamped_bytes(total[None], self.low, self.high)


def pool(site: Site) -> Pool16:
    seen = map_shape(site)
    site.same_scale(0)
    kernel = (site.option("FilterHeight"), site.option("FilterWidth"))
    stride, padding = window(site, seen, kernel, (1, 1))
    low, high = site.bounds()
    return Pool16(
        name=site.node.label,
        inputs=(site.value(0).tensor,),
        output=site.output,
        input_shapes=(in_bytes(seen),),
        output_shape=in_bytes(site.made()),
        greatest=site.node.type == "MAX_POOL_2D",
        kernel=kernel,
        stride=stride,
        padding=padding,
        low=low,
        high=high,
    )
