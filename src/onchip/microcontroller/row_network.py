"""The planners' view of an int8 network that runs by rows: shapes of all tensors, reaches of all layers.

The checker derives from these which rows every step reads. Sizes and names are those of `network`; a layer's
workspace is that of the kernel that makes one row of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import prod

from onchip.microcontroller.int8.model import (
    Concat,
    Conv,
    FullyConnected,
    Int8Model,
    Layer,
    Pad,
    Resize,
)
from onchip.microcontroller.kernels import SHAREABLE, workspace_bytes
from onchip.microcontroller.kernels.windows import conv_shape
from onchip.microcontroller.network import network_of
from onchip.microcontroller.rows.makers import RowModel
from onchip.microcontroller.rows.places import side_of
from onchip.network import Network, Operator
from onchip.network.operators import Reach, Side

__all__ = ["row_network", "row_workspaces"]


def row_network(rows: RowModel, shared: Collection[str], space: Mapping[str, int]) -> Network:
    """Return the network of a graph of rows for plans by rows; `shared` as in `network_of`.

    `space` are the bytes of workspace of each layer's kernel.
    """
    model = rows.model
    network = network_of(model, shared)
    shape = {t.id: t.shape for t in model.tensors}
    return replace(
        network,
        tensors=tuple(
            replace(t, shape=shape[n]) if len(shape[n]) == 4 else t for n, t in enumerate(network.tensors)
        ),
        operators=tuple(
            _stated(op, layer, model, space)
            for op, layer in zip(network.operators, model.layers, strict=True)
        ),
    )


def row_workspaces(layer: Layer, shared: Collection[str] = ()) -> tuple[int, ...]:
    """Return the bytes of workspace of the kernels that make a row of a layer, those of the fastest first."""
    if isinstance(layer, Conv | FullyConnected) and layer.name not in shared:
        found = conv_shape(layer)
        if not found.patch_bytes:
            return (0,)
        return tuple(conv_shape(layer, pixels=n).patch_bytes for n in range(found.pixels, 0, -1))
    return (_other(layer, shared),)


def _other(layer: Layer, shared: Collection[str]) -> int:
    return workspace_bytes(layer, shared=layer.name in shared and isinstance(layer, SHAREABLE))


def _stated(op: Operator, layer: Layer, model: Int8Model, space: Mapping[str, int]) -> Operator:
    reach = None
    seen = all(
        model.tensors[t].shape == shape for t, shape in zip(layer.inputs, layer.input_shapes, strict=True)
    )
    if op.geometry is not None and not op.geometry.promises and len(op.inputs) == len(layer.inputs):
        reach = _reach(layer) if seen else _behind(layer)
    return replace(op, workspace=space.get(layer.name, 0), reach=reach)


def _reach(layer: Layer) -> Reach | None:
    """Return the reach of layers whose geometry promises nothing; None where no window describes them."""
    made = layer.output_shape
    if len(made) != 4 or made[0] != 1:
        return None
    match layer:
        case Resize():
            size = layer.input_shapes[0]
            return Reach(made, ((Side(1, 0), side_of(layer, 1), side_of(layer, 2), Side(size[3], 3)),))
        case Pad():
            size = layer.input_shapes[0]
            before = (0, *layer.padding[:2], layer.channels[0])
            return Reach(made, (tuple(Side(n, i, before=before[i]) for i, n in enumerate(size)),))
        case Concat():
            found, at = [], 0
            for shape in layer.input_shapes:
                found.append(
                    tuple(Side(n, i, before=at if i == layer.axis else 0) for i, n in enumerate(shape))
                )
                at += shape[layer.axis]
            return Reach(made, tuple(found)) if prod(made) and at == made[layer.axis] else None
    return None


def _behind(layer: Layer) -> Reach | None:
    """Return the reach of a concat of maps in other shapes than their own: of bytes behind one another."""
    if not isinstance(layer, Concat) or prod(layer.output_shape[: layer.axis]) != 1:
        return None
    found, at = [], 0
    for size in map(prod, layer.input_shapes):
        found.append((Side(1, 0), Side(size, 1, before=at), Side(1, 2), Side(1, 3)))
        at += size
    return Reach((1, at, 1, 1), tuple(found))
