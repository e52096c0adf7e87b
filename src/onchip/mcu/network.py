"""The planners' view of an int8 network: one operator for each layer, under the same name.

Sizes are bytes of activations, `weight_bytes` bytes of flash, and the geometry says how the layer's kernel
walks: what a plan may overlap follows from it.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from onchip.mcu.kernels import kernel_for, walk_of, workspace_bytes
from onchip.mcu.model import (
    Add,
    AveragePool,
    Concat,
    Conv,
    Depthwise,
    Dequantize,
    FullyConnected,
    HardSwish,
    Int8Model,
    Layer,
    Logistic,
    MaxPool,
    Mean,
    Mul,
    Pad,
    PReLU,
    Quantize,
    Resize,
    Softmax,
    kind,
    macs,
)
from onchip.network import Geometry, Network, OperatorSpec

__all__ = ["flash_bytes", "geometry_of", "network_of"]


def network_of(model: Int8Model) -> Network:
    """The network of a model, for planners: NHWC, int8, tensors and operators by the model's names."""
    name = [t.name for t in model.tensors]
    return Network.build(
        model.name,
        [(t.name, t.bytes, "input" if t.id in model.inputs else "activation") for t in model.tensors],
        [
            OperatorSpec(
                layer.name,
                kind(layer),
                [name[t] for t in layer.inputs],
                [name[layer.output]],
                flash_bytes(layer),
                workspace_bytes(layer),
                geometry=geometry_of(layer),
                macs=macs(layer),
            )
            for layer in model.layers
        ],
        [name[t] for t in dict.fromkeys(model.outputs)],
        source=model.name,
        sha256=model.sha256,
        where=model.name,
    )


def flash_bytes(layer: Layer) -> int:
    """Flash that the constants of the layer's kernel take: weights, biases, factors, tables, in words."""
    use = kernel_for(layer)
    return 4 * len(use.words) + (0 if use.operand is None else use.operand.size)


def geometry_of(layer: Layer) -> Geometry:
    """How the layer's kernel walks over its operands."""
    pixels, channels = walk_of(layer)
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
        case FullyConnected():
            pixels = prod(first[:3])
            return Geometry("fully_connected", (pixels, first[3]), (pixels, made[3]), layout="NHWC")
        case Add() | Mul() | Logistic() | HardSwish() | Quantize() | Dequantize() | PReLU():
            return Geometry("elementwise", first, made, layout="NHWC")
        case Concat() if layer.axis == 3 and len(set(layer.inputs)) == len(layer.inputs):
            return Geometry("concat", first, made, layout="NHWC")
        case Pad() if not any(layer.channels):
            return Geometry("pad", first, made, padding=layer.padding, layout="NHWC")
        case Softmax():
            return Geometry("rowwise", first, made, layout="NHWC")
        case Concat() | Pad() | Resize():
            return Geometry("other", first, made, layout="NHWC")
