"""How an operator walks over its operands, from its geometry: the domain that proofs are computed over.

A walk is a sequence of steps. A step reads everything it needs from the operator's first input, and only then
writes its piece of the output: one pixel with all its channels in NHWC, one element in NCHW (for a fully
connected layer one row, for an element-wise operator one element, of every input). Steps follow the
addresses of the output, upwards or (traversal `reverse`) downwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from onchip.network import Geometry, Network, Patches

__all__ = [
    "ELEMENT_BYTES",
    "WINDOWED",
    "Axis",
    "Elementwise",
    "WindowShape",
    "Windows",
    "walk_of",
    "window_shape",
]

ELEMENT_BYTES = (1, 2, 4, 8)
WINDOWED = ("conv", "depthwise", "pool")


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
class Axis:
    """One spatial axis: output position o reads the inputs o * stride - before + k * dilation, k < taps."""

    size: int
    outputs: int
    taps: int
    stride: int
    dilation: int
    before: int

    @property
    def span(self) -> int:
        """Input positions from the first to the last that one output position reads."""
        return (self.taps - 1) * self.dilation + 1


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows over planes of pixels, `read_bytes` wide in the input and `write_bytes` in the output.

    In NHWC the planes are the images; in NCHW an image has a plane for each channel. Input plane p is read by
    the output planes of its block: [p // fan_in * fan_out, (p // fan_in + 1) * fan_out).
    """

    planes: int
    fan_in: int
    fan_out: int
    rows: Axis
    columns: Axis
    read_bytes: int
    write_bytes: int
    reverse: bool

    @property
    def steps(self) -> int:
        """Pixels written."""
        return self.planes // self.fan_in * self.fan_out * self.rows.outputs * self.columns.outputs


def walk_of(network: Network, operator: int) -> Elementwise | Windows | str:
    """The walk of an operator, or in words why its geometry gives none."""
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
        # Any input but the largest may be one that is broadcast: who asks about an input looks at its size.
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
        line, point = Axis(rows, rows, 1, 1, 1, 0), Axis(1, 1, 1, 1, 1, 0)
        return Windows(1, 1, 1, line, point, g.input[-1] * read, g.output[-1] * wide, reverse)
    if g.kind in WINDOWED:
        return _windows(op.name, g, read, wide, reverse)
    return f"nothing is known of operators of kind {g.kind}"


def element_bytes(size: int, elements: int) -> int | None:
    """Bytes of one of a tensor's elements, or None when it has not that many."""
    width, rest = divmod(size, elements)
    return width if not rest and width in ELEMENT_BYTES else None


@dataclass(frozen=True, slots=True)
class WindowShape:
    """Windows over maps, whatever their layout: each of `groups` parts of the channels is on its own."""

    images: int
    channels: int
    out_channels: int
    groups: int
    rows: Axis
    columns: Axis

    @property
    def fan_in(self) -> int:
        """Input channels that an output channel reads."""
        return self.channels // self.groups


def window_shape(name: str, g: Geometry) -> WindowShape | str:
    """The windows of a geometry of a kind in `WINDOWED`, or in words why it gives none."""
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
    rows = Axis(height, out_height, g.kernel[0], stride[0], dilation[0], padding[0])
    columns = Axis(width, out_width, g.kernel[1], stride[1], dilation[1], padding[1])
    return WindowShape(images, channels, out_channels, groups, rows, columns)


def _windows(name: str, g: Geometry, read: int, wide: int, reverse: bool) -> Windows | str:
    s = window_shape(name, g)
    if isinstance(s, str):
        return s
    if g.layout == "NHWC":
        return Windows(s.images, 1, 1, s.rows, s.columns, s.channels * read, s.out_channels * wide, reverse)
    fan = s.fan_in, s.out_channels // s.groups
    return Windows(s.images * s.channels, *fan, s.rows, s.columns, read, wide, reverse)
