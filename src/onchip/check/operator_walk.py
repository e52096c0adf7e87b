"""The walk of an operator over its operands, from its geometry: the basis of the proofs.

A walk is a sequence of steps. A step reads everything it needs from the operator's first input, and only then
writes its piece of the output: one pixel with all its channels in NHWC, one element in NCHW (for a fully
connected layer one row, for an element-wise operator one element, of every input). Steps follow the
addresses of the output, upwards or (traversal `reverse`) downwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from onchip.network import ELEMENT_BYTES, Geometry, Network, Patches
from onchip.network.windows import Window, window_of

__all__ = [
    "WINDOWED",
    "Elementwise",
    "WindowShape",
    "Windows",
    "steps_of",
    "walk_of",
    "window_shape",
]

WINDOWED = ("conv", "depthwise", "pool")
BY_PIXEL = ("concat", "pad", "rowwise")


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Step i reads element i of every input and writes element i of the output.

    With `patches`, those of the output, elements are counted as they lie there, padding included; so are
    those of an input in the same patches, and of no other.
    """

    steps: int
    reverse: bool
    patches: Patches | None = None


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows over planes of pixels, `read_bytes` wide in the input and `write_bytes` in the output.

    In NHWC the planes are the images; in NCHW an image has a plane for each channel. Input plane p is read by
    the output planes of its block: [p // fan_in * fan_out, (p // fan_in + 1) * fan_out).

    A step makes `pixels` pixels of a row, each in chunks of `chunk` bytes: the first chunk of all of them,
    then the next (in reverse from the last chunk on). It may read all of its inputs until its last chunk.

    With `elements` a step reads its pixel and goes from one of that many elements to the next: it writes each
    after the last read of it, and reads it for the last time after it has written those before it.
    """

    planes: int
    fan_in: int
    fan_out: int
    rows: Window
    columns: Window
    read_bytes: int
    write_bytes: int
    reverse: bool
    pixels: int = 1
    chunk: int = 0
    elements: int = 0

    @property
    def early(self) -> int | None:
        """The least safe distance in bytes of two pixels that overlap; None if a step reads its pixel first.

        The distance is the start of the pixel that is read less the start of the pixel that the same step
        writes (in reverse: the end of the pixel that is written less the end of the one that is read). At a
        smaller one the step writes over an element of the pixel that it has still to read.
        """
        if self.elements < 2:
            return None
        if self.read_bytes % self.elements:
            return self.write_bytes
        more = (self.write_bytes - self.read_bytes) // self.elements
        return max((self.elements - 1) * more, more)

    @property
    def written(self) -> int:
        """Pixels written."""
        return self.planes // self.fan_in * self.fan_out * self.rows.outputs * self.columns.outputs


def steps_of(network: Network, operator: int, operand: int) -> Elementwise | Windows | str:
    """Return the walk of an operator over one of its inputs, or in words why its geometry gives none.

    Steps may make several pixels, or channels in chunks, where pixels are contiguous (NHWC).
    """
    op = network.operators[operator]
    g = op.geometry
    plain = g is None or (g.pixels, g.channels) == (1, 0)
    if g is None or (plain and g.kind not in BY_PIXEL):
        return walk_of(network, operator)
    if g.pixels < 1 or g.channels < 0:
        return f"a step of {op.name} makes no pixel, or its chunks have no channel"
    if g.layout != "NHWC" and len(g.output) == 4:
        return f"pixels of {op.name} do not lie one after the other"
    found: Elementwise | Windows | str
    if g.kind in (*BY_PIXEL, "elementwise"):
        found = _by_pixel(network, operator, operand)
    else:
        found = walk_of(_walking(network, operator, replace(g, pixels=1, channels=0)), operator)
    if not isinstance(found, Windows):
        return found
    if g.kind == "fully_connected":  # its rows are pixels of one row
        found = replace(found, rows=found.columns, columns=found.rows)
    width = network.tensors[op.outputs[0]].bytes // prod(g.output)
    return replace(found, pixels=g.pixels, chunk=g.channels * width)


def _walking(network: Network, operator: int, geometry: Geometry) -> Network:
    """Return the same network with another geometry for one operator."""
    operators = list(network.operators)
    operators[operator] = replace(operators[operator], geometry=geometry)
    return replace(network, operators=tuple(operators))


def _by_pixel(network: Network, operator: int, operand: int) -> Windows | str:
    """Return the walk of an operator that reads a pixel of each operand for a pixel of its output."""
    op = network.operators[operator]
    g = op.geometry
    assert g is not None
    if len(op.outputs) != 1 or any(type(n) is not int or n < 1 for n in (*g.input, *g.output)):
        return f"{op.name} has not one output, or a size below 1"
    if any(network.tensors[t].patches is not None for t in (*op.outputs, operand)):
        return f"{op.name} has operands in patches"
    if len(g.output) != len(g.input) or len(g.output) not in (2, 4):
        return f"{op.name} is not two-dimensional"
    images, rows, columns = (
        (g.output[0], g.output[1], g.output[2]) if len(g.output) == 4 else (1, 1, g.output[0])
    )
    lines, points = Window(rows, rows), Window(columns, columns)
    if g.kind == "pad":
        if len(g.output) != 4 or len(g.padding) != 4 or operand != op.inputs[0]:
            return f"the geometry of {op.name} is not complete"
        lines = Window(g.input[1], rows, before=g.padding[0])
        points = Window(g.input[2], columns, before=g.padding[1])
    elif g.input[:-1] != g.output[:-1]:
        return f"{op.name} is between maps of different rows or columns"
    read, rest = divmod(network.tensors[operand].bytes, images * lines.size * points.size)
    write, more = divmod(network.tensors[op.outputs[0]].bytes, images * rows * columns)
    if rest or more or element_bytes(network.tensors[op.outputs[0]].bytes, prod(g.output)) is None:
        return f"the geometry of {op.name} does not have the size of its tensors"
    if (
        g.kind == "concat"
        and sum(network.tensors[t].bytes for t in op.inputs) != write * images * rows * columns
    ):
        return f"{op.name} does not join its operands"
    elements = g.output[-1] if g.kind == "rowwise" and (g.pixels, g.channels) == (1, 0) else 0
    reverse = g.traversal == "reverse"
    return Windows(images, 1, 1, lines, points, read, write, reverse, elements=elements)


def walk_of(network: Network, operator: int) -> Elementwise | Windows | str:
    """Return the walk of an operator, one pixel a step, or in words why its geometry gives none."""
    op = network.operators[operator]
    g = op.geometry
    if g is None:
        return f"{op.name} states no geometry"
    if len(op.outputs) != 1 or not op.inputs:
        return f"{op.name} has not one output and an input"
    if any(type(n) is not int or n < 1 for n in (*g.input, *g.output, g.groups)):
        return f"the geometry of {op.name} has a size below 1"
    if g.pixels != 1 or g.channels != 0:
        return f"{op.name} makes several pixels a step, or channels in chunks"
    out, first = network.tensors[op.outputs[0]], network.tensors[op.inputs[0]]
    steps = prod(g.output) if out.patches is None else out.patches.elements
    wide = element_bytes(out.bytes, steps)
    reverse = g.traversal == "reverse"
    if g.kind == "elementwise" and wide is not None:
        # Any input but the largest may be broadcast: callers look at the size of the input they ask about.
        if g.input != g.output:
            return f"{op.name} is element-wise between different shapes"
        return Elementwise(steps, reverse, out.patches)
    if out.patches is not None or first.patches is not None:
        return f"{op.name} has operands in patches"
    read = element_bytes(first.bytes, prod(g.input))
    if wide is None or read is None:
        return f"the geometry of {op.name} does not have the size of its tensors"
    if g.kind == "fully_connected":
        if not g.input or not g.output or prod(g.input[:-1]) != prod(g.output[:-1]):
            return f"the rows of {op.name} differ between input and output"
        rows = prod(g.input[:-1])
        line, point = Window(rows, rows), Window(1, 1)
        return Windows(1, 1, 1, line, point, g.input[-1] * read, g.output[-1] * wide, reverse)
    if g.kind in WINDOWED:
        return _windows(op.name, g, read, wide, reverse)
    return f"nothing is known of operators of kind {g.kind}"


def element_bytes(size: int, elements: int) -> int | None:
    """Return the bytes of one of a tensor's elements, or None if it does not have that many."""
    width, rest = divmod(size, elements)
    return width if not rest and width in ELEMENT_BYTES else None


@dataclass(frozen=True, slots=True)
class WindowShape:
    """Windows over maps of any layout: each of `groups` parts of the channels is on its own."""

    images: int
    channels: int
    out_channels: int
    groups: int
    rows: Window
    columns: Window

    @property
    def fan_in(self) -> int:
        """Input channels that an output channel reads."""
        return self.channels // self.groups


def window_shape(name: str, g: Geometry) -> WindowShape | str:
    """Return the windows of a geometry of a kind in `WINDOWED`, or in words why it gives none."""
    stride, dilation, padding = g.stride or (1, 1), g.dilation or (1, 1), g.padding or (0, 0, 0, 0)
    if len(g.input) != 4 or len(g.output) != 4 or (len(g.kernel), len(stride), len(dilation)) != (2, 2, 2):
        return f"{name} is not two-dimensional"
    if len(padding) != 4 or min(*g.kernel, *stride, *dilation) < 1:
        return f"the geometry of {name} is not complete"
    if g.layout == "NHWC":
        (images, height, width, channels), (out_images, out_height, out_width, out_channels) = (
            g.input,
            g.output,
        )
    else:
        (images, channels, height, width), (out_images, out_channels, out_height, out_width) = (
            g.input,
            g.output,
        )
    groups = g.groups if g.kind == "conv" else channels
    if images != out_images or channels % groups or out_channels % groups:
        return f"the images or channels of {name} do not match"
    if g.kind == "pool" and channels != out_channels:
        return f"{name} pools {channels} channels into {out_channels}"
    rows, columns = window_of(g, 0, height, out_height), window_of(g, 1, width, out_width)
    return WindowShape(images, channels, out_channels, groups, rows, columns)


def _windows(name: str, g: Geometry, read: int, wide: int, reverse: bool) -> Windows | str:
    s = window_shape(name, g)
    if isinstance(s, str):
        return s
    if g.layout == "NHWC":
        return Windows(s.images, 1, 1, s.rows, s.columns, s.channels * read, s.out_channels * wide, reverse)
    fan = s.fan_in, s.out_channels // s.groups
    return Windows(s.images * s.channels, *fan, s.rows, s.columns, read, wide, reverse)
