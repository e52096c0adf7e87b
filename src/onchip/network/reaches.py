"""The reach of every operator: the one that it states, or the one that follows from its geometry."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from onchip.network.network import Network
from onchip.network.operators import Constant, Geometry, Operator, Reach, Side

__all__ = ["reach_for"]


def reach_for(network: Network, op: Operator) -> Reach | None:
    """Return what boxes of its operands and weights a box of an operator's output needs; None if unknown.

    From a geometry: convolutions, pools, matrices, concats, pads, row-wise and element-wise operators with
    one output. Groups of channels are an axis of their own. The constants are the kernel, with sides for
    output channels, input channels and taps, and the rest, which belongs to output channels and is late: it
    changes sums that are complete.
    """
    g = op.geometry
    if op.reach is not None or g is None or len(op.outputs) != 1 or not op.inputs:
        return op.reach
    if g.kind == "elementwise":
        return _elementwise(network, op)
    if not g.promises or not _fits(network, op, g):
        return None
    match g.kind:
        case "conv" | "depthwise" | "pool":
            return _windowed(op, g)
        case "fully_connected":
            return _matrix(op, g)
        case "concat":
            return _concat(network, op, g)
        case "pad":
            return _pad(op, g)
    return _rowwise(op, g)


def _fits(network: Network, op: Operator, g: Geometry) -> bool:
    """Return whether the geometry's shapes are those of the first operand and of the output."""
    rows = [network.tensors[t] for t in (op.inputs[0], op.outputs[0])]
    known = all(t.bytes % max(1, prod(s)) == 0 for t, s in zip(rows, (g.input, g.output), strict=True))
    return known and bool(g.input) and bool(g.output) and min(*g.input, *g.output) > 0


def _elementwise(network: Network, op: Operator) -> Reach | None:
    shapes = [network.tensors[t].shape for t in (*op.inputs, *op.outputs)]
    if any(not shape for shape in shapes):
        return None
    *reads, out = shapes
    sides = []
    for shape in reads:
        if len(shape) > len(out):
            return None
        along = list(enumerate(shape, start=len(out) - len(shape)))
        if any(n not in (1, out[i]) for i, n in along):
            return None
        sides.append(tuple(Side(n, i) for i, n in along if n > 1) or (Side(1, span=1),))
    return Reach(out, tuple(sides), _whole(op))


def _whole(op: Operator) -> tuple[Constant, ...]:
    """Return the weights as one constant of which nothing says the sides."""
    return (Constant(op.name, op.weight_bytes),) if op.weight_bytes else ()


def _layout(layout: str, images: Side, channels: Sequence[Side], plane: Sequence[Side]) -> tuple[Side, ...]:
    """Return the sides of a map in the order of memory."""
    return (images, *channels, *plane) if layout == "NCHW" else (images, *plane, *channels)


def _sized(shape: Sequence[int], layout: str) -> tuple[int, int, int, int]:
    """Return images, channels, rows and columns of a shape."""
    n, a, b, c = shape
    return (n, a, b, c) if layout == "NCHW" else (n, c, a, b)


def _windowed(op: Operator, g: Geometry) -> Reach | None:
    stride, dilation, padding = g.stride or (1, 1), g.dilation or (1, 1), g.padding or (0, 0, 0, 0)
    if {len(g.input), len(g.output), len(padding)} != {4} or len(op.inputs) != 1:
        return None
    if {len(g.kernel), len(stride), len(dilation)} != {2} or min(*g.kernel, *stride, *dilation) < 1:
        return None
    images, deep, *plane = _sized(g.input, g.layout)
    made_images, made, *out = _sized(g.output, g.layout)
    groups = g.groups if g.kind == "conv" else deep
    if made_images != images or groups < 1 or deep % groups or made % groups:
        return None
    by_channel = g.kind != "conv" and made == deep
    if g.kind == "pool" and not by_channel:
        return None
    # Axes: images, channels (groups, channels of one), rows, columns, in the order of the output's memory.
    parts = [made] if by_channel else [n for n in (groups, made // groups) if n > 1] or [1]
    sizes = _layout(g.layout, Side(images), [Side(n) for n in parts], [Side(n) for n in out])
    first, down = (1, 1 + len(parts)) if g.layout == "NCHW" else (3, 1)
    sums = () if by_channel else (deep // groups,)
    summed = len(sizes)
    if by_channel:
        channels = [Side(deep, first)]
    else:
        channels = [Side(groups, first)] * (groups > 1) + [Side(deep // groups, summed)]
    windows = [
        Side(size, down + i, stride[i], padding[i], (g.kernel[i] - 1) * dilation[i] + 1)
        for i, size in enumerate(plane)
    ]
    kernel = [Side(n, first + i) for i, n in enumerate(parts)]
    inputs = 1 if by_channel else deep // groups
    taps = prod(g.kernel)
    matrix = [*kernel, *([] if by_channel else [Side(inputs, summed)]), Side(taps, span=taps)]
    reads = (_layout(g.layout, Side(images, 0), channels, windows),)
    return Reach(
        tuple(s.size for s in sizes), reads, _weights(op, made * inputs * taps, matrix, kernel), sums
    )


def _weights(
    op: Operator, elements: int, matrix: Sequence[Side], outputs: Sequence[Side]
) -> tuple[Constant, ...]:
    """Return the kernel of so many elements, and what remains of the weights by output channels."""
    width = op.weight_bytes // elements
    kernel, rest = width * elements, op.weight_bytes - width * elements
    found = []
    if kernel:
        found.append(Constant(f"{op.name}.kernel", kernel, tuple(matrix)))
    if rest:
        by_channel = rest % prod(side.size for side in outputs) == 0
        found.append(Constant(f"{op.name}.rest", rest, tuple(outputs) if by_channel else (), late=True))
    return tuple(found)


def _matrix(op: Operator, g: Geometry) -> Reach | None:
    if len(g.input) != 2 or len(g.output) != 2 or g.input[0] != g.output[0] or len(op.inputs) != 1:
        return None
    (rows, deep), (_, made) = g.input, g.output
    matrix = [Side(made, 1), Side(deep, 2)]
    weights = _weights(op, made * deep, matrix, [Side(made, 1)])
    return Reach((rows, made), ((Side(rows, 0), Side(deep, 2)),), weights, (deep,))


def _concat(network: Network, op: Operator, g: Geometry) -> Reach | None:
    """Join the channels of maps of one plane."""
    if len(g.output) != 4:
        return None
    images, made, *plane = _sized(g.output, g.layout)
    pixels, element = images * prod(plane), network.tensors[op.outputs[0]].bytes // prod(g.output)
    first, down = (1, 2) if g.layout == "NCHW" else (3, 1)
    along = [Side(n, down + i) for i, n in enumerate(plane)]
    reads, before = [], 0
    for t in op.inputs:
        deep, rest = divmod(network.tensors[t].bytes, pixels * element)
        if rest or not deep:
            return None
        part = Side(deep, first) if deep == made else Side(deep, first, before=before)
        reads.append(_layout(g.layout, Side(images, 0), [part], along))
        before += deep
    return Reach(g.output, tuple(reads), _whole(op)) if before == made else None


def _pad(op: Operator, g: Geometry) -> Reach | None:
    if {len(g.input), len(g.output), len(g.padding)} != {4} or len(op.inputs) != 1:
        return None
    images, deep, *plane = _sized(g.input, g.layout)
    made_images, made, *_ = _sized(g.output, g.layout)
    if (made_images, made) != (images, deep):
        return None
    first, down = (1, 2) if g.layout == "NCHW" else (3, 1)
    windows = [Side(n, down + i, before=g.padding[i]) for i, n in enumerate(plane)]
    reads = (_layout(g.layout, Side(images, 0), [Side(deep, first)], windows),)
    return Reach(g.output, reads, _whole(op))


def _rowwise(op: Operator, g: Geometry) -> Reach | None:
    """Every pixel needs all channels of the same pixel."""
    if len(g.input) != 4 or len(g.output) != 4 or len(op.inputs) != 1:
        return None
    images, deep, *plane = _sized(g.input, g.layout)
    made_images, _, *out = _sized(g.output, g.layout)
    if made_images != images or plane != out:
        return None
    down = 2 if g.layout == "NCHW" else 1
    along = [Side(n, down + i) for i, n in enumerate(plane)]
    return Reach(g.output, (_layout(g.layout, Side(images, 0), [Side(deep, span=deep)], along),), _whole(op))
