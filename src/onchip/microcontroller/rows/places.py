"""Resizing as windows: the places of the input that each place of the output reads, along one axis."""

from __future__ import annotations

from onchip.microcontroller.int8.model import Resize
from onchip.microcontroller.int8.reference import bilinear_places, nearest_places
from onchip.microcontroller.rows.graph import Rows
from onchip.network.operators import Side

__all__ = ["along", "bilinear", "nearest", "places_of", "side_of"]


def places_of(layer: Resize, size: int, made: int) -> tuple[Rows, ...]:
    """Return the window of each of `made` places in `size` places, as the layer's flags state."""
    if layer.mode == "nearest":
        return tuple((int(at), int(at) + 1) for at in nearest_places(layer, size, made))
    low, high, _ = bilinear_places(layer, size, made)
    return tuple((int(a), int(b) + 1) for a, b in zip(low, high, strict=True))


def side_of(layer: Resize, axis: int) -> Side:
    """Return the side of the input along an axis (1: rows, 2: columns) that holds what each place reads.

    It is exact but for places that fall on one of the input: a bilinear resizing reads two all the same.
    """
    size, made = layer.input_shapes[0][axis], layer.output_shape[axis]
    corners = layer.align_corners and made > 1
    up, per = (size - 1, made - 1) if corners else (size, made)
    if layer.mode == "bilinear":  # positions are counted in parts of 1024
        up, per = (up * 1024 + per // 2) // per, 1024
        before, span = (512 - up // 2 if layer.half_pixel_centers else 0), 2
    else:
        before = -per if layer.align_corners else -up if layer.half_pixel_centers else 0
        up, per, span = 2 * up, 2 * per, 1
    exact = places_of(layer, size, made)
    if up > 0:
        found = Side(size, axis, up, before, span, per)
        if all(a <= low and high <= b for (a, b), (low, high) in zip(along(found, made), exact, strict=True)):
            return found
    return Side(size, span=size)


def along(side: Side, made: int) -> tuple[Rows, ...]:
    """Return the window of each of `made` places over a side."""
    found = []
    for at in range(made):
        first = ((at if side.axis >= 0 else 0) * side.stride - side.before) // side.per
        low, high = max(first, 0), min(first + side.span, side.size)
        found.append((low, high) if low < high else (0, 0))
    return tuple(found)


def nearest(size: int, made: int, *, half: bool = False) -> tuple[Rows, ...]:
    """Return the place that each copies: the same share of the way."""
    return places_of(_resize("nearest", half), size, made)


def bilinear(size: int, made: int, *, half: bool = False) -> tuple[Rows, ...]:
    """Return the one or two places between which each lies; `half`: centres of pixels, not their corners."""
    return places_of(_resize("bilinear", half), size, made)


def _resize(mode: str, half: bool) -> Resize:
    one = (1, 1, 1, 1)
    return Resize(
        name=mode,
        inputs=(0,),
        output=1,
        input_shapes=(one,),
        output_shape=one,
        mode="nearest" if mode == "nearest" else "bilinear",
        align_corners=False,
        half_pixel_centers=half,
    )
