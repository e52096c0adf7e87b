"""The planners' view of an int8 network: one operator for each layer, under the same name.

Sizes are bytes of activations, `weight_bytes` bytes of flash, and the geometry states how the layer's kernel
walks, which decides the overlaps that a plan may use.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from onchip.microcontroller.int8.model import (
    AveragePool,
    Concat,
    Conv,
    Depthwise,
    Dequantize,
    FullyConnected,
    Int8Model,
    Layer,
    MaxPool,
    Mean,
    Own,
    Pad,
    Pairwise,
    PReLU,
    Resize,
    Softmax,
    Table,
    kind,
)
from onchip.microcontroller.int8.shapes import macs
from onchip.microcontroller.kernels import kernel_for, walk_of, workspace_bytes
from onchip.network import Geometry, Network, OperatorSpec

__all__ = ["flash_bytes", "geometry_of", "network_of", "states_of"]


def network_of(model: Int8Model, shared: Collection[str] = ()) -> Network:
    """Return the network of a model for planners: NHWC, int8, tensors and operators by the model's names.

    The library's kernels, which walk in their own way, make the layers named in `shared`.
    """
    name = [t.name for t in model.tensors]
    given = {*model.inputs, *(state.old for state in model.states)}
    kept = (*model.outputs, *(state.new for state in model.states))
    return Network.build(
        model.name,
        [(t.name, t.bytes, "input" if t.id in given else "activation") for t in model.tensors],
        [
            OperatorSpec(
                layer.name,
                kind(layer),
                [name[t] for t in layer.inputs],
                [name[layer.output]],
                flash_bytes(layer, shared=layer.name in shared),
                _workspace(layer, model, shared),
                geometry=geometry_of(layer, shared=layer.name in shared),
                macs=macs(layer),
            )
            for layer in model.layers
        ],
        [name[t] for t in dict.fromkeys(kept)],
        source=model.source or model.name,
        sha256=model.sha256,
        where=model.name,
    )


def states_of(model: Int8Model) -> tuple[tuple[str, str], ...]:
    """Return the tensors, before and after an inference, of what the network keeps between two."""
    return tuple((model.tensors[state.old].name, model.tensors[state.new].name) for state in model.states)


def _workspace(layer: Layer, model: Int8Model, shared: Collection[str]) -> int:
    """Return the workspace of the layer's kernel.

    A pool over a whole map may take each pixel as it is made; the pixel then lies behind the workspace of the
    kernel that makes it.
    """
    found = workspace_bytes(layer, shared=layer.name in shared)
    if isinstance(layer, AveragePool | MaxPool | Mean) and layer.output_shape[1:3] == (1, 1):
        made_by = model.producer.get(layer.inputs[0])
        found += 0 if made_by is None else workspace_bytes(made_by, shared=made_by.name in shared)
    return found


def flash_bytes(layer: Layer, *, shared: bool = False) -> int:
    """Return the bytes of flash of the kernel's constants: weights, biases, factors, tables, in words."""
    use = kernel_for(layer, shared=shared)
    return 4 * len(use.words) + (0 if use.operand is None else use.operand.size)


def geometry_of(layer: Layer, *, shared: bool = False) -> Geometry:
    """Return the geometry of the layer's kernel: how it walks over its operands."""
    pixels, channels = walk_of(layer, shared=shared)
    return replace(_windows_of(layer), pixels=pixels, channels=channels)


def _windows_of(layer: Layer) -> Geometry:
    first, made = layer.input_shapes[0], layer.output_shape
    match layer:
        case Conv():
            return Geometry(
                "conv",
                first,
                made,
                layer.kernel,
                layer.stride,
                layer.padding,
                layer.dilation,
                layer.groups,
                "NHWC",
            )
        case Depthwise():
            groups = first[3]
            return Geometry(
                "depthwise",
                first,
                made,
                layer.kernel,
                layer.stride,
                layer.padding,
                layer.dilation,
                groups,
                "NHWC",
            )
        case AveragePool() | MaxPool():
            return Geometry(
                "pool", first, made, layer.kernel, layer.stride, layer.padding, (1, 1), layout="NHWC"
            )
        case Mean():
            kernel = (first[1] if 1 in layer.axes else 1, first[2] if 2 in layer.axes else 1)
            return Geometry("pool", first, made, kernel, kernel, (0, 0, 0, 0), (1, 1), layout="NHWC")
        case FullyConnected() if made[1:3] == (1, 1):
            return Geometry("fully_connected", (1, first[3]), (1, made[3]), layout="NHWC")
        case FullyConnected():  # of every pixel: a convolution of one tap
            return Geometry("conv", first, made, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 1, "NHWC")
        case Pairwise() | Table() | Dequantize() | PReLU():
            return Geometry("elementwise", first, made, layout="NHWC")
        case Concat() if layer.axis == 3 and len(set(layer.inputs)) == len(layer.inputs):
            return Geometry("concat", first, made, layout="NHWC")
        case Pad() if not any(layer.channels):
            return Geometry("pad", first, made, padding=layer.padding, layout="NHWC")
        case Softmax():
            return Geometry("rowwise", first, made, layout="NHWC")
        case Concat() | Pad() | Resize() | Own():
            return Geometry("other", first, made, layout="NHWC")
