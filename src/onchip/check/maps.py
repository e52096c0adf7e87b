"""What an operator's geometry says about maps and windows: what proofs about tiled groups stand on.

A map is [images, channels, rows, columns] whatever the layout. A tensor's is its producer's output, a graph
input's what the first reader that states it reads. Where the geometry says nothing certain, the group is
`group-unproved`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal, NoReturn

from onchip.check.rules import broken
from onchip.check.walk import ELEMENT_BYTES
from onchip.network import Geometry, Network, Operator

__all__ = ["Class", "Kernel", "Map", "Maps", "Piece", "Window"]

Class = Literal["sum", "pointwise", "join", "plane", "row"]
"""What an output channel is made from. `sum`: many input channels, one after the other. `pointwise`: the same
channel of every operand, at the same place. `join`: one channel of one operand (concat). `plane`: the same
channel (pool, depthwise, pad). `row`: all input channels at once."""


@dataclass(frozen=True, slots=True)
class Map:
    """The shape of a tensor, and the bytes of one of its elements."""

    images: int
    channels: int
    rows: int
    columns: int
    element: int

    @property
    def plane(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.columns

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, rows and columns."""
        return self.channels, self.rows, self.columns


@dataclass(frozen=True, slots=True)
class Window:
    """Along one axis, output position o reads inputs o * stride - before + i, 0 <= i < span, that exist.

    With stride 0 every output position reads the same.
    """

    stride: int = 1
    before: int = 0
    span: int = 1

    def end(self, outputs: int, size: int) -> int:
        """One past the last input that outputs [0, `outputs`) read, of `size` inputs."""
        if outputs <= 0:
            return 0
        return min(max((outputs - 1) * self.stride - self.before + self.span, 0), size)

    def start(self, output: int, size: int) -> int:
        """The first input that outputs from `output` on read."""
        return min(max(output * self.stride - self.before, 0), size)


@dataclass(frozen=True, slots=True)
class Kernel:
    """The weights of an operator: `taps` for every output channel and each of the `inputs` that it sums over.

    Whatever bytes are left (a bias, folded norms) belong to the output channels.
    """

    taps: int
    inputs: int
    outputs: int

    def part(self, weights: int, outputs: int, inputs: int) -> int:
        """Bytes, of `weights`, for that many output channels, each with that many of its inputs."""
        outputs, inputs = min(outputs, self.outputs), min(inputs, self.inputs)
        matrix = self.taps * self.inputs * self.outputs
        width = max(1, weights // matrix) if matrix and weights else 0
        rest = max(0, weights - width * matrix)
        return min(weights, width * self.taps * inputs * outputs + -(-rest * outputs // self.outputs))


@dataclass(frozen=True, slots=True)
class Piece:
    """An operator of a tiled group. `rows` and `columns` are its windows, one for each operand in `reads`.

    `repeated` are operands that are broadcast; `offsets` are where the channels of a join's operands begin.
    `fan` is the input channels that one output channel sums over, `groups` into how many parts they fall.
    """

    id: int
    name: str
    of: Class
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    rows: tuple[Window, ...]
    columns: tuple[Window, ...]
    kernel: Kernel
    weights: int
    groups: int = 1
    repeated: Collection[int] = ()
    offsets: tuple[int, ...] = ()


class Maps:
    """The maps of a network's tensors and the pieces of its operators, worked out when asked for."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._known: dict[int, Map | None] = {}

    @cached_property
    def batch(self) -> int | None:
        """Images in the network: what most shapes of four numbers start with; None where there are none."""
        seen = Counter(
            shape[0]
            for op in self.network.operators
            if op.geometry is not None and op.geometry.promises
            for shape in (op.geometry.input, op.geometry.output)
            if len(shape) == 4
        )
        return max(seen, key=lambda n: (seen[n], n), default=None)

    # -- tensors -----------------------------------------------------------------------------------------

    def of(self, tensor: int) -> Map | None:
        """The map of a root tensor, None where nothing says it."""
        if tensor not in self._known:
            self._known[tensor] = self._find(tensor)
        return self._known[tensor]

    def _find(self, tensor: int) -> Map | None:
        network = self.network
        producer = network.producer[tensor]
        if producer is not None:
            return self._written(network.operators[producer], tensor)
        # Whoever flattens it says least: the widest of what its readers say, the first of those in order.
        readers = (op for op in map(network.operators.__getitem__, network.order) if tensor in op.inputs)
        said = (found for op in readers if (found := self._read(op, tensor)) is not None)
        return max(said, key=lambda found: found.rows * found.columns, default=None)

    def _written(self, op: Operator, tensor: int) -> Map | None:
        g = op.geometry
        if g is None:
            return None
        if len(op.outputs) == 1:
            return self._map(g.output, g.layout, tensor)
        # Several outputs share out the channels of the stated shape, of elements as wide as the input's:
        # then their bytes together are as many as its elements.
        whole, first = self._shape(g.output, g.layout), self._element(g.input, g.layout, op.inputs[:1])
        if g.kind != "rowwise" or whole is None or first is None:
            return None
        if sum(map(self._bytes, op.outputs)) != prod(whole) * first:
            return None
        images, _, rows, columns = whole
        channels, rest = divmod(self._bytes(tensor), images * rows * columns * first)
        return Map(images, channels, rows, columns, first) if channels and not rest else None

    def _read(self, op: Operator, tensor: int) -> Map | None:
        g = op.geometry
        if g is None or not g.promises:
            return None
        if g.kind == "elementwise":
            # What has fewer bytes may be broadcast, and then nothing says its shape.
            largest = max(self.network.tensors[t].bytes for t in (*op.inputs, *op.outputs))
            return self._map(g.output, g.layout, tensor) if self._bytes(tensor) == largest else None
        if g.kind == "concat" and tensor != op.inputs[0]:
            whole, element = self._shape(g.output, g.layout), self._element(g.output, g.layout, op.outputs)
            if whole is None or element is None:
                return None
            images, _, rows, columns = whole
            channels, rest = divmod(self._bytes(tensor), images * rows * columns * element)
            return Map(images, channels, rows, columns, element) if channels and not rest else None
        return self._map(g.input, g.layout, tensor) if tensor == op.inputs[0] else None

    def _bytes(self, tensor: int) -> int:
        return self.network.tensors[tensor].bytes

    def _map(self, shape: Sequence[int], layout: str, tensor: int) -> Map | None:
        sides, element = self._shape(shape, layout), self._element(shape, layout, (tensor,))
        return None if sides is None or element is None else Map(*sides, element)

    def _element(self, shape: Sequence[int], layout: str, tensors: Sequence[int]) -> int | None:
        """Bytes of an element of the only one of `tensors`, which has that shape."""
        sides = self._shape(shape, layout)
        if sides is None or len(tensors) != 1:
            return None
        width, rest = divmod(self._bytes(tensors[0]), prod(sides))
        return width if not rest and width in ELEMENT_BYTES else None

    def _shape(self, shape: Sequence[int], layout: str) -> tuple[int, int, int, int] | None:
        """(images, channels, rows, columns); a matrix is (images, features), or (rows, features) of one."""
        if any(type(n) is not int or n < 1 for n in shape):
            return None
        if len(shape) == 4 and shape[0] == self.batch:
            n, c, h, w = shape if layout == "NCHW" else (shape[0], shape[3], shape[1], shape[2])
            return n, c, h, w
        if len(shape) == 2 and self.batch is None:
            return 1, shape[1], shape[0], 1
        if len(shape) == 2 and shape[0] == self.batch:
            return shape[0], shape[1], 1, 1
        return None

    # -- operators ---------------------------------------------------------------------------------------

    def piece(self, operator: int, group: str) -> Piece:
        """An operator as part of a tiled group. Raises `Broken` (`group-unproved`) where nothing is sure."""
        network, op = self.network, self.network.operators[operator]

        def refuse(reason: str) -> NoReturn:
            broken("group-unproved", f"group {group} runs in tiles, and {reason}")

        g, maps = op.geometry, dict[int, Map]()
        if g is None:
            refuse(f"{op.name} states no geometry")
        if not g.promises:
            refuse(f"{op.name} is of kind {g.kind}, of which nothing is known")
        if not op.inputs or not op.outputs:
            refuse(f"{op.name} has not an input and an output")
        for t in (*op.inputs, *op.outputs):
            shown = network.tensors[t].name
            if network.root[t] != t:
                refuse(f"{op.name} reads {shown}, a view")
            if network.tensors[t].patches is not None:
                refuse(f"{shown}, an operand of {op.name}, lies in patches")
            found = self.of(t)
            if found is None:
                refuse(f"nothing says the shape of {shown}, an operand of {op.name}")
            maps[t] = found
        read, made = [maps[t] for t in op.inputs], [maps[t] for t in op.outputs]
        piece = _piece(op, g, read, made)
        if isinstance(piece, str):
            refuse(f"{op.name} {piece}")
        return piece


def _piece(op: Operator, g: Geometry, read: Sequence[Map], made: Sequence[Map]) -> Piece | str:
    """The operator's piece, or in words what is wrong with its geometry."""
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
            return _pointwise(op, read, out)
        case "concat":
            if any(m.plane != out.plane or m.element != out.element for m in read):
                return "joins maps of different rows, columns or elements"
            if sum(m.channels for m in read) != out.channels:
                return "does not join channels of its operands to those of its output"
            offsets = tuple(sum(m.channels for m in read[:i]) for i in range(len(read)))
            return _plain(op, "join", out, (Window(),) * len(read), offsets=offsets)
        case "pad":
            if len(g.padding) != 4:
                return "does not say how it pads"
            top, left, bottom, right = g.padding
            if (first.rows + top + bottom, first.columns + left + right) != out.plane:
                return "does not pad its input to its output"
            if first.channels != out.channels:
                return "pads and changes the number of channels"
            return _plain(op, "plane", out, (Window(before=top),), columns=(Window(before=left),))
    assert g.kind == "rowwise"
    if any(m.plane != out.plane for m in (*read, *made)):
        return "is row-wise between maps of different rows or columns"
    return _plain(op, "row", out, (Window(),) * len(read))


def _plain(
    op: Operator,
    of: Class,
    out: Map,
    rows: tuple[Window, ...],
    *,
    columns: tuple[Window, ...] | None = None,
    repeated: Collection[int] = (),
    offsets: tuple[int, ...] = (),
) -> Piece:
    """The piece of an operator whose weights, if any, belong to output channels."""
    kernel = Kernel(0, 1, out.channels)
    return Piece(
        op.id, op.name, of, op.inputs, op.outputs, rows, columns or rows, kernel, op.weight_bytes,
        repeated=frozenset(repeated), offsets=offsets,
    )  # fmt: skip


def _pointwise(op: Operator, read: Sequence[Map], out: Map) -> Piece | str:
    rows, columns, repeated = [], [], []
    for t, m in zip(op.inputs, read, strict=True):
        if any(mine not in (1, size) for mine, size in zip(m.shape, out.shape, strict=True)):
            return "is element-wise between maps that do not match"
        if m.shape != out.shape:
            repeated.append(t)
        rows.append(Window(stride=int(m.rows == out.rows)))
        columns.append(Window(stride=int(m.columns == out.columns)))
    return _plain(op, "pointwise", out, tuple(rows), columns=tuple(columns), repeated=repeated)


def _windowed(op: Operator, g: Geometry, first: Map, out: Map) -> Piece | str:
    stride, dilation, padding = g.stride or (1, 1), g.dilation or (1, 1), g.padding or (0, 0, 0, 0)
    if len(g.input) != 4 or len(g.output) != 4 or (len(g.kernel), len(stride), len(dilation)) != (2, 2, 2):
        return "is not two-dimensional"
    if len(padding) != 4 or min(*g.kernel, *stride, *dilation) < 1:
        return "has a geometry that is not complete"
    sides = g.input[1:] if g.layout == "NCHW" else (g.input[3], g.input[1], g.input[2])
    if tuple(sides) != first.shape:
        return "reads a map of another shape than was made"
    windows = []
    for axis in (0, 1):
        span = (g.kernel[axis] - 1) * dilation[axis] + 1
        windows.append(Window(stride[axis], padding[axis], span))
    groups = g.groups if g.kind == "conv" else first.channels
    if groups < 1 or first.channels % groups or out.channels % groups:
        return "has channels that do not fall into its groups"
    if g.kind == "pool" and first.channels != out.channels:
        return "pools, and changes the number of channels"
    alone = g.kind != "conv" and first.channels == out.channels
    if alone:
        return _plain(op, "plane", out, (windows[0],), columns=(windows[1],))
    kernel = Kernel(prod(g.kernel), first.channels // groups, out.channels)
    return Piece(
        op.id, op.name, "sum", op.inputs, op.outputs, (windows[0],), (windows[1],), kernel, op.weight_bytes,
        groups=groups,
    )  # fmt: skip


def _matrix(op: Operator, g: Geometry, first: Map, out: Map) -> Piece | str:
    if len(g.input) != 2 or len(g.output) != 2:
        return "is no matrix of rows and features"
    if g.input[1] == first.channels and first.columns == out.columns == 1 and first.rows == out.rows:
        windows, taps = (Window(), Window()), 1
    elif g.input[1] == prod(first.shape) and out.plane == (1, 1):
        windows, taps = (Window(span=first.rows), Window(span=first.columns)), prod(first.plane)
    else:
        return "reads a map of another shape than was made"
    kernel = Kernel(taps, first.channels, out.channels)
    rows, columns = windows
    return Piece(op.id, op.name, "sum", op.inputs, op.outputs, (rows,), (columns,), kernel, op.weight_bytes)
