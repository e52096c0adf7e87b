"""Maps as a whole as layers: pools, means, padding, resizing, joining."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal

from onchip.microcontroller.int8.factors import mean_factor
from onchip.microcontroller.int8.model import AveragePool, Concat, Layer, MaxPool, Mean, Pad, Resize, Shape
from onchip.microcontroller.int8.read_site import INT8, Site
from onchip.microcontroller.int8.read_window import map_shape, window
from onchip.microcontroller.int8.reduce import reduce, reduced_by
from onchip.microcontroller.int8.reference import bilinear_places

__all__ = ["average_pool", "concat", "max_pool", "mean", "pack", "pad", "resize_bilinear", "resize_nearest"]

MAX_PAD = 1 << 15


def _pool(site: Site) -> dict[str, Any]:
    seen = map_shape(site)
    site.same_scale(0)
    kernel = (site.option("FilterHeight"), site.option("FilterWidth"))
    stride, padding = window(site, seen, kernel, (1, 1))
    low, high = site.bounds()
    return {**site.head(0), "kernel": kernel, "stride": stride, "padding": padding, "low": low, "high": high}


def average_pool(site: Site) -> Layer:
    return AveragePool(**_pool(site))


def max_pool(site: Site) -> Layer:
    return MaxPool(**_pool(site))


def mean(site: Site) -> Layer:
    """Return a mean over rows or columns or both, wherever a transpose has put them; or over any axes."""
    value = site.value(0)
    rank = len(value.shape)
    axes = site.numbers(1, 0, "axes")
    reduced_by(site)
    if len(value.stored) != 4:
        return reduce(site)
    over = tuple(sorted({value.lies[axis % rank] for axis in axes}))
    stored = value.stored
    if not set(over) <= {1, 2}:
        over = tuple(axis for axis in over if stored[axis] > 1)
    if not set(over) <= {1, 2} or stored[0] != 1:
        return reduce(site)
    made: Shape = (1, 1 if 1 in over else stored[1], 1 if 2 in over else stored[2], stored[3])
    count = prod(stored[axis] for axis in over)
    inner, out = site.scale(0), site.out_scale()
    multiplier, shift = site.factor(mean_factor(inner.scale, out.scale, count))
    return Mean(
        name=site.node.label,
        inputs=(value.tensor,),
        output=site.output,
        input_shapes=((1, stored[1], stored[2], stored[3]),),
        output_shape=made,
        axes=over,
        input_offset=-inner.zero_point,
        multiplier=multiplier,
        shift=shift,
        output_offset=out.zero_point,
    )


def pad(site: Site) -> Layer:
    seen, made = site.seen(0), site.made()
    out = site.same_scale(0)
    rank = len(site.row(0).shape)
    amounts = [0] * (8 - 2 * rank) + site.numbers(1, 2 * rank, "paddings")
    if min(amounts) < 0 or max(amounts) > MAX_PAD or any(amounts[:2]):
        raise site.refuse(f"pads by {amounts}")
    value = out.zero_point
    if site.node.type == "PADV2":
        [value] = [int(v) for v in site.constant(2, INT8, "a value").reshape(-1)[:1]] or [value]
        if site.scale(2) != out:
            raise site.refuse("pads with a value on another scale")
    top, bottom, left, right = amounts[2:6]
    layer = Pad(
        **site.head(0), padding=(top, left, bottom, right), channels=(amounts[6], amounts[7]), value=value
    )
    if made[3] != seen[3] + sum(layer.channels):
        raise site.refuse(f"makes {list(made)} of {list(seen)}")
    return layer


def _resize(site: Site, mode: Literal["nearest", "bilinear"]) -> Layer:
    seen, made = map_shape(site), site.made()
    site.same_scale(0)
    if site.numbers(1, 2, "sizes") != list(made[1:3]):
        raise site.refuse(f"makes {list(made)}, not the sizes that it is given")
    corners, centers = bool(site.option("AlignCorners", 0)), bool(site.option("HalfPixelCenters", 0))
    if corners and centers:
        raise site.refuse("aligns corners and centers of pixels at once")
    layer = Resize(**site.head(0), mode=mode, align_corners=corners, half_pixel_centers=centers)
    if mode == "bilinear" and any(
        bilinear_places(layer, size, count)[0].max() >= size
        for size, count in zip(seen[1:3], made[1:3], strict=True)
    ):
        raise site.refuse(f"enlarges {list(seen)} to {list(made)} by a ratio that leads out of the map")
    return layer


def resize_nearest(site: Site) -> Layer:
    return _resize(site, "nearest")


def resize_bilinear(site: Site) -> Layer:
    return _resize(site, "bilinear")


def concat(site: Site) -> Layer:
    positions = range(len(site.node.inputs))
    if not positions:
        raise site.refuse("joins nothing")
    site.same_scale(*positions)
    if site.option("FusedActivationFunction", 0):
        raise site.refuse("has a fused activation, which int8 kernels do not have")
    return _joined(site, site.option("Axis"), [site.row(p).shape for p in positions])


def pack(site: Site) -> Layer:
    """Return the joining of maps along a new axis."""
    positions = range(len(site.node.inputs))
    if not positions:
        raise site.refuse("joins nothing")
    site.same_scale(*positions)
    rank, axis = len(site.out.shape), site.option("Axis", 0)
    place = axis % rank if -rank <= axis < rank else 0
    shapes = [site.row(p).shape for p in positions]
    return _joined(site, axis, [(*shape[:place], 1, *shape[place:]) for shape in shapes])


def _joined(site: Site, axis: int, shapes: Sequence[tuple[int, ...]]) -> Layer:
    """Return maps of these shapes one behind the other along an axis: of rows, columns or channels.

    Along any other axis they are seen with all axes in front of it as rows, and all behind it as channels.
    """
    made = site.out.shape
    rank = len(made)
    if not -rank <= axis < rank or any(len(shape) != rank for shape in shapes):
        raise site.refuse(f"joins along axis {axis} of shape {list(made)}")
    place = axis % rank
    along = sum(shape[place] for shape in shapes)
    if any((*shape[:place], along, *shape[place + 1 :]) != made for shape in shapes):
        raise site.refuse(f"makes {list(made)} of {[list(shape) for shape in shapes]}")
    if rank <= 4 and place + 4 - rank > 0 and (rank < 4 or made[0] == 1):
        seen = [(1,) * (4 - rank) + shape for shape in shapes]
        column = place + 4 - rank
    else:
        outer, inner = prod(made[:place]), prod(made[place + 1 :])
        seen, column = [(1, outer, shape[place], inner) for shape in shapes], 2
    values = [site.value(p) for p in range(len(shapes))]
    if not all(value.plain for value in values):
        raise site.refuse("joins what is transposed")
    whole = list(seen[0])
    whole[column] = along
    return Concat(
        name=site.node.label,
        inputs=tuple(value.tensor for value in values),
        output=site.output,
        input_shapes=tuple((1, shape[1], shape[2], shape[3]) for shape in seen),
        output_shape=(1, whole[1], whole[2], whole[3]),
        axis=column,
    )
