"""From nodes to operators: one for each node that computes; for `fused`, element-wise ones merged."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from functools import cache, cached_property
from typing import Literal

from onchip.base.allowance import spend
from onchip.network import GATHERED, Geometry
from onchip.readers.behind import behind_products
from onchip.readers.computed import Computed
from onchip.readers.constants import Constants
from onchip.readers.drafts import Draft, Merging
from onchip.readers.elements import BITS, value_bytes
from onchip.readers.geometry import geometry_of, geometry_of_copy
from onchip.readers.lookup import looked_up
from onchip.readers.onnx_graph import Graph, Node, is_vendors
from onchip.readers.places import Place, Places
from onchip.readers.plain import plain_of
from onchip.readers.quantised import CONVERSIONS, fetched_with, joins_alike, steps_of
from onchip.readers.rows import functions_of_rows
from onchip.readers.spread import spread
from onchip.readers.traits import VENDOR, is_elementwise, is_setting

__all__ = ["Draft", "Drafts"]

Dtype = Literal["file", "int8", "int16"]

_RESHAPES = frozenset({"Cast", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
MOST_BETWEEN = 2_000_000
"""The most nodes that operators run besides their own, to read values through them, over all operators."""

_AS_STORED = _RESHAPES - {"Dropout"} | {"DequantizeLinear", "Transpose"}
"""Operators that a weight passes through between memory and the operator that reads it."""


class Drafts:
    """The operators of a graph whose values have been placed."""

    def __init__(self, graph: Graph, constants: Constants, places: Places, dtype: Dtype) -> None:
        self.graph, self.constants, self.places, self.dtype = graph, constants, places, dtype
        self.between = 0
        self.computed = Computed(graph, constants, self._stored)
        self.closed: set[int] = set()
        """Quantising nodes that are a part of the operator before them from the outset."""
        self.all = [draft for node in graph.nodes for draft in self._drafts(node)]

    @cached_property
    def readers(self) -> dict[str, list[Node]]:
        """The nodes that read each value."""
        found: dict[str, list[Node]] = {}
        for node in self.graph.nodes:
            for name in dict.fromkeys(node.inputs):
                found.setdefault(name, []).append(node)
        return found

    # -- operators, one for each node that computes ----------------------------------------------------------

    def boundary(self, name: str) -> tuple[str, list[int]]:
        """Return the tensor (a root or a view) that a value is read from, and the layout nodes between, last
        first."""
        name, chain = self._origin(name)
        self.between += len(chain)
        if self.between > MOST_BETWEEN:
            reason = f"its operators read through more than {MOST_BETWEEN:,} reshapes and the like"
            raise self.graph.refuse(reason, f"tensor {name}")
        return name, chain

    def _origin(self, name: str) -> tuple[str, list[int]]:
        chain: list[int] = []
        place = self.places.of[name]
        while name != place.root:
            node = self.graph.producer[name]
            before = self.places.of[node.inputs[0]]
            if self._is_part(place) and not (self._is_part(before) and _same(place, before)):
                return name, chain
            chain.append(node.index)
            name, place = node.inputs[0], before
        return name, chain

    def settle(self) -> None:
        """Let an operator read the whole tensor if it runs the node that cuts the view out of it anyway.

        This happens if it reads two outputs of one split, one of them a view and the other strided. A concat
        that dequantises, and whose result nothing quantises, joins no channels as they lie.
        """
        for draft in self.all:
            self._see_as_made(draft)
            self._repeat_as_read(draft)
            if draft.geometry is not None and draft.geometry.kind == "concat" and len(draft.types) > 1:
                widths = {BITS[self.graph.element[name]] for name in (*draft.inputs, *draft.outputs)}
                if len(widths) > 1 and "DequantizeLinear" in draft.types:
                    draft.geometry = replace(draft.geometry, kind=GATHERED + "concat")
            for name in list(draft.inputs):
                cut = self.graph.producer.get(name)
                if cut is None or cut.index not in draft.nodes:
                    continue
                del draft.inputs[name]
                if self.places.of[name].root == name:
                    continue  # an output that is copied for the network: here it is made on the way
                while name != self.places.of[name].root:
                    draft.nodes.add(self.graph.producer[name].index)
                    name = self.graph.producer[name].inputs[0]
                draft.inputs[name] = None

    def _see_as_made(self, draft: Draft) -> None:
        """Let no geometry say that a tensor is a map of another shape than the tensor has.

        A function behind a reshape makes it in the shape after that. One that only splits the channels has
        the same rows. A copy's shape, that of a shuffle between two reshapes, is its own: its geometry
        follows from where each element goes.
        """
        geometry = draft.geometry
        if geometry is None or len(draft.outputs) != 1 or len(geometry.output) != 4:
            return
        made = self.graph.shape[draft.outputs[0]]
        if math.prod(made) != math.prod(geometry.output) or _sides(made) == _sides(geometry.output):
            return
        if _splits_channels(made, geometry.output) or draft.nodes <= self.places.layout_nodes:
            return
        draft.geometry = None if geometry.promises else replace(geometry, output=made)

    def _repeat_as_read(self, draft: Draft) -> None:
        """Let no function of elements promise how it repeats an operand that it sees in another shape.

        The map of a matrix has its columns as channels: behind a reshape to one pixel for each channel it is
        read so, too. Any other reshape, and dimensions in front that the operand lacks, may put the same
        numbers along other axes than those of the operand's map.
        """
        geometry = draft.geometry
        if geometry is None or geometry.kind != "elementwise":
            return
        whole, rank = math.prod(geometry.output), len(geometry.output)
        for own, seen in self.operands_seen(draft):
            if math.prod(own) in (1, whole) or (len(own) == 2 and seen == (*own, 1, 1)):
                continue
            same = (1,) * (rank - len(own)) + own == (1,) * (rank - len(seen)) + seen
            if not same or (rank == 4 and len(own) < 4):
                draft.geometry = replace(geometry, kind=GATHERED + geometry.kind)
                return

    def operands_seen(self, draft: Draft) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return for every operand of an operator the tensor's own shape, and the one in which a node reads
        it."""
        shape, of = self.graph.shape, self.places.of
        nodes = [self.graph.nodes[i] for i in sorted(draft.nodes) if i not in self.places.layout_nodes]
        made = {name for node in nodes for name in node.outputs}
        read = [name for node in nodes for name in dict.fromkeys(node.inputs) if name in of]
        origins = [(self._origin(name)[0], name) for name in read if name not in made]
        return [(shape[origin], shape[name]) for origin, name in origins if origin in draft.inputs]

    def _is_part(self, place: Place) -> bool:
        """Return whether the value is a proper part of its root's bytes, side by side."""
        return (
            place.bytes_as_they_lie
            and place.layout.size < math.prod(self.graph.shape[place.root])
            and self.byte_offset(place) is not None
        )

    def byte_offset(self, place: Place) -> int | None:
        """Return the start of a view in its root, in bytes; None inside a byte."""
        element = self.graph.element[place.root]
        offset = value_bytes(element, (place.layout.offset,), self.dtype)
        exact = value_bytes(element, (place.layout.offset * 8,), self.dtype) == offset * 8
        return offset if exact else None

    def _drafts(self, node: Node) -> list[Draft]:
        spend(node.label)
        if all(name in self.constants for name in node.outputs if name):
            return []
        if node.index in self.places.layout_nodes:
            return [self._copy(node, name) for name in node.outputs if name in self.places.copies]
        return [] if node.index in self.closed else [self._compute(node)]

    def _copy(self, node: Node, name: str) -> Draft:
        """Return the operator that puts a permuted or strided value in order, or converts one in order.

        The latter stays an operator of its own: it makes an output of the network.
        """
        origin, chain = self.boundary(node.inputs[0])
        path = [*reversed(chain), node.index]
        moved = self.places.copies[name]
        merged = _RESHAPES if moved.converted else _RESHAPES | CONVERSIONS
        types = [op for i in path if (op := self.graph.nodes[i].op) not in merged]
        draft = Draft(node.proto.name or name, deque(types or [node.op]), set(path), {origin: None}, [name])
        if self.places.of[origin].root == origin and moved.root == origin:
            if not moved.converted:
                draft.geometry = geometry_of_copy(self.graph.shape[origin], moved.layout)
            elif moved.layout.contiguous and moved.layout.size == self._elements(origin):
                shape = self.graph.shape[origin]
                draft.geometry = Geometry("elementwise", input=shape, output=shape)
        return draft

    def _compute(self, node: Node) -> Draft:
        graph, plain = self.graph, plain_of(node)
        optional = frozenset(range(1, len(node.outputs)))
        if not is_vendors(node, graph.opsets):
            optional = _optional_outputs(node.op, graph.opsets[node.domain], node.domain)
        outputs = [
            name
            for i, name in enumerate(node.outputs)
            if name in graph.read or (name in graph.shape and i not in optional)
        ]
        draft = Draft(node.proto.name or outputs[0], deque([node.op]), {node.index}, {}, outputs)
        activations = []
        whole = True
        stored: dict[str, int] = {}
        seen: set[str] = set()
        for position, name in enumerate(node.inputs):
            if not name:
                continue
            if name in self.constants:
                if node.domain == VENDOR or not is_setting(node.op, position):
                    draft.weights.update(self._parameters(node, name, looked_up(graph, self.constants, node)))
                continue
            activations.append(name)
            if name in seen:
                continue
            seen.add(name)
            spend(node.label)
            origin, chain = self.boundary(name)
            draft.inputs[origin] = None
            draft.nodes.update(chain)
            place = self.places.of[name]
            stored[name] = graph.element.get(place.root, 0)
            whole &= place.layout.contiguous and self.places.of[origin].root == origin
            whole &= not place.converted or place.layout.size == self._elements(place.root)
            if place.converted and len(draft.types) == 1:
                draft.types.appendleft("DequantizeLinear")
        result = math.prod(graph.shape[outputs[0]])
        draft.elementwise = (
            is_elementwise(plain.op, plain.domain)
            and len(outputs) == 1
            and not node.integer("training_mode", 0)
            and max((math.prod(graph.shape[a]) for a in activations), default=0) == result
        )
        if node.op == "Concat" and len(draft.types) > 1:
            self._close(node, draft)
        if node.op == "QLinearConcat" and not joins_alike(graph, node, self.constants):
            draft.types.append("QuantizeLinear")
        draft.geometry = geometry_of(graph, plain, activations, stored, self.constants, whole=whole)
        return draft

    def _close(self, node: Node, draft: Draft) -> None:
        """Let a concat that dequantises, and the node that quantises its result, only join, if they do.

        They do where all of them have the same steps.
        """
        graph, of = self.graph, self.places.of
        steps = {of[name].steps if name in of else None for name in node.inputs}
        readers = self.readers.get(node.outputs[0], [])
        if len(steps) > 1 or len(readers) != 1 or node.outputs[0] in graph.outputs:
            return
        [after] = readers
        if None in steps or after.op != "QuantizeLinear" or after.inputs[0] != node.outputs[0]:
            return
        if steps_of(graph, after, self.constants) not in steps:
            return
        self.closed.add(after.index)
        draft.types, draft.outputs = deque([node.op]), [after.outputs[0]]
        draft.nodes.add(after.index)

    def _stored(self, name: str, count: int) -> int:
        """Return the bytes of some elements of a value."""
        return value_bytes(self.graph.element[name], (count,), self.dtype)

    def _parameters(self, node: Node, name: str, rows: int | None = None) -> dict[str, int]:
        """Return the bytes fetched for a constant operand, by their origin.

        `rows` are the elements of a table that are looked up in it: no more than these are fetched. A single
        element that an element-wise operator reads is an immediate, not a parameter. A weight that
        is dequantised, cast or reordered on the way is fetched as it is stored.
        """
        graph = self.graph
        found: dict[str, int] = {}
        table = math.prod(graph.shape.get(name, ()))
        pending = [(node, name)]
        while pending:
            reader, name = pending.pop()
            plain = plain_of(reader)
            shape = graph.shape.get(name)
            if shape is None:
                raise graph.refuse(f"the shape of its operand {name} is not known", reader.label)
            if (
                math.prod(shape) == 0
                or not shape
                or (math.prod(shape) == 1 and is_elementwise(plain.op, plain.domain))
            ):
                continue
            maker = graph.producer.get(name)
            maker = None if maker is None else plain_of(maker)
            if maker is not None and maker.domain == "" and maker.op in _AS_STORED:
                stored = list(maker.inputs[:1])
                if maker.op == "DequantizeLinear":
                    stored = fetched_with(graph, self.constants, reader, maker)
                pending += [(maker, i) for i in stored if i]
            elif graph.element.get(name, 0) not in BITS:
                raise graph.refuse(f"the element type of its operand {name} is not known", reader.label)
            else:
                if rows is not None and math.prod(shape) == table:
                    found[name] = self._stored(name, min(rows, table))
                elif math.prod(shape) == 1:
                    found[name] = self._stored(name, 1)
                else:
                    found |= self.computed.parts(name)
        return found

    # -- fused --------------------------------------------------------------------------------------------

    def fuse(self) -> None:
        """Merge element-wise operators, until nothing changes.

        An operator merges into the producer of its one activation input if it is the only reader, the
        producer has no other output and the tensor is no network output. It merges into its one reader if
        that is element-wise too and reads all that it reads: so `x * sigmoid(x)`, and the pieces of a
        written-out GELU, first become one function of one tensor. What only repeats or scales another
        value is then made by each of its readers (`onchip.readers.spread`).
        """
        keep = {self.places.of[name].root for name in self.graph.outputs if name in self.places.of}
        self.all = Merging(self.all, self._root, self._elements, self._bytes, keep).run()
        self.all = functions_of_rows(self.all, self.graph, self.constants, self.places, self._elements, keep)
        self.all = spread(self.all, self.graph, self.constants, self.places, self._bytes, keep)
        self.all = behind_products(self.all, self.places, self._elements, keep)

    def _bytes(self, name: str) -> int:
        return value_bytes(self.graph.element[name], self.graph.shape[name], self.dtype)

    def _root(self, name: str) -> str:
        return self.places.of[name].root

    def _elements(self, name: str) -> int:
        return math.prod(self.graph.shape[name])


def _sides(shape: tuple[int, ...]) -> list[int]:
    return [n for n in shape if n > 1]


def _splits_channels(made: tuple[int, ...], map_: tuple[int, ...]) -> bool:
    """Return whether a shape of as many elements has a map's images, rows and columns, its channels split."""
    return len(made) > 4 and made[0] == map_[0] and made[-2:] == map_[-2:]


def _same(one: Place, other: Place) -> bool:
    """Return whether two parts of a root are the same bytes."""
    return one.layout.offset == other.layout.offset and one.layout.size == other.layout.size


@cache
def _optional_outputs(op: str, version: int, domain: str) -> frozenset[int]:
    """Return the positions of the outputs that an operator may omit."""
    import onnx

    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    outputs = onnx.defs.get_schema(op, version, domain).outputs
    return frozenset(i for i, output in enumerate(outputs) if output.option == optional)
