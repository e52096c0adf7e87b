"""The chain of an operator's nodes: one that gathers (convolution, pool, ...), then element-wise ones.

Only such chains can be run on a part of their maps. Any other operator is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from onchip.base.errors import InputError
from onchip.network import Operator
from onchip.network.windows import Window, window_of
from onchip.readers.traits import ELEMENTWISE, VENDOR
from onchip.run.onnx_engine import OnnxEngine
from onchip.run.streamed.maps import Map, map_of

if TYPE_CHECKING:
    import onnx

__all__ = ["Chain", "Kind", "Parameter", "chain_of"]

Array = np.ndarray[Any, Any]

Kind = Literal["conv", "pool", "concat", "pad", "elementwise"]
"""The ways to run a chain on a part of its maps."""

_LAYOUT = frozenset({"Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
_POOLS = frozenset({"AveragePool", "LpPool", "MaxPool"})
_GLOBAL = frozenset({"GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"})
_OVER_A_MAP = frozenset({
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Parameter:
    """A constant that element-wise nodes read, or a bias; `axes`: the output axis that each axis follows."""

    name: str
    value: Array
    axes: str

    @property
    def by_channel(self) -> bool:
        """True if it has exactly one value a channel."""
        return "c" in self.axes and set(self.axes) <= {"c", "."}


@dataclass(frozen=True, eq=False)
class Chain:
    """One operator, ready to be run in parts.

    `reads` are the tensors that the head (or, without one, the element-wise nodes) takes, in its order, under
    the names `names`. `weight` is a convolution's, [out channels, channels, rows, columns].
    """

    op: Operator
    kind: Kind
    output: int
    reads: tuple[int, ...]
    names: tuple[str, ...]
    views: tuple[Map, ...]
    rows: tuple[Window, ...]
    columns: tuple[Window, ...]
    head: onnx.NodeProto | None
    result: str
    view: Map
    tail: tuple[onnx.NodeProto, ...]
    weight: Array | None
    bias: Parameter | None
    parameters: tuple[Parameter, ...]
    constants: Mapping[str, Array]
    groups: int = 1

    @property
    def pieces(self) -> tuple[tuple[int, int], ...]:
        """(tensor, first output channel) of a concat's operands."""
        at, found = 0, []
        for t, view in zip(self.reads, self.views, strict=True):
            found.append((t, at))
            at += view.channels
        return tuple(found)


def chain_of(engine: OnnxEngine, op: Operator, maps: Mapping[int, Map], *, images: bool) -> Chain:
    """Take an operator apart. Raises `InputError` naming it when it cannot be run in parts."""

    def refuse(why: str) -> InputError:
        return InputError(f"cannot be run in tiles: {why}", item=f"operator {op.name}")

    if len(op.outputs) != 1:
        raise refuse("it has several outputs")
    root = engine.network.root
    if any(root[t] != t for t in (*op.inputs, *op.outputs)):
        raise refuse("it reads or writes a view of another tensor")
    value = engine.executable.value
    given = {value[t]: t for t in op.inputs}
    found, names = engine.parts.between(given, [value[op.outputs[0]]], f"operator {op.name}")
    constants = {name: engine.parts.constants[name] for name in names}
    images = images and not maps[op.outputs[0]].flat  # a matrix of rows has no images inside either
    # A value may have another shape than the map that a geometry makes of it: [images, channels], say.
    seen: dict[str, tuple[int, Map]] = {
        name: (t, map_of(engine.values[name][1], images=images) or maps[t]) for name, t in given.items()
    }
    head: onnx.NodeProto | None = None
    tail: list[onnx.NodeProto] = []
    inside: set[str] = set()
    origin: dict[str, str] = {}
    """Of values that are operands but for conversions of each element: the operand."""
    for node in found:
        inputs = [name for name in node.input if name]
        if all(name in constants for name in inputs):
            constants.update(engine.parts.constant_outputs(node, constants, engine.values, op.name))
            continue
        data = [name for name in inputs if name not in constants]
        layout = node.op_type in _LAYOUT or _moves_nothing(node, engine.values, constants)
        if layout and data == inputs[:1] and data[0] in seen and head is None and not tail:
            shape = engine.values[node.output[0]][1]
            view = map_of(shape, images=images)
            if view is None:
                raise refuse(f"{node.op_type} makes {len(shape)} dimensions")
            seen[node.output[0]] = (seen[data[0]][0], view)
        elif layout and data == inputs[:1] and data[0] in inside:
            if prod(engine.values[node.output[0]][1]) != prod(engine.values[value[op.outputs[0]]][1]):
                first, view = origin.get(data[0]), map_of(engine.values[node.output[0]][1], images=images)
                if first is None or view is None:
                    raise refuse(f"{node.op_type} makes another shape of what is broadcast")
                seen[first] = (seen[first][0], view)  # a conversion of each element changes places with it
                origin[node.output[0]] = first
            tail.append(_renamed(node))
            inside.update(node.output[:1])
        elif _by_element(node):
            if any(name not in seen and name not in inside for name in data):
                raise refuse(f"{node.op_type} reads {data[0]}")
            tail.append(node)
            inside.update(node.output)
            if node.op_type in ("DequantizeLinear", "QuantizeLinear"):
                source = origin.get(data[0], data[0] if data[0] in seen else "")
                origin |= {node.output[0]: source} if source else {}
        elif head is None and not tail and all(name in seen for name in data):
            head = node
            inside.update(node.output[:1])
        else:
            raise refuse(
                f"{node.op_type} stands behind {(head or tail[0]).op_type}" if head or tail else node.op_type
            )
    [output] = op.outputs
    if head is None and not tail:
        raise refuse("it computes nothing")
    make = _Maker(engine, op, maps, seen, constants, head, tuple(tail), refuse, images)
    return make.chain(output)


_VENDORS_BY_ELEMENT = frozenset({
    "BiasGelu", "FastGelu", "Gelu", "QLinearAdd", "QLinearLeakyRelu", "QLinearMul", "QLinearSigmoid",
    "QuickGelu",
})  # fmt: skip


def _by_element(node: onnx.NodeProto) -> bool:
    """Return whether a node makes each element of those at its place."""
    if node.domain == VENDOR:
        return node.op_type in _VENDORS_BY_ELEMENT
    return node.domain == "" and (node.op_type in ELEMENTWISE or node.op_type in ("Dropout", "Identity"))


def _renamed(node: onnx.NodeProto) -> onnx.NodeProto:
    """Return an identity node in place of a node that gives a whole map another shape.

    The constants of later element-wise nodes have to fit the map without that shape; else `_follows` refuses.
    """
    from onnx import helper

    return helper.make_node("Identity", [node.input[0]], [node.output[0]])


def _moves_nothing(
    node: onnx.NodeProto, values: Mapping[str, tuple[Any, tuple[int, ...]]], constants: Mapping[str, Array]
) -> bool:
    """Return whether a transpose leaves all axes longer than one in order, a slice cuts nothing off, or a
    cast is to the type of its operand: the reader treats the result as the operand under another shape."""
    shape = values[node.input[0]][1] if node.input and node.input[0] in values else ()
    if node.op_type == "Transpose":
        stated = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
        perm = [*reversed(range(len(shape)))] if stated is None else stated
        longer = [axis for axis in perm if shape[axis] > 1]
        return longer == sorted(longer)
    if node.op_type == "Slice":
        steps = constants.get(node.input[4]) if len(node.input) > 4 and node.input[4] else None
        return values[node.output[0]][1] == shape and (steps is None or bool((steps > 0).all()))
    if node.op_type == "Cast" and node.input[0] in values:
        return bool(values[node.input[0]][0] == values[node.output[0]][0])
    return False


class _Maker:
    def __init__(
        self,
        engine: OnnxEngine,
        op: Operator,
        maps: Mapping[int, Map],
        seen: Mapping[str, tuple[int, Map]],
        constants: Mapping[str, Array],
        head: onnx.NodeProto | None,
        tail: tuple[onnx.NodeProto, ...],
        refuse: Any,
        images: bool,
    ) -> None:
        self.engine, self.op, self.maps, self.seen = engine, op, maps, seen
        self.constants, self.head, self.tail, self.refuse = constants, head, tail, refuse
        self.images = images

    def view_of(self, value: str) -> Map:
        shape = self.engine.values[value][1]
        view = map_of(shape, images=self.images)
        if view is None:
            raise self.refuse(f"{value} has {len(shape)} dimensions")
        return view

    def chain(self, output: int) -> Chain:
        head, out = self.head, self.maps[output]
        if head is None:
            names = list(dict.fromkeys(n for node in self.tail for n in node.input if n in self.seen))
            result, kind, weight, bias, groups = "", "elementwise", None, None, 1
            view = self.view_of(self.engine.executable.value[output])
        else:
            names = [n for n in head.input if n in self.seen]
            result = head.output[0]
            view = self.view_of(result)
            kind, weight, bias, groups = self.gathering(head, names)
        if not view.same_as(out):
            raise self.refuse("its result has another shape")
        reads = tuple(self.seen[n][0] for n in names)
        views = tuple(self.seen[n][1] for n in names)
        rows, columns = self.windows(str(kind), reads, out)
        for t, seen in zip(reads, views, strict=True):
            if not seen.same_as(self.maps[t]):
                raise self.refuse("it reads an operand in another shape")
        return Chain(
            op=self.op,
            kind=kind,  # type: ignore[arg-type]
            output=output,
            reads=reads,
            names=tuple(names),
            views=views,
            rows=rows,
            columns=columns,
            head=head,
            result=result,
            view=view,
            tail=self.tail,
            weight=weight,
            bias=bias,
            parameters=self.parameters(view),
            constants=self.constants,
            groups=groups,
        )

    def gathering(
        self, head: onnx.NodeProto, names: list[str]
    ) -> tuple[Kind, Array | None, Parameter | None, int]:
        kind, attributes = head.op_type, {a.name: a for a in head.attribute}
        first = self.seen[names[0]][1]
        if kind == "Conv" and first.rank == 4 and not first.flat and names == [head.input[0]]:
            weight = self.constants[head.input[1]]
            bias = self.bias(head)
            return "conv", weight, bias, attributes["group"].i if "group" in attributes else 1
        if kind in _POOLS | _GLOBAL and first.rank == 4:
            if len([n for n in head.output if n]) > 1:
                raise self.refuse("a pool that gives indices")
            return "pool", None, None, 1
        if kind in _OVER_A_MAP and names == [head.input[0]] and first.rank == 4:
            axes = attributes["axes"].ints if "axes" in attributes else self._numbers(head, 1)
            if sorted(first.axes[int(axis) % 4] for axis in axes) == ["h", "w"]:
                return "pool", None, None, 1
        if kind == "Concat" and len(names) == len(head.input):
            axis = attributes["axis"].i % first.rank
            if first.axes[axis] == "c":
                return "concat", None, None, 1
        if kind == "Pad" and names == [head.input[0]] and first.rank == 4:
            mode = attributes["mode"].s if "mode" in attributes else b"constant"
            if mode == b"constant" and self._pads(head) is not None:
                return "pad", None, None, 1
        raise self.refuse(f"{kind} with these operands")

    def _pads(self, head: onnx.NodeProto) -> tuple[int, int, int, int] | None:
        """Return (top, left, bottom, right) of a pad; None when it pads images or channels."""
        stated = next((list(a.ints) for a in head.attribute if a.name == "pads"), None)
        amounts = stated or self._numbers(head, 1)
        axes = self._numbers(head, 3) if len(head.input) > 3 and head.input[3] else range(4)
        found = {axis % 4: pair for axis, *pair in zip(axes, amounts, amounts[len(axes) :], strict=False)}
        sides = [found.get(axis, [0, 0]) for axis in range(4)]
        if any(sides[0]) or any(sides[1]):
            return None
        return sides[2][0], sides[3][0], sides[2][1], sides[3][1]

    def _numbers(self, head: onnx.NodeProto, position: int) -> list[int]:
        if len(head.input) <= position or head.input[position] not in self.constants:
            return []
        return [int(x) for x in self.constants[head.input[position]].reshape(-1)]

    def bias(self, head: onnx.NodeProto) -> Parameter | None:
        if len(head.input) < 3 or not head.input[2]:
            return None
        value = self.constants[head.input[2]]
        if value.size > 1 and value.size != value.shape[-1]:
            raise self.refuse("its bias is no vector")
        return Parameter(
            head.input[2], value, "." * (value.ndim - 1) + "c" if value.size > 1 else "." * value.ndim
        )

    def parameters(self, view: Map) -> tuple[Parameter, ...]:
        """Return the operands of the tail's nodes besides maps."""
        found: dict[str, Parameter] = {}
        for node in self.tail:
            for position, name in enumerate(node.input):
                if not name or name not in self.constants:
                    continue
                value = self.constants[name]
                if node.op_type == "BatchNormalization" and position:
                    axes = "c"
                else:
                    axes = self._follows(value, view)
                if found.setdefault(name, Parameter(name, value, axes)).axes != axes:
                    raise self.refuse(f"{name} is read in two ways")
        return tuple(found.values())

    def _follows(self, value: Array, view: Map) -> str:
        if value.ndim > view.rank:
            raise self.refuse("a constant has more dimensions than the map")
        extents = {"n": view.images, "c": view.channels, "h": view.rows, "w": view.columns}
        axes = view.axes[view.rank - value.ndim :]
        follows = ""
        for axis, size in zip(axes, value.shape, strict=True):
            if size not in (1, extents[axis]):
                raise self.refuse("a constant does not follow its map")
            follows += axis if size > 1 else "."
        return follows

    def windows(
        self, kind: str, reads: tuple[int, ...], out: Map
    ) -> tuple[tuple[Window, ...], tuple[Window, ...]]:
        """Return the rows and columns of each operand that a part of the output needs."""
        head, geometry = self.head, self.op.geometry
        rows, columns = [], []
        for t in reads:
            source = self.maps[t]
            if kind in ("conv", "pool") and head is not None and head.op_type not in _GLOBAL | _OVER_A_MAP:
                if geometry is None or len(geometry.kernel) != 2:
                    raise self.refuse("the plan's network does not say how it walks")
                rows.append(window_of(geometry, 0, source.rows, out.rows))
                columns.append(window_of(geometry, 1, source.columns, out.columns))
            elif kind == "pool":
                rows.append(Window(source.rows, out.rows, stride=0, span=source.rows))
                columns.append(Window(source.columns, out.columns, stride=0, span=source.columns))
            elif kind == "pad":
                assert head is not None
                pads = self._pads(head)
                assert pads is not None
                rows.append(Window(source.rows, out.rows, before=pads[0]))
                columns.append(Window(source.columns, out.columns, before=pads[1]))
            else:
                for size, whole, found in (
                    (source.rows, out.rows, rows),
                    (source.columns, out.columns, columns),
                ):
                    if size != whole and size != 1:
                        raise self.refuse("an operand is neither as large as the output nor broadcast")
                    found.append(Window(size, whole, stride=int(size == whole)))
        return tuple(rows), tuple(columns)
