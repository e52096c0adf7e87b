"""The operands and weights of an operator, as its kernel reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.network import Operator, Side
from onchip.network.axes import ALL, Buffer, Cut, Use
from onchip.run.tiled.nests.forms import Span
from onchip.run.tiled.nests.kernels import Source
from onchip.run.tiled.nests.known import kernel_of

if TYPE_CHECKING:
    from onchip.run.onnx_engine import OnnxEngine

__all__ = ["in_sides", "in_view", "sources_of"]

Array = np.ndarray[Any, Any]


def sources_of(engine: OnnxEngine, op: Operator, cut: Cut, buffers: Sequence[Buffer]) -> list[Source]:
    """Return the operands and weights of an operator, in the order of their uses."""
    found = []
    for t, use in zip(op.inputs, cut.reads, strict=True):
        view, seen = _as_seen(buffers[use.buffer], use, cut)
        found.append(Source(engine.executable.value[t], engine.slots.shape[t], view, seen, True))
    known, kernels = engine.parts.constants, kernel_of(engine, op, cut, buffers)
    for use in cut.constants:
        buffer = buffers[use.buffer]
        name = kernels.get(buffer.model_name, buffer.model_name)
        value = known.get(name)
        # What does not fill its sides, or is no constant by that name, is counted only.
        filled = value is not None and value.size == prod(buffer.whole)
        found.append(Source(name, value.shape if value is not None else (), buffer, use, filled))
    return found


def _as_seen(buffer: Buffer, use: Use, cut: Cut) -> tuple[Buffer, Use]:
    """Return a buffer, and a use of it, as an operator sees them that reads a view of the tensor."""
    if not use.seen:
        return buffer, use
    sides, first, whole = list(buffer.sides), list(buffer.first), list(buffer.whole)
    axes, slides = list(use.axes), list(use.slides)
    for n, part in enumerate(use.seen):
        if part is None:
            continue
        low, high = in_view(use, n, (0, sides[n]))
        sides[n], first[n], whole[n] = high - low, low - part[0], part[1]
        if (window := slides[n]) is not None:
            slid = replace(window, size=sides[n], before=window.before + low * window.per)
            same = slid == Side(sides[n], slid.axis) and cut.axes[slid.axis] == sides[n] == whole[n]
            axes[n], slides[n] = (slid.axis, None) if same else (ALL, slid)
    view = replace(buffer, sides=tuple(sides), first=tuple(first), whole=tuple(whole))
    return view, replace(use, axes=tuple(axes), slides=tuple(slides))


def in_view(use: Use, side: int, span: Span) -> Span:
    """Return the positions of a range along one side of a buffer that an operator sees through its view."""
    part = use.seen[side] if use.seen else None
    if part is None:
        return span
    low, high = max(span[0], part[0]), min(span[1], part[0] + part[1])
    return low, max(low, high)


def in_sides(value: Array, buffer: Buffer) -> Array:
    """Return the part of a constant that a buffer is, in its sides."""
    at = tuple(slice(first, first + size) for first, size in zip(buffer.first, buffer.sides, strict=True))
    found: Array = value.reshape(buffer.whole)[at]
    return found
