"""From nodes to operators: one for each node that computes; for `fused`, element-wise ones merged."""

from __future__ import annotations

import math
from collections import deque
from functools import cache
from typing import Literal

from onchip.base.allowance import spend
from onchip.readers.constants import Constants
from onchip.readers.drafts import Draft, Merging
from onchip.readers.elements import BITS, value_bytes
from onchip.readers.geometry import geometry_of, geometry_of_copy
from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.places import Place, Places
from onchip.readers.traits import is_elementwise, is_setting

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
        self.all = [draft for node in graph.nodes for draft in self._drafts(node)]

    # -- operators, one for each node that computes ----------------------------------------------------------

    def boundary(self, name: str) -> tuple[str, list[int]]:
        """Return the tensor (a root or a view) that a value is read from, and the layout nodes between, last
        first."""
        chain: list[int] = []
        place = self.places.of[name]
        while name != place.root:
            node = self.graph.producer[name]
            before = self.places.of[node.inputs[0]]
            if self._is_part(place) and not (self._is_part(before) and _same(place, before)):
                return name, chain
            chain.append(node.index)
            name, place = node.inputs[0], before
        self.between += len(chain)
        if self.between > MOST_BETWEEN:
            reason = f"its operators read through more than {MOST_BETWEEN:,} reshapes and the like"
            raise self.graph.refuse(reason, f"tensor {name}")
        return name, chain

    def settle(self) -> None:
        """Let an operator read the whole tensor if it runs the node that cuts the view out of it anyway.

        This happens if it reads two outputs of one split, one of them a view and the other strided.
        """
        for draft in self.all:
            for name in list(draft.inputs):
                cut = self.graph.producer.get(name)
                if cut is None or cut.index not in draft.nodes:
                    continue
                del draft.inputs[name]
                while name != self.places.of[name].root:
                    draft.nodes.add(self.graph.producer[name].index)
                    name = self.graph.producer[name].inputs[0]
                draft.inputs[name] = None

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
        return [self._compute(node)]

    def _copy(self, node: Node, name: str) -> Draft:
        """Return the operator that puts a permuted or strided value in order."""
        origin, chain = self.boundary(node.inputs[0])
        path = [*reversed(chain), node.index]
        types = [op for i in path if (op := self.graph.nodes[i].op) not in _RESHAPES]
        draft = Draft(node.proto.name or name, deque(types or [node.op]), set(path), {origin: None}, [name])
        draft.elementwise = node.op == "DequantizeLinear" and self.places.of[node.inputs[0]].layout.contiguous
        moved = self.places.copies[name]
        if self.places.of[origin].root == origin and moved.root == origin and not moved.converted:
            draft.geometry = geometry_of_copy(self.graph.shape[origin], moved.layout)
        return draft

    def _compute(self, node: Node) -> Draft:
        graph = self.graph
        optional = _optional_outputs(node.op, graph.opsets[node.domain], node.domain)
        outputs = [
            name
            for i, name in enumerate(node.outputs)
            if name in graph.read or (name in graph.shape and i not in optional)
        ]
        draft = Draft(node.proto.name or outputs[0], deque([node.op]), {node.index}, {}, outputs)
        activations = []
        whole = True
        seen: set[str] = set()
        for position, name in enumerate(node.inputs):
            if not name:
                continue
            if name in self.constants:
                if not is_setting(node.op, position):
                    draft.weights.update(self._parameters(node, name))
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
            whole &= place.bytes_as_they_lie and self.places.of[origin].root == origin
            if any(graph.nodes[i].op == "DequantizeLinear" for i in chain) and len(draft.types) == 1:
                draft.types.appendleft("DequantizeLinear")
        result = math.prod(graph.shape[outputs[0]])
        draft.elementwise = (
            is_elementwise(node.op, node.domain)
            and len(outputs) == 1
            and not node.integer("training_mode", 0)
            and max((math.prod(graph.shape[a]) for a in activations), default=0) == result
        )
        draft.geometry = geometry_of(graph, node, activations, self.constants, whole=whole)
        return draft

    def _parameters(self, node: Node, name: str) -> dict[str, int]:
        """Return the bytes fetched for a constant operand, by their origin.

        A single element that an element-wise operator reads is an immediate, not a parameter. A weight that
        is dequantised, cast or reordered on the way is fetched as it is stored.
        """
        graph = self.graph
        found: dict[str, int] = {}
        pending = [(node, name)]
        while pending:
            reader, name = pending.pop()
            shape = graph.shape.get(name)
            if shape is None:
                raise graph.refuse(f"the shape of its operand {name} is not known", reader.label)
            if (
                math.prod(shape) == 0
                or not shape
                or (math.prod(shape) == 1 and is_elementwise(reader.op, reader.domain))
            ):
                continue
            maker = graph.producer.get(name)
            if maker is not None and maker.domain == "" and maker.op in _AS_STORED:
                stored = maker.inputs if maker.op == "DequantizeLinear" else maker.inputs[:1]
                pending += [(maker, i) for i in stored if i]
            elif graph.element.get(name, 0) not in BITS:
                raise graph.refuse(f"the element type of its operand {name} is not known", reader.label)
            else:
                found[name] = value_bytes(graph.element[name], shape, self.dtype)
        return found

    # -- fused --------------------------------------------------------------------------------------------

    def fuse(self) -> None:
        """Merge element-wise operators, until nothing changes.

        An operator merges into the producer of its one activation input if it is the only reader, the
        producer has no other output and the tensor is no network output. It merges into its one reader if
        that is element-wise too and reads all that it reads: so `x * sigmoid(x)`, and the pieces of a
        written-out GELU, first become one function of one tensor.
        """
        keep = {self.places.of[name].root for name in self.graph.outputs if name in self.places.of}
        self.all = Merging(self.all, self._root, self._elements, keep).run()

    def _root(self, name: str) -> str:
        return self.places.of[name].root

    def _elements(self, name: str) -> int:
        return math.prod(self.graph.shape[name])


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
