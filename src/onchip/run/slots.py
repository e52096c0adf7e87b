"""Planned sizes against the model's real ones: the factor that stretches every size and address to run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onchip.base.errors import ModelError
from onchip.network import Network, Tensor
from onchip.readers.source import Executable, TfliteExecutable
from onchip.run.layout import Layout, layout_of

__all__ = ["Slots", "make_slots"]


@dataclass(frozen=True)
class Slots:
    """Slot sizes by tensor id, in bytes of the executor's arena, and the layout of values in them.

    A tensor's slot is `scale` times its planned size. `offset` is the start of a view's slot in its root's
    (0 for a root).
    """

    scale: int
    slot: tuple[int, ...]
    offset: tuple[int, ...]
    dtype: tuple[np.dtype[np.generic], ...]
    shape: tuple[tuple[int, ...], ...]
    layout: tuple[Layout, ...]


def make_slots(network: Network, executable: Executable | TfliteExecutable) -> Slots:
    """Return the slots; their scale is the largest ceil(real size / planned size), patches' padding included.

    Raises `ModelError` naming the tensor for an element type that numpy has no name for, for patches that
    the model's map does not have, and for a view that does not begin at an element.
    """
    from onnx import helper

    dtypes, shape = [], executable.shape
    for t in network.tensors:
        try:
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(executable.dtype[t.id]))
        except (KeyError, ValueError, TypeError):
            dtype = np.dtype(object)
        if dtype.kind not in "fiubc":
            kind = helper.tensor_dtype_to_string(executable.dtype[t.id])
            raise ModelError(f"its element type ({kind}) cannot be executed", item=f"tensor {t.name}")
        dtypes.append(dtype)

    def real(t: Tensor) -> int:
        count = math.prod(shape[t.id]) if t.patches is None else t.patches.elements
        return int(count * dtypes[t.id].itemsize)

    scale = max(-(-real(t) // t.bytes) for t in network.tensors)
    last = isinstance(executable, TfliteExecutable)
    layouts = [layout_of(t, scale, dtypes[t.id], shape[t.id], last=last) for t in network.tensors]
    offsets = [0] * len(dtypes)
    for view in network.views:
        whole, part = network.tensors[view.of], network.tensors[view.tensor]
        pitch = layouts[view.of].pitch
        # A root whose slot does not divide into elements has them at its front, its views likewise.
        spread = whole.bytes * scale % layouts[view.of].count == 0
        offset, rest = (view.offset * scale, 0) if spread else divmod(view.offset * real(whole), whole.bytes)
        layouts[view.tensor] = Layout(
            part.bytes * scale, pitch, dtypes[part.id], shape[part.id], part.patches, last
        )
        end = offset + layouts[view.tensor].count * pitch
        apart = rest or offset % pitch or pitch < dtypes[part.id].itemsize or end > whole.bytes * scale
        if apart or (part.patches is None) != (whole.patches is None):
            raise ModelError("does not begin at an element of its parent", item=f"view {part.name}")
        offsets[view.tensor] = offset
    return Slots(
        scale=scale,
        slot=tuple(t.bytes * scale for t in network.tensors),
        offset=tuple(offsets),
        dtype=tuple(dtypes),
        shape=shape,
        layout=tuple(layouts),
    )
