"""Means over any axes, sums, greatest and smallest of them: what no pool over rows and columns is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from onchip.microcontroller.int8.arithmetic import clamped, quantised_multiplier, scaled, wrapped
from onchip.microcontroller.int8.factors import mean_factor
from onchip.microcontroller.int8.model import Int8, Int32, Own, frozen_array
from onchip.microcontroller.int8.move import flat_or_map, in_three, places_of
from onchip.microcontroller.int8.read_site import INT16, Site
from onchip.microcontroller.int8.sixteen.values import clamped_bytes, in_bytes, numbers

__all__ = ["Reduce", "reduce", "reduced_by"]

Does = Literal["sum", "greatest", "smallest"]
_DOES: dict[str, Does] = {"MEAN": "sum", "SUM": "sum", "REDUCE_MAX": "greatest", "REDUCE_MIN": "smallest"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduce(Own):
    """Of the numbers at `inner` places from `rows[row]` + `columns[column]` + `channels[channel]` on.

    A number has `width` bytes; places count numbers. A sum of number + input_offset is scaled and moved; the
    greatest or smallest number is left as it is.
    """

    does: Does
    rows: Int32
    columns: Int32
    channels: Int32
    inner: Int32
    input_offset: int
    multiplier: int
    shift: int
    output_offset: int
    width: int = 1

    def compute(self, seen: Sequence[Int8]) -> Int8:
        places = self.rows[:, None, None] + self.columns[:, None] + self.channels
        read = seen[0] if self.width == 1 else numbers(seen[0])
        found = read.reshape(-1)[places[..., None] + self.inner]
        clamp = clamped if self.width == 1 else clamped_bytes
        if self.does != "sum":
            return clamp(np.max(found, axis=-1) if self.does == "greatest" else np.min(found, axis=-1))
        total = wrapped(np.sum(found, axis=-1, dtype=np.int64) + self.input_offset * self.inner.size)
        return clamp(scaled(total, self.multiplier, self.shift) + self.output_offset)


def reduced_by(site: Site) -> tuple[int, ...]:
    """Return the axes of the file's shape that an operator takes together."""
    rank = len(site.value(0).shape)
    axes = site.numbers(1, 0, "axes")
    if not axes or any(not -rank <= axis < rank for axis in axes):
        raise site.refuse(f"takes axes {axes} of shape {list(site.value(0).shape)}")
    return tuple(sorted({axis % rank for axis in axes}))


def reduce(site: Site) -> Reduce:
    """Return the operator as a layer."""
    value, axes = site.value(0), reduced_by(site)
    places = places_of(value)
    kept = [axis for axis in range(places.ndim) if axis not in axes]
    turned = places.transpose((*kept, *axes)).reshape(*(places.shape[axis] for axis in kept), -1)
    base, flat = turned[..., 0], turned.reshape(-1, turned.shape[-1])
    if base.size != site.out.elements:
        raise site.refuse(f"makes {list(site.out.shape)} of {list(value.shape)} over axes {list(axes)}")
    shape, parts = in_three(site, base.reshape(site.out.shape))
    does = _DOES[site.node.type]
    inner, out = site.scale(0), site.out_scale()
    if does != "sum":
        site.same_scale(0)
    count = flat.shape[1] if site.node.type == "MEAN" else 1
    factor = (
        mean_factor(inner.scale, out.scale, count)
        if count > 1
        else quantised_multiplier(inner.scale / out.scale)
    )
    multiplier, shift = site.factor(factor)
    width, seen = (2 if site.out.element == INT16 else 1), flat_or_map(value)
    return Reduce(
        name=site.node.label,
        inputs=(value.tensor,),
        output=site.output,
        input_shapes=(seen if width == 1 else in_bytes(seen),),
        output_shape=shape if width == 1 else in_bytes(shape),
        width=width,
        does=does,
        **parts,
        inner=frozen_array(flat[0] - flat[0, 0], np.int32),
        input_offset=-inner.zero_point,
        multiplier=multiplier,
        shift=shift,
        output_offset=out.zero_point,
    )
