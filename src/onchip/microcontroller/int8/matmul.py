"""BATCH_MATMUL: products of the matrices of two maps, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from onchip.microcontroller.int8.arithmetic import clamped, scaled, wrapped
from onchip.microcontroller.int8.factors import channel_factor
from onchip.microcontroller.int8.model import Int8, Own
from onchip.microcontroller.int8.read_site import Site

__all__ = ["MatMul", "matmul"]


@dataclass(frozen=True, kw_only=True, eq=False)
class MatMul(Own):
    """y[b, i, j] = sum over k of (first + offset) * (second + offset), scaled and moved.

    A matrix of the first is [rows, inner], of the second [inner, columns]; `turned` states for each that it
    lies the other way round. The second may have one matrix for all `batches`.
    """

    batches: int
    rows: int
    inner: int
    columns: int
    turned: tuple[bool, bool]
    shared: bool
    offsets: tuple[int, int]
    multiplier: int
    shift: int
    output_offset: int

    def compute(self, seen: Sequence[Int8]) -> Int8:
        sizes = ((self.rows, self.inner), (self.inner, self.columns))
        sides = []
        for x, (high, wide), turned, offset in zip(seen, sizes, self.turned, self.offsets, strict=True):
            shape = (-1, wide, high) if turned else (-1, high, wide)
            part = x.reshape(shape).astype(np.int64) + offset
            sides.append(part.transpose(0, 2, 1) if turned else part)
        total = wrapped(sides[0] @ sides[1])
        made = scaled(total, self.multiplier, self.shift) + self.output_offset
        return clamped(made).reshape(self.output_shape)


def matmul(site: Site) -> MatMul:
    """Return the operator as a layer; both operands are computed."""
    first, second = (site.value(p) for p in (0, 1))
    if not first.plain or not second.plain or min(len(first.shape), len(second.shape)) < 2:
        raise site.refuse(f"multiplies {list(first.shape)} by {list(second.shape)}")
    turned = bool(site.option("AdjX", 0)), bool(site.option("AdjY", 0))
    rows, inner = first.shape[-2:][:: -1 if turned[0] else 1]
    depth, columns = second.shape[-2:][:: -1 if turned[1] else 1]
    batches, others = prod(first.shape[:-2]), prod(second.shape[:-2])
    if depth != inner or others not in (1, batches) or site.out.elements != batches * rows * columns:
        raise site.refuse(f"makes {list(site.out.shape)} of {list(first.shape)} and {list(second.shape)}")
    one, other, out = site.scale(0), site.scale(1), site.out_scale()
    multiplier, shift = site.factor(channel_factor(one.scale, other.scale, out.scale))
    return MatMul(
        name=site.node.label,
        inputs=(first.tensor, second.tensor),
        output=site.output,
        input_shapes=((1, 1, 1, prod(first.shape)), (1, 1, 1, prod(second.shape))),
        output_shape=(1, batches * rows, 1, columns),
        batches=batches,
        rows=rows,
        inner=inner,
        columns=columns,
        turned=turned,
        shared=others == 1,
        offsets=(-one.zero_point, -other.zero_point),
        multiplier=multiplier,
        shift=shift,
        output_offset=out.zero_point,
    )
