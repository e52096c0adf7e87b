"""Resizing as windows: the places of the input that each place of the output reads, along one axis."""

from __future__ import annotations

from onchip.microcontroller.int8.model import Resize
from onchip.microcontroller.int8.reference import bilinear_places, nearest_places
from onchip.microcontroller.rows.graph import Rows

__all__ = ["bilinear", "nearest", "places_of"]


def places_of(layer: Resize, size: int, made: int) -> tuple[Rows, ...]:
    """Return the window of each of `made` places in `size` places, as the layer's flags state."""
    if layer.mode == "nearest":
        return tuple((int(at), int(at) + 1) for at in nearest_places(layer, size, made))
    low, high, _ = bilinear_places(layer, size, made)
    return tuple((int(a), int(b) + 1) for a, b in zip(low, high, strict=True))


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
