"""A network as segments sees it: maps of pixels, and layers whose windows slide over them.

A map is rows x columns of pixels, each a run of bytes (NHWC). A layer makes one map from one or more; along
rows and along columns, its output position o reads the inputs o * stride - before ... + span that exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from onchip.network import Geometry, Network, Operator
from onchip.network.windows import Window, window_of

__all__ = ["Layer", "Layers", "Map", "layers_of", "own_pixel"]

ACCUMULATOR_BYTES = 4


@dataclass(frozen=True, slots=True)
class Map:
    """A tensor as a map; `pixel` are the bytes of one pixel, all channels."""

    rows: int
    columns: int
    pixel: int

    @property
    def row(self) -> int:
        """The bytes of one row."""
        return self.columns * self.pixel

    @property
    def bytes(self) -> int:
        return self.rows * self.row


@dataclass(frozen=True, slots=True)
class Layer:
    """An operator: `rows[i]` and `columns[i]` are its windows over the map `reads[i]`; it makes `makes`.

    A step writes `step` pixels, in chunks of `chunk` of their bytes each, so that `early` bytes of the last
    pixel are written before its last chunk. A layer that `adds_up` is a pool over a whole map, which takes
    the map row by row as it is made. `macs` are those of one output pixel. A layer is `blind` if it reads a
    map in another shape than it was made in, or if no window states what it reads: it shares no group, and
    nothing may overlap its inputs.
    """

    operator: int
    reads: tuple[int, ...]
    makes: int
    rows: tuple[Window, ...]
    columns: tuple[Window, ...]
    step: int
    chunk: int
    early: int
    workspace: int
    macs: int
    adds_up: bool
    blind: bool = False


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of a network in its running order, and the map of every tensor; `reverse` if mirrored."""

    network: Network
    layers: tuple[Layer, ...]
    maps: Mapping[int, Map]
    reverse: bool = False

    def mirrored(self) -> Layers:
        """Return the same network seen from the last pixel to the first."""
        turned = tuple(_mirrored(layer, self.maps[layer.makes]) for layer in self.layers)
        return replace(self, layers=turned, reverse=not self.reverse)


def _mirrored(layer: Layer, made: Map) -> Layer:
    return replace(
        layer,
        early=made.pixel
        - min(layer.chunk, made.pixel),  # chunks come from the last, maybe smaller, to the first
        rows=tuple(w.mirrored() for w in layer.rows),
        columns=tuple(w.mirrored() for w in layer.columns),
    )


def own_pixel(net: Layers, layer: Layer, operand: int) -> int | None:
    """Return the bytes that a layer writes of a pixel before its last read of that pixel of an operand.

    None for nothing. A layer that goes from element to element (element-wise or row-wise, in no steps of its
    own) has written e elements when it reads element e for the last time. The operand's bytes at D then meet
    earlier ones from D > -(its pixel) to D < the result; where the operand has other elements, it is all of
    the pixel.
    """
    g = net.network.operators[layer.operator].geometry
    if g is None or g.kind not in ("elementwise", "rowwise") or (g.pixels, g.channels) != (1, 0):
        return None
    made, read, channels = net.maps[layer.makes], net.maps[operand], g.output[-1]
    if (
        (made.rows, made.columns) != (read.rows, read.columns)
        or read.pixel % channels
        or made.pixel % channels
    ):
        return made.pixel
    more = (made.pixel - read.pixel) // channels
    return max((channels - 1) * more, more) if channels > 1 else None


def layers_of(network: Network) -> Layers | str:
    """Return the network's layers, or a sentence naming the operator that slides over no map."""
    maps: dict[int, Map] = {}
    layers: list[Layer] = []
    for i in network.order:
        op = network.operators[i]
        found = _layer(network, op, maps)
        if isinstance(found, str):
            return f"{op.name} {found}"
        layers.append(found)
    return Layers(network, tuple(layers), maps)


def _layer(network: Network, op: Operator, maps: dict[int, Map]) -> Layer | str:
    g = op.geometry
    if g is None or (not g.promises and g.kind != "other"):
        return "states no geometry to plan with"
    if len(op.outputs) != 1 or not op.inputs:
        return "has not one output and an input"
    shapes = [_shape(g.input), _shape(g.output)]
    if g.layout != "NHWC" and any(len(s) == 4 and prod(s[2:]) > 1 for s in (g.input, g.output)):
        return "has its maps plane by plane, not pixel by pixel"
    made, read = shapes[1], shapes[0]
    if made is None or read is None:
        return "has not maps of one image"
    out = _map(network, op.outputs[0], made)
    if out is None:
        return "makes a map whose bytes are not its shape's"
    maps[op.outputs[0]] = out
    for t in op.inputs:
        if t not in maps:
            shape = made if g.kind == "elementwise" else read
            if g.kind == "other":
                shape = (1, 1, 0)  # one pixel of all its bytes: no more is known
            found = _map(network, t, shape if g.kind != "concat" else (*made[:2], 0))
            if found is None:
                return "reads a map whose bytes are not its shape's"
            maps[t] = found
    operands = [maps[t] for t in op.inputs]
    blind = not g.promises or _reshapes(g, read, made, operands, out)
    windows = _everything(operands, out) if blind else _windows(g, operands, out)
    if isinstance(windows, str):
        return windows
    rows, columns = windows
    chunk = (g.channels or made[2]) * max(1, out.pixel // max(1, made[2]))
    return Layer(
        operator=op.id,
        reads=op.inputs,
        makes=op.outputs[0],
        rows=rows,
        columns=columns,
        step=g.pixels,
        chunk=chunk,
        early=(out.pixel - 1) // chunk * chunk,
        workspace=op.workspace,
        macs=-(-op.work // (out.rows * out.columns)),
        adds_up=not blind and _adds_up(g, rows[0], columns[0], out),
        blind=blind,
    )


def _reshapes(
    g: Geometry, read: tuple[int, int, int], made: tuple[int, int, int], operands: list[Map], out: Map
) -> bool:
    """Return whether the layer sees an operand in another shape than it was made in.

    A product with a matrix that makes one pixel reads all of its map, whatever the shape.
    """
    first = operands[0]
    match g.kind:
        case "fully_connected":
            return False
        case "elementwise":
            element = max(1, out.pixel // max(1, made[2]))
            return any(
                m.rows not in (1, out.rows)
                or m.columns not in (1, out.columns)
                or ((m.rows, m.columns) != (out.rows, out.columns) and m.pixel not in (element, out.pixel))
                for m in operands
            )
        case "concat":
            return any((m.rows, m.columns) != (out.rows, out.columns) for m in operands)
    return (first.rows, first.columns) != read[:2]


def _everything(operands: list[Map], out: Map) -> tuple[tuple[Window, ...], tuple[Window, ...]]:
    """Return windows of a layer that is only known to read all its operands for every pixel."""
    return (
        tuple(Window(m.rows, out.rows, stride=0, span=m.rows) for m in operands),
        tuple(Window(m.columns, out.columns, stride=0, span=m.columns) for m in operands),
    )


def _shape(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """Return rows, columns, channels; a matrix of one row is one pixel."""
    match shape:
        case (1, rows, columns, channels):
            return rows, columns, channels
        case (rows, channels):
            return rows, 1, channels
    return None


def _map(network: Network, tensor: int, shape: tuple[int, int, int]) -> Map | None:
    rows, columns, _ = shape
    pixel, rest = divmod(network.tensors[tensor].bytes, rows * columns)
    return Map(rows, columns, pixel) if pixel and not rest else None


def _windows(g: Geometry, read: list[Map], out: Map) -> tuple[tuple[Window, ...], tuple[Window, ...]] | str:
    """Return the windows over every operand, along rows and along columns."""
    match g.kind:
        case "conv" | "depthwise" | "pool":
            if len(read) != 1 or len(g.kernel) != 2:
                return "is not a window over one map"
            return (
                (window_of(g, 0, read[0].rows, out.rows),),
                (window_of(g, 1, read[0].columns, out.columns),),
            )
        case "fully_connected":
            if (read[0].rows, read[0].columns) == (out.rows, out.columns):
                return (Window(out.rows, out.rows),), (Window(out.columns, out.columns),)
            if (out.rows, out.columns) == (1, 1):
                whole = read[0]
                return (
                    (Window(whole.rows, 1, span=whole.rows),),
                    (Window(whole.columns, 1, span=whole.columns),),
                )
            return "is a matrix product between maps that do not match"
        case "pad":
            return (Window(read[0].rows, out.rows, before=g.padding[0]),), (
                Window(read[0].columns, out.columns, before=g.padding[1]),
            )
        case "elementwise" | "concat" | "rowwise":
            if any(m.rows not in (1, out.rows) or m.columns not in (1, out.columns) for m in read):
                return "joins maps that do not match"
            return (
                tuple(Window(m.rows, out.rows, stride=int(m.rows == out.rows)) for m in read),
                tuple(Window(m.columns, out.columns, stride=int(m.columns == out.columns)) for m in read),
            )
    return f"is of kind {g.kind}, which no window describes"


def _adds_up(g: Geometry, rows: Window, columns: Window, out: Map) -> bool:
    whole = all(w.before == 0 and w.span == w.size for w in (rows, columns))
    return g.kind == "pool" and whole and (out.rows, out.columns) == (1, 1) and set(g.dilation) <= {1}
