"""From an operator's `Geometry` to maps and windows of rows: the only place in fusion that reads geometry.

A map is [channels, rows, columns] of one image, however the layout stores it. A window says which rows of an
operand the rows of an output need. What cannot be said in these words is None, and its operator opaque.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

from onchip.network import Geometry, Network, Operator, bits

__all__ = ["Form", "Grid", "Map", "Window", "batch_of", "grid_of", "maps_of", "windows_of"]

Form = Literal["reduce", "elementwise", "concat", "channelwise", "rowwise", "opaque"]
"""`reduce` sums over input channels. `elementwise`, `concat` and `channelwise` (depthwise, pool, pad) need
for an output channel only its own input channels; `rowwise` needs all channels of the same row."""

ELEMENT_BYTES = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Map:
    """One image of a tensor: `element` bytes for each of `channels` x `rows` x `columns`."""

    channels: int
    rows: int
    columns: int
    element: int

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of one channel."""
        return self.columns * self.element

    @property
    def bytes(self) -> int:
        """Bytes of one image."""
        return self.channels * self.rows * self.row_bytes


@dataclass(frozen=True, slots=True)
class Window:
    """Output row r needs rows [r * stride - padding, r * stride - padding + span) of `tensor`, clamped.

    `whole`: every output row needs every row. `broadcast`: the operand is repeated over the output.
    """

    tensor: int
    stride: int = 1
    padding: int = 0
    span: int = 1
    whole: bool = False
    broadcast: bool = False

    def need(self, rows: int, size: int) -> int:
        """Rows [0, result) of an operand of `size` rows are needed for the first `rows` output rows."""
        if not rows:
            return 0
        return size if self.whole else min(max((rows - 1) * self.stride - self.padding + self.span, 0), size)

    def first(self, row: int, size: int) -> int:
        """The first row of the operand that output rows from `row` on need."""
        return 0 if self.whole else min(max(row * self.stride - self.padding, 0), size)


@dataclass(frozen=True, slots=True)
class Grid:
    """Both spatial axes and the channels of an operator with one windowed operand.

    `input_channels` are those that one output channel sums over (C_in / groups; all the map's elements for a
    matrix over a map), `groups` of them. In a `plane` output channels have their own input channel, and
    weights, if there are any, belong to them.
    """

    kernel_rows: int
    kernel_columns: int
    input_channels: int
    output_channels: int
    groups: int
    stride: tuple[int, int]
    padding: tuple[int, int]
    span: tuple[int, int]
    plane: bool = False


def batch_of(network: Network) -> int:
    """N: the images that most four-dimensional maps of the network have; 1 without such maps."""
    seen = Counter(
        shape[0]
        for op in network.operators
        if op.geometry is not None and op.geometry.promises
        for shape in (op.geometry.input, op.geometry.output)
        if len(shape) == 4
    )
    return max(seen, key=lambda n: (seen[n], n)) if seen else 1


def maps_of(network: Network, batch: int) -> tuple[Map | None, ...]:
    """The map of every root tensor: its producer's output; of a graph input the widest that a reader says."""
    planar = any(
        4 in (len(op.geometry.input), len(op.geometry.output))
        for op in network.operators
        if op.geometry is not None and op.geometry.promises
    )
    result: list[Map | None] = [None] * len(network.tensors)
    for t in bits(network.roots):
        producer, size = network.producer[t], network.tensors[t].bytes
        if producer is not None:
            op = network.operators[producer]
            if op.geometry is not None:
                result[t] = _output_map(network, op, op.geometry, size, batch, planar)
            continue
        readers = [network.operators[v] for v in network.order if network.reads[v] >> t & 1]
        seen = [m for op in readers if (m := _input_map(network, op, t, batch, planar)) is not None]
        result[t] = max(seen, key=lambda m: m.rows * m.columns, default=None)  # a reader may flatten it
    return tuple(result)


def _input_map(network: Network, op: Operator, tensor: int, batch: int, planar: bool) -> Map | None:
    """The map of a graph input as a reader sees it, None where that does not say."""
    g, size = op.geometry, network.tensors[tensor].bytes
    if g is None or not g.promises or tensor not in op.inputs:
        return None
    if g.kind == "concat" and len(op.outputs) == 1:  # all operands have the output's rows and columns
        made = _map(g.output, g.layout, network.tensors[op.outputs[0]].bytes, batch, planar)
        return made and _channels_of(made, size, batch)
    if g.kind == "elementwise":  # what has fewer bytes may be broadcast, and then nothing says its shape
        largest = max(network.tensors[t].bytes for t in (*op.inputs, *op.outputs))
        return _map(g.output, g.layout, size, batch, planar) if size == largest else None
    return _map(g.input, g.layout, size, batch, planar) if tensor == op.inputs[0] else None


def _output_map(
    network: Network, op: Operator, g: Geometry, size: int, batch: int, planar: bool
) -> Map | None:
    if len(op.outputs) == 1:
        return _map(g.output, g.layout, size, batch, planar)
    if g.kind != "rowwise" or not op.inputs:
        return None
    # Several outputs together are the channels of one map. Where its elements are not as wide as the input's,
    # nothing says that those of all outputs are alike.
    together = sum(network.tensors[t].bytes for t in op.outputs)
    whole = _map(g.output, g.layout, together, batch, planar)
    first = _map(g.input, g.layout, network.tensors[op.inputs[0]].bytes, batch, planar)
    if whole is None or first is None or whole.element != first.element:
        return None
    return _channels_of(whole, size, batch)


def _channels_of(whole: Map, size: int, batch: int) -> Map | None:
    """The map of a tensor of `size` bytes for all images that has some channels of another."""
    channels, rest = divmod(size, batch * whole.rows * whole.row_bytes)
    return replace(whole, channels=channels) if channels and not rest else None


def _map(shape: Sequence[int], layout: str, size: int, batch: int, planar: bool) -> Map | None:
    """The map of a tensor of `size` bytes for all images, None when it has not that shape."""
    sides = _shape(shape, layout, batch, planar)
    if sides is None:
        return None
    width, rest = divmod(size, batch * prod(sides))
    return Map(*sides, width) if not rest and width in ELEMENT_BYTES else None


def _shape(shape: Sequence[int], layout: str, batch: int, planar: bool) -> tuple[int, int, int] | None:
    """(channels, rows, columns) of one image."""
    if any(type(n) is not int or n < 1 for n in shape):
        return None
    if len(shape) == 4 and shape[0] == batch:
        _, c, h, w = shape if layout == "NCHW" else (shape[0], shape[3], shape[1], shape[2])
        return c, h, w
    if len(shape) == 2 and planar and shape[0] == batch:
        return shape[1], 1, 1
    if len(shape) == 2 and not planar:
        return shape[1], shape[0], 1
    return None


def windows_of(
    network: Network, op: Operator, maps: Sequence[Map | None], batch: int
) -> tuple[Form, tuple[Window, ...]] | None:
    """How an operator's output rows need its operands' rows; None when it is opaque."""
    g = op.geometry
    touched = (*op.inputs, *op.outputs)
    if g is None or not op.inputs or op.workspace or any(network.root[t] != t for t in touched):
        return None
    if any(network.tensors[t].patches is not None for t in touched):
        return None
    made = [maps[t] for t in op.outputs]
    read = [maps[t] for t in op.inputs]
    if any(m is None for m in (*made, *read)):
        return None
    out, first = made[0], read[0]
    assert out is not None
    assert first is not None
    if len(op.outputs) > 1 and (
        g.kind != "rowwise" or any(m is None or (m.rows, m.columns) != (out.rows, out.columns) for m in made)
    ):
        return None
    alone = len(op.inputs) == 1
    match g.kind:
        case "conv" | "depthwise" | "pool" if alone:
            return _windowed(op, g, first, out)
        case "fully_connected" if alone and len(g.input) == len(g.output) == 2:
            return _matrix(op, g, first, out)
        case "elementwise":
            return _pointwise(op, [m for m in read if m is not None], out)
        case "concat":
            plane = (out.rows, out.columns, out.element)
            same = all(m is not None and (m.rows, m.columns, m.element) == plane for m in read)
            total = sum(m.channels for m in read if m is not None)
            if same and total == out.channels:
                return "concat", tuple(Window(t) for t in op.inputs)
        case "pad" if alone and len(g.padding) == 4:
            top, left, bottom, right = g.padding
            sides = (first.channels, first.rows + top + bottom, first.columns + left + right)
            if sides == (out.channels, out.rows, out.columns):
                return "channelwise", (Window(op.inputs[0], padding=top),)
        case "rowwise":
            if all(m is not None and (m.rows, m.columns) == (out.rows, out.columns) for m in read):
                return "rowwise", tuple(Window(t) for t in op.inputs)
    return None


def _fits(g: Geometry, first: Map, out: Map) -> bool:
    """Whether the operand has the shape that the geometry says it reads: nothing reshapes in between."""
    sides = g.input[1:] if g.layout == "NCHW" else (g.input[3], g.input[1], g.input[2])
    return tuple(sides) == (first.channels, first.rows, first.columns) and g.input[0] == g.output[0]


def _windowed(op: Operator, g: Geometry, first: Map, out: Map) -> tuple[Form, tuple[Window, ...]] | None:
    if len(g.input) != 4 or len(g.output) != 4 or len(g.kernel) != 2 or not _fits(g, first, out):
        return None
    stride, padding, dilation = g.stride or (1, 1), g.padding or (0, 0, 0, 0), g.dilation or (1, 1)
    if (len(stride), len(padding), len(dilation)) != (2, 4, 2) or min(*stride, *dilation, *g.kernel) < 1:
        return None
    groups = g.groups if g.kind == "conv" else first.channels
    if groups < 1 or first.channels % groups or out.channels % groups:
        return None
    form: Form = "reduce"
    if g.kind == "pool" or (g.kind == "depthwise" and first.channels == out.channels):
        form = "channelwise"
    if form == "channelwise" and first.channels != out.channels:
        return None
    if g.kind == "pool" and out.rows == 1 and g.kernel[0] == first.rows and not padding[0]:
        return form, (Window(op.inputs[0], span=first.rows, whole=True),)
    span = (g.kernel[0] - 1) * dilation[0] + 1
    return form, (Window(op.inputs[0], stride[0], padding[0], span),)


def _matrix(op: Operator, g: Geometry, first: Map, out: Map) -> tuple[Form, tuple[Window, ...]] | None:
    if g.input[-1] == first.channels and out.rows == first.rows and first.columns == out.columns == 1:
        return "reduce", (Window(op.inputs[0]),)
    if g.input[-1] == first.channels * first.rows * first.columns and (out.rows, out.columns) == (1, 1):
        return "reduce", (Window(op.inputs[0], span=first.rows, whole=True),)
    return None


def _pointwise(op: Operator, read: list[Map], out: Map) -> tuple[Form, tuple[Window, ...]] | None:
    windows = []
    for t, m in zip(op.inputs, read, strict=True):
        if (m.channels, m.rows, m.columns) == (out.channels, out.rows, out.columns):
            windows.append(Window(t))
        elif m.channels in (1, out.channels) and m.columns in (1, out.columns) and m.rows == out.rows:
            windows.append(Window(t, broadcast=True))
        elif m.channels in (1, out.channels) and m.columns in (1, out.columns) and m.rows == 1:
            windows.append(Window(t, whole=True, broadcast=True))
        else:
            return None
    return "elementwise", tuple(windows)


def grid_of(op: Operator, form: Form, windows: Sequence[Window], maps: Sequence[Map | None]) -> Grid | None:
    """Both axes and the channels of an operator with windows or a matrix; None for the others."""
    g = op.geometry
    first, out = maps[op.inputs[0]], maps[op.outputs[0]]
    if g is None or first is None or out is None or g.kind not in KINDS_OF_GRIDS:
        return None
    if g.kind == "pad":
        top, left = g.padding[:2]
        return Grid(1, 1, 1, out.channels, out.channels, (1, 1), (top, left), (1, 1), plane=True)
    if g.kind == "fully_connected":
        over = (first.rows, first.columns) if windows[0].whole else (1, 1)
        return Grid(*over, first.channels, out.channels, 1, (1, 1), (0, 0), over)
    stride, padding, dilation = g.stride or (1, 1), g.padding or (0, 0, 0, 0), g.dilation or (1, 1)
    span = tuple((k - 1) * d + 1 for k, d in zip(g.kernel, dilation, strict=True))
    groups = first.channels if form == "channelwise" or g.kind != "conv" else g.groups
    return Grid(
        g.kernel[0],
        g.kernel[1],
        first.channels // groups,
        out.channels,
        groups,
        (stride[0], stride[1]),
        (padding[0], padding[1]),
        (span[0], span[1]),
        form == "channelwise",
    )


KINDS_OF_GRIDS = ("conv", "depthwise", "pool", "fully_connected", "pad")
