"""The kernels of layers with weights, and their constants: convolutions, fully connected, depthwise."""

from __future__ import annotations

from dataclasses import replace

from onchip.machines.cores import Forms
from onchip.microcontroller.int8.model import Conv, Depthwise, FullyConnected
from onchip.microcontroller.kernels.conv_constants import WORD, ConvShape
from onchip.microcontroller.kernels.depthwise_constants import CHUNK as DEPTHWISE_CHUNK
from onchip.microcontroller.kernels.depthwise_constants import VECTOR_CHUNK, DepthwiseShape
from onchip.microcontroller.kernels.products import by_bytes
from onchip.microcontroller.kernels.scale import scaled_of

__all__ = ["conv_shape", "depthwise_shape", "pixels_of", "unroll_of"]

VECTOR = 16
OF_LOOP, OF_LINE, OF_BYTE = 30, 25, 3
"""Instructions of a narrow core: a loop over a run, for two channels; to gather a line; to gather a byte."""
COST = {1: 1.5, 2: 1.1875, 3: 1.0833}
"""Instructions per product of a block of so many pixels and two channels: loads, widenings, dot products."""


def pixels_of(width: int, gathers: bool) -> int:
    """Return the pixels of a step that make a line of `width` in the fewest instructions.

    Where a step may gather, a shorter one at the end costs as much as a whole one.
    """

    def cost(pixels: int) -> float:
        steps, rest = divmod(width, pixels)
        short = 0.0 if not rest else pixels * COST[pixels] if gathers else rest * COST[rest]
        return steps * pixels * COST[pixels] + short

    return min(COST, key=lambda pixels: (cost(pixels), pixels))


def unroll_of(quads: bool, forms: Forms) -> int:
    """Return the words of a run in one turn of its loop, by whether a block is four channels of one pixel.

    Runs of one pixel gain most from more; byte by byte, compilers put off products and run out of registers.
    """
    return (2 if by_bytes(forms) else 4) if quads else 2


def conv_shape(
    layer: Conv | FullyConnected,
    *,
    reverse: bool = False,
    columns: bool = False,
    in_step: int = 0,
    out_step: int = 0,
    pixels: int = 0,
    forms: Forms = "packed",
) -> ConvShape:
    """Return the shape of a convolution's or fully connected layer's kernel; `pixels` 0 chooses."""
    along = 0 if columns else 1
    rows, width = layer.output_shape[1:3]
    length = rows if columns else width
    quads = length == 1 and pixels < 2
    if isinstance(layer, FullyConnected):
        shape = ConvShape(
            channels=layer.weights.shape[1],
            in_step=in_step,
            out_step=out_step,
            quads=quads,
            pixels=pixels or pixels_of(length, False),
            reverse=reverse,
            scale=scaled_of(layer).scale,
            forms=forms,
        )
        return replace(shape, rest=layer.weights.shape[0] % shape.chunk, unroll=unroll_of(quads, forms))
    shape = ConvShape(
        channels=layer.input_shapes[0][3],
        outputs=layer.output_shape[3] if layer.groups > 1 else 0,
        quads=quads,
        kernel=layer.kernel[::-1] if columns else layer.kernel,
        stride=layer.stride[along],
        dilation=layer.dilation[along],
        before=layer.padding[along],
        groups=layer.groups,
        padded=any(layer.padding),
        in_step=in_step,
        out_step=out_step,
        pixels=pixels or 1,
        reverse=reverse,
        scale=scaled_of(layer).scale,
        forms=forms,
    )
    shape = replace(
        shape,
        rest=layer.output_shape[3] // layer.groups % shape.chunk,
        unroll=unroll_of(quads, forms),
        joined=shape.gathers and _joins(shape, layer.output_shape[3] // layer.groups),
    )
    return shape if pixels else replace(shape, pixels=pixels_of(length, shape.gathers))


def _joins(shape: ConvShape, outputs: int) -> bool:
    """Return whether gathering a window as one run costs less than the vectors, or loops, that it saves."""
    lines = shape.kernel[0]
    if lines == 1 or shape.forms not in ("vector", "narrow"):
        return False
    if shape.forms == "narrow" and lines * shape.run < WORD:
        return False
    if not shape.side_by_side_if_long:
        return True
    if shape.forms == "narrow":
        return outputs // 2 * (lines - 1) * OF_LOOP > lines * (OF_LINE + OF_BYTE * shape.run)
    saved = lines * -(-shape.run // VECTOR) - -(-lines * shape.run // VECTOR)
    return outputs * saved * 2 > lines * (2 * -(-shape.run // VECTOR) + 12)


def depthwise_shape(
    layer: Depthwise,
    *,
    reverse: bool = False,
    columns: bool = False,
    in_step: int = 0,
    out_step: int = 0,
    forms: Forms = "packed",
) -> DepthwiseShape:
    """Return the shape of the kernel that a depthwise convolution needs."""
    along = 0 if columns else 1
    scale = scaled_of(layer).scale
    outputs = layer.output_shape[3]
    if forms == "vector" and (layer.depth_multiplier > 1 or outputs < VECTOR_CHUNK or outputs % 4):
        forms = "packed"  # vectors take eight channels, the last of them again
    return DepthwiseShape(
        outputs=layer.output_shape[3] if layer.depth_multiplier > 1 else 0,
        rest=outputs % (VECTOR_CHUNK if forms == "vector" else DEPTHWISE_CHUNK)
        if layer.depth_multiplier == 1
        else 0,
        lone=forms == "vector" and bool((scaled_of(layer).weights == -128).any()),
        multiplier=layer.depth_multiplier,
        kernel=layer.kernel[::-1] if columns else layer.kernel,
        stride=layer.stride[along],
        dilation=layer.dilation[along],
        before=layer.padding[along],
        in_step=in_step,
        out_step=out_step,
        reverse=reverse,
        scale=scale,
        forms=forms,
    )
