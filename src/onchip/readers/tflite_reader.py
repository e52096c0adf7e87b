"""TensorFlow Lite to `Network`: tensors with their exact sizes, one operator for each node that computes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from onchip.base.errors import UsageError
from onchip.network import Geometry, Network, OperatorSpec, TensorKind
from onchip.readers.elements import NAMES, value_bytes
from onchip.readers.shapes import UnknownDimension, parse_dims
from onchip.readers.source import ReadOptions, Source, TfliteExecutable
from onchip.readers.tflite_geometry import geometry_of
from onchip.readers.tflite_graph import Node, TfliteGraph, parse
from onchip.readers.tflite_places import find_places
from onchip.readers.tflite_traits import ELEMENTWISE, is_setting

__all__ = ["read_tflite"]

Dtype = Literal["file", "int8", "int16"]


def read_tflite(
    content: bytes, options: ReadOptions, *, name: str, where: str, dtype: Dtype = "file"
) -> Source:
    """Return the network in the bytes of a `.tflite` file, and its original nodes.

    TFLite's operators are already fused, so both granularities give the same network. Shapes are those that
    the file states; `dims` may confirm them. Raises `ModelError` in one line naming the node or tensor.
    """
    graph = parse(content, where=where)
    _confirm(graph, options.dims)
    reader = _Reader(graph, dtype)
    return reader.source(name, options, hashlib.sha256(content).hexdigest())


def _confirm(graph: TfliteGraph, dims: str) -> None:
    """Refuse values other than the file's: it holds one shape for every tensor."""
    stated = {
        f"{graph.tensors[t].name}.{axis}": size
        for t in graph.inputs
        if 0 <= t < len(graph.tensors)
        for axis, size in enumerate(graph.tensors[t].shape)
    }
    for key, value in parse_dims(dims).items():
        if key not in stated:
            raise UnknownDimension(key, f"{key} is no dimension of an input; there are {', '.join(stated)}")
        if stated[key] > 0 and stated[key] != value:
            raise UsageError(
                f"{key} is {stated[key]} in the file, and every shape in it follows from that", item="dims"
            )


@dataclass
class _Draft:
    """An operator under construction; operands are tensor indices."""

    node: Node
    nodes: set[int]
    inputs: dict[int, None] = field(default_factory=dict)
    outputs: tuple[int, ...] = ()
    weights: dict[int, int] = field(default_factory=dict)
    geometry: Geometry | None = None


class _Reader:
    def __init__(self, graph: TfliteGraph, dtype: Dtype) -> None:
        self.graph, self.dtype = graph, dtype
        self.producer: dict[int, Node] = {}
        self.constants = {row.index for row in graph.tensors if row.data is not None}
        self.inputs = [t for t in dict.fromkeys(graph.inputs) if t not in self.constants]
        made = {t for node in graph.nodes for t in node.outputs} | set(self.inputs)
        # An operand without elements has no data either.
        self.constants |= {row.index for row in graph.tensors if 0 in row.shape and row.index not in made}
        self._order()
        live = self._live()
        self.computing = [
            node for node in live if any(t >= 0 and t not in self.constants for t in node.outputs)
        ]
        for node in self.computing:
            for t in (*node.inputs, *node.outputs):
                self._check_type(t, node)
        for t in self.inputs:
            self._check_state(t)
        self.places = find_places(graph, self.computing, self.inputs, dtype)

    # -- dependencies ---------------------------------------------------------------------------------------

    def _order(self) -> None:
        """Find producers and constants; refuse operands that are missing, too late, or written twice."""
        graph, rows = self.graph, self.graph.tensors
        known = {*self.constants, *self.inputs}
        for what, operands in (("inputs", graph.inputs), ("outputs", graph.outputs)):
            for t in operands:
                if not 0 <= t < len(rows):
                    raise graph.refuse(f"name tensor {t} of {len(rows)}", what)
        for node in graph.nodes:
            for t in (*node.inputs, *node.outputs):
                if not -1 <= t < len(rows):
                    raise graph.refuse(f"names tensor {t} of {len(rows)}", node.label)
            for t in node.inputs:
                if t >= 0 and t not in known:
                    self._check_state(t)
                    raise graph.refuse(f"reads {rows[t].name}, which nothing before it computes", node.label)
            for t in node.outputs:
                if t >= 0 and t in known:
                    raise graph.refuse(f"writes {rows[t].name}, which has a value already", node.label)
                if t >= 0:
                    known.add(t)
                    self.producer[t] = node
            draws = "RANDOM" in node.type or node.type == "MULTINOMIAL" or node.type.startswith("CUSTOM")
            if not draws and all(t in self.constants for t in node.inputs if t >= 0):
                self.constants.update(t for t in node.outputs if t >= 0)
        for t in graph.outputs:
            if t not in known:
                raise graph.refuse(f"is output {rows[t].name}, which nothing computes", f"tensor {t}")

    def _live(self) -> list[Node]:
        """Return the nodes that an output depends on."""
        wanted, found = list(self.graph.outputs), set[int]()
        while wanted:
            node = self.producer.get(wanted.pop())
            if node is not None and node.index not in found:
                found.add(node.index)
                wanted += [t for t in node.inputs if t >= 0]
        return [node for node in self.graph.nodes if node.index in found]

    def _check_state(self, t: int) -> None:
        if self.graph.tensors[t].variable:
            raise self.graph.refuse(
                "is a variable: state kept between inferences, which cannot be planned yet",
                f"tensor {self.graph.tensors[t].name}",
            )

    def _check_type(self, t: int, node: Node) -> None:
        if t < 0 or t in self.constants:
            return
        self._check_state(t)
        row = self.graph.tensors[t]
        if row.element in (0, 8):
            raise self.graph.refuse(
                f"{row.name} is of type {row.stated}, which cannot be planned", node.label
            )
        if 0 in row.shape:
            raise self.graph.refuse(f"{row.name} has zero bytes: its shape is {list(row.shape)}", node.label)
        if min(row.shape, default=1) < 1:
            raise self.graph.refuse(f"the shape of {row.name} is not known: {list(row.shape)}", node.label)

    # -- operators -----------------------------------------------------------------------------------------

    def size(self, t: int) -> int:
        """Return the bytes of a tensor, as planned."""
        row = self.graph.tensors[t]
        if row.element in (0, 8):  # a view's root need not be an operand of any node
            raise self.graph.refuse(f"is of type {row.stated}, which cannot be planned", f"tensor {row.name}")
        return value_bytes(row.element, row.shape, self.dtype)

    def boundary(self, t: int) -> tuple[int, list[int]]:
        """Return the tensor that a value is read from (a root or a view), and the nodes in between."""
        chain: list[int] = []
        place = self.places[t]
        while t != place.root:
            before = self.places[place.source]
            if self._is_part(t) and not (place.offset == before.offset and self._as_many(t, place.source)):
                return t, chain
            assert place.via is not None
            chain.append(place.via.index)
            t, place = place.source, before
        return t, chain

    def _is_part(self, t: int) -> bool:
        return not self._as_many(t, self.places[t].root)

    def _as_many(self, one: int, other: int) -> bool:
        return self.graph.tensors[one].elements == self.graph.tensors[other].elements

    def draft(self, node: Node) -> _Draft:
        """Return the operator of a node that computes."""
        outputs = tuple(t for t in node.outputs if t >= 0)
        draft = _Draft(node, {node.index}, outputs=outputs)
        activations, whole = [], True
        for position, t in enumerate(node.inputs):
            if t in self.constants:
                if not is_setting(node.type, position):
                    draft.weights |= self._parameters(node, t)
                draft.nodes |= self._makers(t)
            elif t >= 0:
                origin, chain = self.boundary(t)
                draft.inputs[origin] = None
                draft.nodes.update(chain)
                for index in chain:
                    for operand in self.graph.nodes[index].inputs:
                        draft.nodes |= self._makers(operand)
                activations.append(t)
                whole &= self.places[origin].root == origin
        draft.geometry = geometry_of(self.graph, node, activations, whole=whole)
        return draft

    def _makers(self, t: int) -> set[int]:
        """Return the nodes that compute a constant."""
        found: set[int] = set()
        pending = [t]
        while pending:
            operand = pending.pop()
            node = self.producer.get(operand) if operand in self.constants else None
            if node is not None and node.index not in found:
                found.add(node.index)
                pending += node.inputs
        return found

    def _parameters(self, node: Node, t: int) -> dict[int, int]:
        """Return the bytes fetched for a constant operand, by the stored tensor they come from."""
        found: dict[int, int] = {}
        pending, seen = [(node, t)], {t}
        while pending:
            reader, t = pending.pop()
            row = self.graph.tensors[t]
            if row.data is None:
                maker = self.producer.get(t)
                for position, operand in enumerate(maker.inputs if maker else ()):
                    if (
                        maker
                        and operand >= 0
                        and operand not in seen
                        and not is_setting(maker.type, position)
                    ):
                        seen.add(operand)
                        pending.append((maker, operand))
            elif row.elements > 1 or (row.elements == 1 and row.shape and reader.type not in ELEMENTWISE):
                stored = row.data[1] - row.data[0]
                sized = row.element not in (0, 8) and self.dtype != "file"
                found[t] = value_bytes(row.element, row.shape, self.dtype) if sized else stored
        return found

    # -- the network ----------------------------------------------------------------------------------------

    def source(self, name: str, options: ReadOptions, digest: str) -> Source:
        graph, rows = self.graph, self.graph.tensors
        drafts = [
            self.draft(node)
            for node in self.computing
            if any(self.places[t].via is None for t in node.outputs if t >= 0)
        ]
        outputs = [self.boundary(t)[0] for t in graph.outputs if t in self.places]
        if not outputs:
            raise graph.refuse("no output depends on an input: there is nothing to plan", "outputs")
        used: dict[int, None] = {}
        for draft in drafts:
            used |= dict.fromkeys((*draft.inputs, *draft.outputs))
        used |= dict.fromkeys(outputs)
        used |= dict.fromkeys([self.places[t].root for t in used])
        fed = [t for t in self.inputs if t in used]
        order = fed + [t for t in used if t not in set(fed)]
        tensors: list[tuple[str, int, TensorKind]] = [
            (rows[t].name, self.size(t), "input" if i < len(fed) else "activation")
            for i, t in enumerate(order)
        ]
        network = Network.build(
            name,
            tensors,
            [
                OperatorSpec(
                    draft.node.label,
                    draft.node.type,
                    [rows[t].name for t in draft.inputs],
                    [rows[t].name for t in draft.outputs],
                    sum(draft.weights.values()),
                    geometry=draft.geometry,
                )
                for draft in drafts
            ],
            [rows[t].name for t in outputs],
            views=[
                (rows[t].name, rows[p.root].name, value_bytes(rows[t].element, (p.offset,), self.dtype))
                for t in order
                if (p := self.places[t]).root != t
            ],
            source=graph.where,
            sha256=digest,
            granularity=options.granularity,
            element=self._element(order) if self.dtype == "file" else self.dtype,
            shapes={rows[t].name: rows[t].shape for t in order},
            where=graph.where,
        )
        executable = TfliteExecutable(
            graph=graph,
            nodes=tuple(tuple(sorted(draft.nodes)) for draft in drafts),
            dtype=tuple(rows[t].element for t in order),
            shape=tuple(rows[t].shape for t in order),
            value=tuple(order),
            places={
                t: (p.root, value_bytes(rows[t].element, (p.offset,), "file")) for t, p in self.places.items()
            },
        )
        return Source(network, executable)

    def _element(self, order: list[int]) -> str:
        """Return the element type of most of the bytes."""
        totals: dict[int, int] = {}
        for t in order:
            element = self.graph.tensors[t].element
            totals[element] = totals.get(element, 0) + self.size(t)
        return NAMES[max(totals, key=lambda element: (totals[element], -element))]
