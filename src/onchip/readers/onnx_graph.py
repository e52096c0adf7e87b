"""An ONNX file as a graph of plain Python records: parsed, checked, in topological order.

Protobuf objects are slow to walk, so each node is read once into a `Node`; weights are only referenced, never
copied.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onchip.base.allowance import spend
from onchip.base.errors import ModelError
from onchip.readers.external import external_file, is_external
from onchip.readers.onnx_bounds import check_bounds, check_counts, is_control_flow
from onchip.readers.onnx_functions import inline
from onchip.readers.traits import VENDOR_OPERATORS

if TYPE_CHECKING:
    import onnx

__all__ = ["Graph", "Node", "is_vendors", "one_line", "parse"]

OLDEST_OPSET = 9
SMALL = 4096
"""Constants of more elements are never examined: they are weights, not shapes or axes."""


@dataclass(slots=True)
class Node:
    """One node, read out of the protobuf once. `index` is its position in `Graph.nodes`."""

    index: int
    proto: onnx.NodeProto
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    plain: Node | None = field(default=None, repr=False, compare=False)
    """The node in ONNX's own words, once `onchip.readers.plain.plain_of` has made it."""

    @property
    def label(self) -> str:
        """The node's name in messages."""
        name = self.proto.name or next((o for o in self.outputs if o), "(unnamed)")
        return f"node {name} ({self.op})"

    def attribute(self, name: str) -> onnx.AttributeProto | None:
        """Return the attribute of that name."""
        return next((a for a in self.proto.attribute if a.name == name), None)

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        found = self.attribute(name)
        return default if found is None else int(found.i)

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return a list-of-integers attribute."""
        found = self.attribute(name)
        return None if found is None else tuple(found.ints)


@dataclass
class Graph:
    """A parsed model. Shapes are filled in by `onchip.readers.shapes`."""

    where: str
    folder: Path | None
    model: onnx.ModelProto
    nodes: list[Node]
    inputs: dict[str, onnx.ValueInfoProto]
    """The real inputs: those that are not initializers."""
    outputs: list[str]
    weights: dict[str, onnx.TensorProto]
    """Initializers, and the values of `Constant` nodes, by value name."""
    weight_shape: dict[str, tuple[int, ...]]
    opsets: dict[str, int]
    producer: dict[str, Node]
    element: dict[str, int] = field(default_factory=dict)
    """ONNX element type of a value."""
    shape: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Static shape of a value; a value whose shape is not known is missing."""
    type: dict[str, onnx.TypeProto] = field(default_factory=dict)
    """Onnx's type of a value that has no static shape."""
    read: set[str] = field(default_factory=set)
    """Values that some node reads, and the outputs."""

    def refuse(self, reason: str, item: str) -> ModelError:
        """Return the error for one node or tensor of this file."""
        return ModelError(reason, where=self.where, item=item)

    def live(self, *, stop: Iterable[str] = ()) -> list[Node]:
        """Return the nodes that some output depends on, in order; values in `stop` need no producer."""
        stopped = set(stop)
        wanted = {name for name in self.outputs if name not in stopped}
        kept = []
        for node in reversed(self.nodes):
            if not wanted.isdisjoint(node.outputs):
                kept.append(node)
                wanted.update(name for name in node.inputs if name not in stopped)
        kept.reverse()
        return kept

    def is_large(self, name: str) -> bool:
        """Return whether a weight is too large to be examined."""
        return math.prod(self.weight_shape[name]) > SMALL

    def keep(self, nodes: Sequence[Node]) -> None:
        """Keep exactly these nodes in the model, in this order, without copying their contents."""
        place = {id(node.proto): i for i, node in enumerate(nodes)}
        self.model.graph.node.sort(key=lambda proto: place.get(id(proto), len(nodes)))
        del self.model.graph.node[len(nodes) :]
        self.nodes = list(nodes)
        for i, node in enumerate(self.nodes):
            node.index = i
        self.producer = {name: node for node in self.nodes for name in node.outputs if name}
        self.read = {name for node in self.nodes for name in node.inputs if name} | set(self.outputs)


def parse(content: bytes, *, where: str, folder: Path | None) -> Graph:
    """Return the graph in an ONNX file's bytes, its nodes in topological order.

    Raises `ModelError` naming the node or tensor for anything but a plain graph of known operators: a
    truncated or foreign file, opsets before 9, unknown operators, control flow, cycles, values without a
    producer, external data outside `folder`.
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, ValueError, RecursionError):
        reason = "beyond protobuf's 2 GiB (weights that large belong in external data)"
        if len(content) < 1 << 31:
            reason = "is no ONNX model, or a truncated one"
        raise ModelError(reason, where=where) from None
    graph = model.graph
    check_counts(model, where)
    if not model.HasField("graph") or not (graph.node or graph.output) or not model.opset_import:
        raise ModelError("is no ONNX model: it has no graph or names no operator set", where=where)
    _check_text(model, where)
    opsets = {_domain(o.domain): int(o.version) for o in model.opset_import}
    _check_opsets(opsets, where)
    if model.functions:
        inline(model, where)
        _check_text(model, where)
    check_bounds(model, where)
    weights = {t.name: t for t in graph.initializer}
    shapes = {name: tuple(t.dims) for name, t in weights.items()}
    for sparse in graph.sparse_initializer:
        weights[sparse.values.name] = sparse.values
        shapes[sparse.values.name] = tuple(sparse.dims)
    nodes = _sorted(_records(graph.node), set(weights) | {i.name for i in graph.input}, where)
    context = onnx.checker.C.CheckerContext()
    for item, version in (("ir_version", int(model.ir_version)), *opsets.items()):
        if not 0 < version < 1 << 31:  # others exceed the checker's integers
            raise ModelError(f"{version} is no version of ONNX", where=where, item=item)
    context.ir_version, context.opset_imports = model.ir_version, dict(opsets)
    for node in nodes:
        spend(node.label)
        _check_node(node, opsets, context, folder, where)
        if node.op == "Constant" and node.domain == "":
            value = node.attribute("value")
            if value is not None and node.outputs:
                weights[node.outputs[0]] = value.t
                shapes[node.outputs[0]] = tuple(value.t.dims)
    for name, tensor in weights.items():
        if min(shapes[name], default=0) < 0:
            raise ModelError("has a negative dimension", where=where, item=f"tensor {name}")
        if is_external(tensor):
            external_file(tensor, folder, where=where)
    result = Graph(
        where=where,
        folder=folder,
        model=model,
        nodes=[],
        inputs={i.name: i for i in graph.input if i.name not in weights},
        outputs=[o.name for o in graph.output],
        weights=weights,
        weight_shape=shapes,
        opsets=opsets,
        producer={},
    )
    result.keep(nodes)
    for name in result.outputs:
        if name not in result.producer and name not in result.inputs and name not in weights:
            raise result.refuse("is an output of the graph, and nothing produces it", f"tensor {name}")
    if not result.outputs:
        raise ModelError("the graph has no outputs", where=where)
    return result


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _records(protos: Iterable[onnx.NodeProto]) -> list[Node]:
    return [
        Node(i, n, n.op_type, _domain(n.domain), tuple(n.input), tuple(n.output))
        for i, n in enumerate(protos)
    ]


def _check_text(model: onnx.ModelProto, where: str) -> None:
    """Refuse names that are not UTF-8: protobuf returns them as bytes."""
    graph = model.graph
    for name in (
        *(o.domain for o in model.opset_import),
        *(i.name for i in (*graph.input, *graph.output, *graph.value_info)),
        *(d.dim_param for i in graph.input for d in i.type.tensor_type.shape.dim),
        *(t.name for t in graph.initializer),
        *(e for t in graph.initializer for x in t.external_data for e in (x.key, x.value)),
        *(a.name for n in graph.node for a in n.attribute),
        *(s for n in graph.node for s in (n.name, n.op_type, n.domain, *n.input, *n.output)),
    ):
        if not isinstance(name, str):
            raise ModelError("has a name that is not UTF-8", where=where, item=repr(name)[2:-1])


def _check_opsets(opsets: Mapping[str, int], where: str) -> None:
    import onnx

    version = opsets.get("")
    newest = onnx.defs.onnx_opset_version()
    if version is not None and not OLDEST_OPSET <= version <= newest:
        raise ModelError(
            f"uses operator set {version}; {OLDEST_OPSET} to {newest} are read",
            where=where,
            item="opset_import",
        )


@cache
def _known(op: str, version: int, domain: str) -> bool:
    import onnx

    return (
        bool(onnx.defs.has(op, version, domain)) and not onnx.defs.get_schema(op, version, domain).deprecated
    )


def is_vendors(node: Node, opsets: Mapping[str, int]) -> bool:
    """Return whether a node's operator is read although `onnx` does not know it."""
    version = opsets.get(node.domain)
    if version is None or (node.domain, node.op) not in VENDOR_OPERATORS:
        return False
    return not _known(node.op, version, node.domain)


def _check_node(node: Node, opsets: Mapping[str, int], context: Any, folder: Path | None, where: str) -> None:
    import onnx

    if is_control_flow(node.proto):
        raise ModelError("control flow cannot be planned", where=where, item=node.label)
    version = opsets.get(node.domain)
    if is_vendors(node, opsets):
        _check_attributes(node, folder, where)
        if not node.inputs or not node.outputs or not node.inputs[0] or not node.outputs[0]:
            raise ModelError("has no first operand or no result", where=where, item=node.label)
        return
    if version is None or not _known(node.op, version, node.domain):
        operator = f"{node.domain}.{node.op}" if node.domain else node.op
        at = "" if version is None else f" in operator set {version}"
        raise ModelError(f"{operator} is no known operator{at}", where=where, item=node.label)
    _check_attributes(node, folder, where)
    if node.op == "Constant" and node.domain == "":
        if len(node.outputs) != 1 or len(node.proto.attribute) != 1:
            raise ModelError("must have one output and one value", where=where, item=node.label)
        return  # its tensor may have no data, or a large amount
    try:
        onnx.checker.check_node(node.proto, context)
    except Exception as problem:
        raise ModelError(one_line(problem), where=where, item=node.label) from None


def _check_attributes(node: Node, folder: Path | None, where: str) -> None:
    """Refuse a tensor in an attribute with external data, unless it is the value of a constant.

    Code that computes with such a node would look for external data in the current folder.
    """
    for attribute in node.proto.attribute:
        inside = (attribute.t, *attribute.tensors) if attribute.type in (4, 9) else ()
        sparse = (attribute.sparse_tensor, *attribute.sparse_tensors) if attribute.type in (11, 12) else ()
        for tensor in (*inside, *(part for s in sparse for part in (s.values, s.indices))):
            if not is_external(tensor):
                continue
            external_file(tensor, folder, where=where)
            if (node.op, node.domain, attribute.name, attribute.type) != ("Constant", "", "value", 4):
                reason = f"attribute {attribute.name} has external data; only a constant's value may"
                raise ModelError(reason, where=where, item=node.label)


def one_line(problem: Exception) -> str:
    """Return an exception's first line."""
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0]


def _sorted(nodes: list[Node], known: set[str], where: str) -> list[Node]:
    """Return the nodes in topological order, as listed wherever that is possible."""
    producer: dict[str, Node] = {}
    for node in nodes:
        for name in node.outputs:
            if name in producer or (name and name in known):
                raise ModelError(f"writes {name}, which already has a value", where=where, item=node.label)
            if name:
                producer[name] = node
    waiting = [0] * len(nodes)
    followers: list[list[int]] = [[] for _ in nodes]
    for node in nodes:
        for name in set(node.inputs):
            before = producer.get(name)
            if before is not None:
                waiting[node.index] += 1
                followers[before.index].append(node.index)
            elif name and name not in known:
                raise ModelError(f"reads {name}, which nothing produces", where=where, item=node.label)
    ready = [i for i, n in enumerate(waiting) if n == 0]
    order: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        order.append(node)
        for after in followers[node.index]:
            waiting[after] -= 1
            if not waiting[after]:
                heapq.heappush(ready, after)
    if len(order) < len(nodes):
        stuck = next(node for node in nodes if waiting[node.index])
        raise ModelError("is on, or waits for, a cycle of the graph", where=where, item=stuck.label)
    return order
