"""The operands and weights of an operator, as its kernel reads them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.network import Operator
from onchip.network.axes import Buffer, Cut
from onchip.run.tiled.nests.kernels import Source
from onchip.run.tiled.nests.known import kernel_of

if TYPE_CHECKING:
    from onchip.run.onnx_engine import OnnxEngine

__all__ = ["in_sides", "sources_of"]

Array = np.ndarray[Any, Any]


def sources_of(engine: OnnxEngine, op: Operator, cut: Cut, buffers: Sequence[Buffer]) -> list[Source]:
    """Return the operands and weights of an operator, in the order of their uses."""
    found = [
        Source(engine.executable.value[t], engine.slots.shape[t], buffers[use.buffer], use, True)
        for t, use in zip(op.inputs, cut.reads, strict=True)
    ]
    known, kernels = engine.parts.constants, kernel_of(engine, op, cut, buffers)
    for use in cut.constants:
        buffer = buffers[use.buffer]
        name = kernels.get(buffer.model_name, buffer.model_name)
        value = known.get(name)
        # What does not fill its sides, or is no constant by that name, is counted only.
        filled = value is not None and value.size == prod(buffer.whole)
        found.append(Source(name, value.shape if value is not None else (), buffer, use, filled))
    return found


def in_sides(value: Array, buffer: Buffer) -> Array:
    """Return the part of a constant that a buffer is, in its sides."""
    at = tuple(slice(first, first + size) for first, size in zip(buffer.first, buffer.sides, strict=True))
    found: Array = value.reshape(buffer.whole)[at]
    return found
