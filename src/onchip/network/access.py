"""The access relation: the part of each operand and of the weights that a part of an operator's output needs.

`access_of` states it for every operator whose geometry makes a promise, or that has a reach: the one place
that turns a geometry or a reach into windows over maps. Planners price tiles with it, the checker proves
tiles with it, and the executor cuts tiles with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from onchip.network.maps import Map, Maps
from onchip.network.operators import Geometry, Operator, Reach, Side
from onchip.network.windows import Window, window_of

__all__ = ["Access", "Form", "Kernel", "Operand", "access_of"]

Form = Literal["reduce", "elementwise", "concat", "channelwise", "rowwise"]
"""The inputs of an output channel. `reduce`: many input channels, one after the other. `elementwise`: the
same channel of every operand, at the same place. `concat`: one channel of one operand. `channelwise`: the
same channel (pool, depthwise, pad). `rowwise`: all input channels at once."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The weights of an operator: `taps` for every output channel and each of the `inputs` that it sums over.

    The remaining bytes (a bias, folded norms) belong to the output channels.
    """

    taps: int
    inputs: int
    outputs: int

    def part(self, weights: int, outputs: int, inputs: int) -> int:
        """Return the bytes, of `weights`, for `outputs` output channels with `inputs` inputs each."""
        outputs, inputs = min(outputs, self.outputs), min(inputs, self.inputs)
        matrix = self.taps * self.inputs * self.outputs
        width = max(1, weights // matrix) if matrix and weights else 0
        rest = max(0, weights - width * matrix)
        return min(weights, width * self.taps * inputs * outputs + -(-rest * outputs // self.outputs))


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that an operator reads, and the windows of the output's rows and columns over it.

    `broadcast`: it is repeated over the output. `whole`: every output row needs all of its rows. `channel` is
    the first of its channels in the output of a concat.
    """

    tensor: int
    rows: Window
    columns: Window
    broadcast: bool = False
    whole: bool = False
    channel: int = 0


@dataclass(frozen=True, slots=True)
class Access:
    """The dependence of one operator's outputs on its operands (distinct tensors) and its `weights` bytes.

    Input and output channels fall into `groups` parts that do not depend on each other.
    """

    id: int
    name: str
    form: Form
    operands: tuple[Operand, ...]
    writes: tuple[int, ...]
    kernel: Kernel
    weights: int
    groups: int = 1

    @property
    def reads(self) -> tuple[int, ...]:
        """The tensors of the operands."""
        return tuple(operand.tensor for operand in self.operands)

    @property
    def windowed(self) -> bool:
        """True if the operator slides a window over one operand, or multiplies it by a matrix."""
        return self.form in ("reduce", "channelwise")


def access_of(maps: Maps, operator: int) -> Access | str:
    """Return the access relation of an operator, or what is not known of it, in words that follow "and"."""
    network, op = maps.network, maps.network.operators[operator]
    g, found = op.geometry, dict[int, Map]()
    if (g is None or not g.promises) and op.reach is None:
        if g is None:
            return f"{op.name} states no geometry"
        return f"{op.name} is of kind {g.kind}, of which nothing is known"
    if not op.inputs or not op.outputs:
        return f"{op.name} has not an input and an output"
    for t in (*op.inputs, *op.outputs):
        shown = network.tensors[t].name
        if network.root[t] != t:
            return f"{op.name} reads {shown}, a view"
        if network.tensors[t].patches is not None:
            return f"{shown}, an operand of {op.name}, lies in patches"
        map_ = maps.of(t)
        if map_ is None:
            return f"nothing says the shape of {shown}, an operand of {op.name}"
        found[t] = map_
    access: Access | str
    if g is not None and g.promises:
        if _by_dimensions(g, found[op.inputs[0]]):
            rank = 4 if g.kind != "elementwise" else len(g.output or network.tensors[op.outputs[0]].shape)
            for t in op.inputs:
                if not maps.agrees(t, rank):
                    shown = network.tensors[t].name
                    return f"{op.name} may read {shown} along other axes than the shape of {shown} says"
        access = _access(op, g, [found[t] for t in op.inputs], [found[t] for t in op.outputs])
    else:
        assert op.reach is not None
        access = _reached(maps, op, op.reach, found)
    return f"{op.name} {access}" if isinstance(access, str) else access


def _by_dimensions(g: Geometry, first: Map) -> bool:
    """Return whether an operator depends on where each dimension of its map lies, not on rows of features."""
    if g.kind == "fully_connected":
        return g.input[-1:] != (first.channels,)
    return g.kind == "elementwise" or len(g.input) == 4


def _access(op: Operator, g: Geometry, read: Sequence[Map], made: Sequence[Map]) -> Access | str:
    """Return the operator's access relation, or in words the error of its geometry."""
    first, out = read[0], made[0]
    if len(made) > 1 and g.kind != "rowwise":
        return "has several outputs"
    if len(read) > 1 and g.kind not in ("elementwise", "concat", "rowwise"):
        return f"is of kind {g.kind} and has several inputs"
    match g.kind:
        case "conv" | "depthwise" | "pool":
            return _windowed(op, g, first, out)
        case "fully_connected":
            return _matrix(op, g, first, out)
        case "elementwise":
            return _elementwise(op, read, out)
        case "concat":
            return _concat(op, read, out)
        case "pad":
            return _pad(op, g, first, out)
    assert g.kind == "rowwise"
    if any(m.plane != out.plane for m in (*read, *made)):
        return "is row-wise between maps of different rows or columns"
    return _by_channel(op, "rowwise", out, [_same_place(t, out) for t in op.inputs])


def _same_place(tensor: int, out: Map, channel: int = 0) -> Operand:
    """Return an operand of which an output position reads the same position."""
    return Operand(tensor, Window(out.rows, out.rows), Window(out.columns, out.columns), channel=channel)


def _by_channel(op: Operator, form: Form, out: Map, operands: Sequence[Operand], groups: int = 1) -> Access:
    """Return the relation of an operator whose weights, if any, belong to output channels."""
    kernel = Kernel(0, 1, out.channels)
    return Access(op.id, op.name, form, tuple(operands), op.outputs, kernel, op.weight_bytes, groups)


def _elementwise(op: Operator, read: Sequence[Map], out: Map) -> Access | str:
    operands = []
    for t, m in zip(op.inputs, read, strict=True):
        if any(mine not in (1, size) for mine, size in zip(m.shape, out.shape, strict=True)):
            return "is element-wise between maps that do not match"
        rows = Window(m.rows, out.rows, stride=int(m.rows == out.rows))
        columns = Window(m.columns, out.columns, stride=int(m.columns == out.columns))
        operands.append(Operand(t, rows, columns, m.shape != out.shape, whole=m.rows != out.rows))
    return _by_channel(op, "elementwise", out, operands)


def _concat(op: Operator, read: Sequence[Map], out: Map) -> Access | str:
    if any(m.plane != out.plane or m.element != out.element for m in read):
        return "joins maps of different rows, columns or elements"
    if sum(m.channels for m in read) != out.channels:
        return "does not join channels of its operands to those of its output"
    first = [sum(m.channels for m in read[:i]) for i in range(len(read))]
    operands = [_same_place(t, out, channel) for t, channel in zip(op.inputs, first, strict=True)]
    return _by_channel(op, "concat", out, operands)


def _pad(op: Operator, g: Geometry, first: Map, out: Map) -> Access | str:
    if len(g.padding) != 4:
        return "does not say how it pads"
    top, left, bottom, right = g.padding
    if (first.rows + top + bottom, first.columns + left + right) != out.plane:
        return "does not pad its input to its output"
    if first.channels != out.channels:
        return "pads and changes the number of channels"
    rows = Window(first.rows, out.rows, before=top)
    columns = Window(first.columns, out.columns, before=left)
    return _by_channel(op, "channelwise", out, [Operand(op.inputs[0], rows, columns)], out.channels)


def _windowed(op: Operator, g: Geometry, first: Map, out: Map) -> Access | str:
    stride, dilation, padding = g.stride or (1, 1), g.dilation or (1, 1), g.padding or (0, 0, 0, 0)
    if len(g.input) != 4 or len(g.output) != 4 or (len(g.kernel), len(stride), len(dilation)) != (2, 2, 2):
        return "is not two-dimensional"
    if len(padding) != 4 or min(*g.kernel, *stride, *dilation) < 1:
        return "has a geometry that is not complete"
    sides = g.input[1:] if g.layout == "NCHW" else (g.input[3], g.input[1], g.input[2])
    if tuple(sides) != first.shape:
        return "reads a map of another shape than was made"
    groups = g.groups if g.kind == "conv" else first.channels
    if groups < 1 or first.channels % groups or out.channels % groups:
        return "has channels that do not fall into its groups"
    if g.kind == "pool" and first.channels != out.channels:
        return "pools, and changes the number of channels"
    rows, columns = (
        window_of(g, axis, size, outputs)
        for axis, (size, outputs) in enumerate(zip(first.plane, out.plane, strict=True))
    )
    whole = g.kind == "pool" and out.rows == 1 and g.kernel[0] == first.rows and not padding[0]
    operands = [Operand(op.inputs[0], rows, columns, whole=whole)]
    if g.kind != "conv" and first.channels == out.channels:
        return _by_channel(op, "channelwise", out, operands, groups)
    kernel = Kernel(prod(g.kernel), first.channels // groups, out.channels)
    return Access(op.id, op.name, "reduce", tuple(operands), op.outputs, kernel, op.weight_bytes, groups)


def _matrix(op: Operator, g: Geometry, first: Map, out: Map) -> Access | str:
    if len(g.input) != 2 or len(g.output) != 2:
        return "is no matrix of rows and features"
    if g.input[1] == first.channels and first.columns == out.columns == 1 and first.rows == out.rows:
        operand = _same_place(op.inputs[0], out)
    elif g.input[1] == prod(first.shape) and out.plane == (1, 1):
        rows, columns = Window(first.rows, 1, span=first.rows), Window(first.columns, 1, span=first.columns)
        operand = Operand(op.inputs[0], rows, columns, whole=True)
    else:
        return "reads a map of another shape than was made"
    kernel = Kernel(operand.rows.taps * operand.columns.taps, first.channels, out.channels)
    return Access(op.id, op.name, "reduce", (operand,), op.outputs, kernel, op.weight_bytes)


# -- from a reach ------------------------------------------------------------------------------------------


def _reached(maps: Maps, op: Operator, reach: Reach, found: Mapping[int, Map]) -> Access | str:
    """Return the relation of an operator without a geometry, by its reach, or the reason why there is none.

    A pixel of the output may need all channels of an operand. If the reach along rows or columns is no
    window, all of them count as needed.
    """
    if len(op.outputs) != 1:
        return "has several outputs"
    dims = {t: _dimensions(maps, t, found[t]) for t in found}
    if None in dims.values():
        return "has an operand or an output that lies in other dimensions than those of its map"
    out, axes = found[op.outputs[0]], [Side(n, axis) for axis, n in enumerate(reach.output)]
    made = _parted(axes, dims[op.outputs[0]] or ())
    if made is None or len(made.get("h", ())) > 1:
        return "has a reach that does not go by images, channels, rows and columns"
    operands = []
    for t, sides in zip(op.inputs, reach.reads, strict=True):
        parted = _parted(sides, dims[t] or ())
        if parted is None or parted.get("n", ()) != made.get("n", ()):
            return "has a reach that does not go image by image"
        rows = _window(parted.get("h", ()), found[t].rows, made.get("h", ()), out.rows)
        columns = _window(parted.get("w", ()), found[t].columns, made.get("w", ()), out.columns)
        whole = not rows.stride and found[t].rows > 1
        operands.append(Operand(t, rows, columns, whole=whole))
    along = {side.axis for side in made.get("c", ())}
    if any(not along <= {s.axis for s in constant.sides} for constant in reach.weights):
        return "fetches weights that do not belong to channels of its output"
    return _by_channel(op, "rowwise", out, operands)


def _dimensions(maps: Maps, tensor: int, found: Map) -> tuple[tuple[str, int], ...] | None:
    """Return the tensor's dimensions in the order of memory: the axis (n, c, h or w) and its size."""
    stated = maps.stated(tensor)
    if stated is None or stated[0] != found:
        return None
    sizes = {"n": found.images, "c": found.channels, "h": found.rows, "w": found.columns}
    return tuple((axis, sizes[axis]) for axis in stated[1])


def _parted(sides: Sequence[Side], dims: Sequence[tuple[str, int]]) -> dict[str, tuple[Side, ...]] | None:
    """Return the sides of each dimension, None if a side crosses the end of a dimension."""
    rest = [side for side in sides if side.size > 1]
    found = {}
    for axis, size in dims:
        own: list[Side] = []
        while rest and prod(s.size for s in own) < size:
            own.append(rest.pop(0))
        if prod(s.size for s in own) != size:
            return None
        found[axis] = tuple(own)
    return found


def _window(sides: tuple[Side, ...], size: int, made: tuple[Side, ...], outputs: int) -> Window:
    """Return the window along one dimension of an operand; the output has the sides `made` there."""
    if len(sides) == len(made) == 1 and sides[0].axis == made[0].axis:
        [side] = sides
        if side.per == 1 and side.stride:
            return Window(size, outputs, side.stride, side.before, side.span)
    if sides == made and size == outputs:
        return Window(size, outputs)
    return Window(size, outputs, stride=0, span=size)
