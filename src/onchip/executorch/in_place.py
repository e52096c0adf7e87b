"""Which results may take the bytes of an operand: those of element-wise operators, read for the last time.

Element i of such a result depends on element i of each operand of its shape, so that a kernel has read a
byte before it writes it. What the caller gave or gets, what is read again, what shares its storage with
others or has another layout keeps its bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onchip.executorch.specs import Graph, base_of, is_allocation, node_specs, nodes_in, root_of

__all__ = ["ELEMENTWISE", "with_candidates"]

ELEMENTWISE = frozenset({
    "abs", "add", "atan", "ceil", "clamp", "cos", "div", "elu", "erf", "exp", "floor", "gelu", "hardsigmoid",
    "hardswish", "hardtanh", "leaky_relu", "log", "log1p", "maximum", "minimum", "mul", "neg", "pow",
    "reciprocal", "relu", "round", "rsqrt", "rsub", "sigmoid", "sign", "silu", "sin", "sqrt", "sub", "tanh",
    "trunc", "where", "_native_batch_norm_legit_no_training",
})  # fmt: skip
"""Operators of ATen whose first result goes element by element. A batch norm without training has its
statistics as parameters."""


def with_candidates(graph: Graph, nodes: Sequence[Any]) -> Graph:
    """Return the graph whose items name the buffers that they may be written over."""
    index = {id(root_of(spec)): i for spec, i, at in graph.places if i is not None and at == 0}
    shared = Counter(i for _, i, _ in graph.places if i is not None)
    own = {id(root_of(spec)) for spec, _, _ in graph.places if base_of(root_of(spec))[0] is None}
    given = {
        id(root_of(s)) for node in nodes if node.op in ("placeholder", "output") for s in node_specs(node)
    }
    first = first_touched(nodes)
    items = list(graph.items)
    for at, node in enumerate(nodes):
        if not is_elementwise(node):
            continue
        results = node_specs(node)
        y = index.get(id(root_of(results[0]))) if results else None
        if y is None or shared[y] > 1 or first.get(id(root_of(results[0]))) != at:
            continue
        read = nodes_in([*node.args, *getattr(node, "kwargs", {}).values()])
        operands = [spec for n in read for spec in node_specs(n)[:1]]
        found = [
            x
            for spec in operands
            if (x := index.get(id(root_of(spec)))) is not None
            and x != y
            and shared[x] == 1
            and id(root_of(spec)) in own
            and id(root_of(spec)) not in given
            and items[x].last == at
            and items[x].bytes == items[y].bytes
            and items[x].memory == items[y].memory
            and all(alike(other, results[0]) for other in operands if root_of(other) is root_of(spec))
        ]
        if found:
            items[y] = replace(items[y], over=tuple(dict.fromkeys(found)), written=at)
    return replace(graph, items=tuple(items))


def is_elementwise(node: Any) -> bool:
    """True if the first result of a node goes element by element, in a kernel that writes to memory."""
    schema = getattr(node.target, "_schema", None)
    library, _, name = str(getattr(schema, "name", "")).partition("::")
    return node.op == "call_function" and library == "aten" and name in ELEMENTWISE


def alike(a: Any, b: Any) -> bool:
    """True if two tensors have the same elements in the same order: shape, type, layout, all known."""
    return (
        list(a.shape) == list(b.shape)
        and a.dtype == b.dtype
        and list(a.dim_order) == list(b.dim_order)
        and all(isinstance(n, int) for n in a.shape)
        and bool(getattr(a, "is_static_shape_tensor", True))
        and bool(getattr(b, "is_static_shape_tensor", True))
    )


def first_touched(nodes: Sequence[Any]) -> Mapping[int, int]:
    """Return the first node that reads or writes each spec, by its identity; allocations do neither."""
    found: dict[int, int] = {}
    for at, node in enumerate(nodes):
        if is_allocation(node):
            continue
        touched = node_specs(node) + [s for n in nodes_in(list(node.args)) for s in node_specs(n)]
        for spec in touched:
            found.setdefault(id(root_of(spec)), at)
    return found
