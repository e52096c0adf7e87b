"""Planned sizes against the model's real ones: how far every size and address must be stretched to run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onchip.errors import ModelError
from onchip.network import Network
from onchip.readers.source import Executable, TfliteExecutable

__all__ = ["Slots", "make_slots"]


@dataclass(frozen=True)
class Slots:
    """Slot and data sizes by tensor id, in bytes of the executor's arena.

    A tensor's slot is `scale` times its planned size; its data are a prefix of it. `offset` is where a view's
    data begin in its root's data (0 for a root).
    """

    scale: int
    slot: tuple[int, ...]
    data: tuple[int, ...]
    offset: tuple[int, ...]
    dtype: tuple[np.dtype[np.generic], ...]
    shape: tuple[tuple[int, ...], ...]


def make_slots(network: Network, executable: Executable | TfliteExecutable) -> Slots:
    """The scale is the largest ceil(real size / planned size) of any tensor.

    Raises `ModelError` naming the tensor for an element type that numpy has no name for, and for a view that
    does not begin at an element.
    """
    from onnx import helper

    dtypes, data = [], []
    for t in network.tensors:
        try:
            dtype = np.dtype(helper.tensor_dtype_to_np_dtype(executable.dtype[t.id]))
        except (KeyError, ValueError, TypeError):
            dtype = np.dtype(object)
        if dtype.kind not in "fiubc":
            kind = helper.tensor_dtype_to_string(executable.dtype[t.id])
            raise ModelError(f"its element type ({kind}) cannot be executed", item=f"tensor {t.name}")
        dtypes.append(dtype)
        data.append(math.prod(executable.shape[t.id]) * dtype.itemsize)
    scale = max(-(-data[t.id] // t.bytes) for t in network.tensors)
    offsets = [0] * len(data)
    for view in network.views:
        planned = network.tensors[view.of].bytes
        offset, rest = divmod(view.offset * data[view.of], planned)
        if rest or offset % dtypes[view.tensor].itemsize or offset + data[view.tensor] > data[view.of]:
            raise ModelError(
                "does not begin at an element of its parent", item=f"view {network.tensors[view.tensor].name}"
            )
        offsets[view.tensor] = offset
    return Slots(
        scale=scale,
        slot=tuple(t.bytes * scale for t in network.tensors),
        data=tuple(data),
        offset=tuple(offsets),
        dtype=tuple(dtypes),
        shape=executable.shape,
    )
