"""Some rows of an operator that runs as it is, made by its nodes on those rows alone.

Where nothing in an operator depends on other rows, its nodes run on boxes of its operands, as in a nest. So a
band of an attention costs its own rows, not all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onchip.base.errors import InputError
from onchip.network.axes import ALL, Buffer, Cut, axes_of
from onchip.run.onnx_engine import OnnxEngine
from onchip.run.tiled.chain import Chain
from onchip.run.tiled.maps import Map
from onchip.run.tiled.nests.forms import NotCompact, Span, box_of
from onchip.run.tiled.nests.kernels import BoxKernel, Source
from onchip.run.tiled.nests.sources import in_sides, sources_of

__all__ = ["Rows", "rows_of"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Rows:
    """The kernel of an operator's rows, which go along the axis `axis` of its output."""

    engine: OnnxEngine
    chain: Chain
    cut: Cut
    kernel: BoxKernel
    sources: Sequence[Source]
    axis: int

    def run(self, operands: Mapping[int, Array], rows: Span, weights: Mapping[str, Array]) -> Array:
        """Return rows of the output's map; `operands` are the rows that they read, by tensor.

        `weights` are the values that are on chip.
        """
        spans = [rows if axis == self.axis else (0, size) for axis, size in enumerate(self.cut.axes)]

        def read(i: int) -> Array:
            source = self.sources[i]
            box = box_of(source.use, source.buffer.sides, spans, {self.axis})
            if source.buffer.tensor is None:
                value = weights.get(source.name, self.engine.parts.constants[source.name])
                return in_sides(value, source.buffer)[tuple(slice(*span) for span in box)]
            t = self.chain.op.inputs[i]
            lying = self.chain.views[self.chain.reads.index(t)].stored(operands[t])
            return _part(np.ascontiguousarray(lying), source.buffer, box)

        made, view = self.kernel.part(read, spans, first=True), self.chain.view
        if view.flat:
            return np.ascontiguousarray(made.reshape(-1, view.channels).T[None, :, :, None])
        return np.ascontiguousarray(made.reshape(view.images, view.channels, -1, view.columns))


def rows_of(engine: OnnxEngine, chain: Chain) -> Rows | None:
    """Return the kernel of a chain's rows, None where its nodes cannot run on rows alone."""
    found = axes_of(engine.network, [chain.op.id])
    if isinstance(found, str):
        return None
    [cut], buffers = found.operators, found.buffers
    side = _row_side(chain.view, buffers[cut.writes.buffer])
    axis = ALL if side is None else cut.writes.axes[side]
    if axis == ALL or axis in cut.together:
        return None
    for t, use in zip(chain.op.inputs, cut.reads, strict=True):
        i = chain.reads.index(t)
        along = [side for side, a in enumerate(use.axes) if a == axis]
        whole, slides = chain.rows[i].stride == 0, any(w is not None and w.axis == axis for w in use.slides)
        mine = _row_side(chain.views[i], buffers[use.buffer])
        if slides or (whole and along) or (not whole and along != [mine]):
            return None
    try:
        sources = sources_of(engine, chain.op, cut, buffers)
        kernel = BoxKernel(engine, chain.op, cut, buffers[cut.writes.buffer], {axis}, sources)
    except (NotCompact, InputError):
        return None
    return Rows(engine, chain, cut, kernel, sources, axis)


def _part(lying: Array, buffer: Buffer, box: Sequence[Span]) -> Array:
    """Return the part of some rows of a tensor that is a buffer's; of a side that it divides it has all."""
    parts = list(zip(buffer.first, buffer.sides, buffer.whole, box, strict=True))
    here = [high - low if size == whole else whole for _, size, whole, (low, high) in parts]
    taken = [slice(None) if size == whole else slice(first, first + size) for first, size, whole, _ in parts]
    return lying.reshape(here)[tuple(taken)]


def _row_side(view: Map, buffer: Buffer) -> int | None:
    """Return the side of a buffer that a map's rows are, in the order of elements; None if there is none."""
    before = 1 if view.flat else view.images * view.channels
    at = 1
    for side, size in enumerate(buffer.whole):
        if at == before and size == view.rows > 1:
            return side if buffer.sides[side] == size else None
        at *= size
    return None
