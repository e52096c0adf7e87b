"""A `.tflite` model with offsets for TFLM's arena, packed exactly for the lives that TFLM itself computes.

A plan's DRAM, states and order are not needed for that: every model that TFLM runs has such a copy, also one
with variables, or with several outputs that TFLM keeps to the end. Lives are those of TFLM's allocator: a
scope for every operator, subgraphs inside the scope of the operator that calls them, inputs from their
subgraph's beginning, outputs to its end. The order is the file's, or one with a lower peak.

Scratch buffers are the kernels' affair, and TFLM places them around the tensors. For kinds of operators whose
reference kernels have large ones the packing leaves room.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onchip.base.errors import ModelError
from onchip.export.tflm import ALIGNMENT, METADATA, VERSION
from onchip.network import Network, OperatorSpec
from onchip.planners.limits import Limits
from onchip.planners.packing import Buffer, fault, minimise
from onchip.planners.placement.problem import Problem
from onchip.planners.placement.search import minimum_peak
from onchip.readers.tflite_graph import Node, TfliteGraph, parse
from onchip.readers.tflite_rewrite import rewritten

__all__ = ["Arena", "in_arena", "packed"]

WIDTHS = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8}
"""Bytes of an element by ONNX element type; whatever has another type is TFLM's to place."""

CALLS = {"CALL_ONCE": ("InitSubgraphIndex",)}
"""The operators that run subgraphs, and the options that number these."""

ORDERED = frozenset({"CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE"})
"""Operators with effects that no tensor shows: with one of them the file's order stays."""

Scratch = dict[tuple[int, int], tuple[int, tuple[int, ...]]]
"""By subgraph and operator, the scope in which its scratch buffers live, and their bytes."""

Key = tuple[int, int]
"""A tensor: its subgraph, and its number in there."""


@dataclass(frozen=True, slots=True)
class Arena:
    """The offsets of all tensors in turn, -1 for those that TFLM places; the order of the first subgraph's
    operators, None for the file's; the bytes of the packed tensors, and a bound of them in this order."""

    offsets: tuple[int, ...]
    order: tuple[int, ...] | None
    bytes: int
    lower_bound: int


def packed(content: bytes, where: str, *, time_limit: float | None = 60.0) -> bytes:
    """Return the model's copy with offsets for all of its tensors.

    Raises `ModelError` for a file that cannot be read or rewritten, or with control flow.
    """
    graph = parse(content, where=where, states=True)
    arena = in_arena(graph, time_limit=time_limit)
    data = struct.pack(
        f"<3I{len(arena.offsets)}i", VERSION, 1 + len(graph.others), len(arena.offsets), *arena.offsets
    )
    return rewritten(graph, operators=arena.order, metadata=(METADATA, data))


def in_arena(graph: TfliteGraph, *, time_limit: float | None = 60.0) -> Arena:
    """Return the offsets in the fewest bytes that are found, of the file's order and of one of least peak."""
    limits = Limits(time_limit)
    given = tuple(node.index for node in graph.nodes)
    orders = [given]
    if not any(is_ordered(graph, node) for node in graph.nodes):
        found = order_of_least_peak(graph, limits.share(1 / 2))
        if found != given:
            orders.append(found)
    best: Arena | None = None
    for order in orders:
        for roots in ({}, views_of(graph)):
            arena = arena_of(graph, order, roots, limits.share(1 / 3))
            if best is None or arena.bytes < best.bytes:
                best = arena if order != given else Arena(arena.offsets, None, arena.bytes, arena.lower_bound)
    assert best is not None
    return best


def is_ordered(graph: TfliteGraph, node: Node) -> bool:
    """True for an operator whose place among the others matters beyond its operands."""
    touched = (*node.inputs, *node.outputs)
    return node.type in ORDERED or any(t >= 0 and graph.tensors[t].variable for t in touched)


def bytes_of(graph: TfliteGraph, tensor: int) -> int:
    """Return the bytes that TFLM reserves for a tensor in its arena; 0 for one that it keeps elsewhere."""
    row = graph.tensors[tensor]
    if row.data is not None or row.variable or row.element not in WIDTHS or min(row.shape, default=1) < 0:
        return 0
    return math.prod(row.shape) * WIDTHS[row.element]


def views_of(graph: TfliteGraph) -> dict[Key, Key]:
    """Return the reshaped tensors of the first subgraph that may have the bytes of their operand.

    TFLM's reshape copies nothing where both are the same; nothing else writes over either.
    """
    found: dict[Key, Key] = {}
    made = {t for node in graph.nodes for t in node.outputs} | set(graph.inputs)
    for node in graph.nodes:
        if node.type != "RESHAPE" or not node.inputs or len(node.outputs) != 1:
            continue
        x, y = node.inputs[0], node.outputs[0]
        if x in made and bytes_of(graph, x) and bytes_of(graph, x) == bytes_of(graph, y):
            found[0, y] = found.get((0, x), (0, x))
    return found


def scratch_of(graph: TfliteGraph, node: Node) -> tuple[int, ...]:
    """Return the bytes of the scratch buffers that TFLM's reference kernel of an operator asks for."""
    shapes = [graph.tensors[t].shape if t >= 0 else () for t in node.inputs]
    if node.type == "SVDF" and len(shapes) > 1 and shapes[0] and shapes[1]:
        batch, filters = shapes[0][0], shapes[1][0]
        return (4 * batch * filters, 4 * batch * filters // max(node.options.get("Rank", 1), 1))
    if node.type == "TRANSPOSE_CONV" and node.outputs:
        wide = 8 if graph.tensors[node.outputs[0]].element == 5 else 4
        return (wide * math.prod(graph.tensors[node.outputs[0]].shape),)
    return ()


def lives_of(graph: TfliteGraph, order: Sequence[int]) -> tuple[dict[Key, tuple[int, int]], Scratch]:
    """Return first and last scope of every tensor that an operator or a caller of the model touches."""
    graphs = (graph, *graph.others)
    lives: dict[Key, tuple[int, int]] = {}
    scratch: Scratch = {}
    scope, depth = 0, 0

    def walk(number: int, nodes: Sequence[Node]) -> None:
        nonlocal scope, depth
        if depth > len(graphs):
            raise ModelError("calls a subgraph from within itself", where=graph.where)
        depth += 1
        part = graphs[number]
        for t in (*part.inputs, *part.outputs):
            lives[number, t] = scope, scope
        for node in nodes:
            scope += 1
            for t in node.outputs:
                lives[number, t] = scope, scope
            scratch[number, node.index] = scope, scratch_of(part, node)
            for option in CALLS.get(node.type, ()):
                called = node.options.get(option, 0)
                if not 0 <= called < len(graphs):
                    raise ModelError(f"names subgraph {called}", where=graph.where, item=node.label)
                scope += 1
                walk(called, graphs[called].nodes)
            for t in (*node.inputs, *node.outputs):
                if t >= 0:
                    lives[number, t] = lives.get((number, t), (scope, scope))[0], scope
        for t in part.outputs:
            lives[number, t] = lives[number, t][0], scope
        depth -= 1

    walk(0, [graph.nodes[i] for i in order])
    return lives, scratch


def arena_of(graph: TfliteGraph, order: Sequence[int], roots: Mapping[Key, Key], limits: Limits) -> Arena:
    """Pack all tensors in one order of operators, each with those that have its bytes."""
    graphs = (graph, *graph.others)
    blocks: dict[Key, tuple[int, int, int]] = {}
    lives, scratch = lives_of(graph, order)
    for key, (first, last) in lives.items():
        size = bytes_of(graphs[key[0]], key[1]) if key[1] >= 0 else 0
        root = roots.get(key, key)
        if size:
            before = blocks.get(root, (first, last, size))
            blocks[root] = min(first, before[0]), max(last, before[1]), size
    buffers = [
        Buffer(first, last + 1, -(-size // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
        for first, last, size in blocks.values()
    ]
    buffers += [
        Buffer(scope, scope + 1, -(-size // ALIGNMENT) * ALIGNMENT, ALIGNMENT)
        for scope, sizes in scratch.values()
        for size in sizes
        if size > 0
    ]
    found = minimise(buffers, time_limit=limits.left())
    wrong = fault(buffers, found.offsets, found.bytes)
    if wrong is not None:
        raise AssertionError(f"the arena is wrong: {wrong}")
    if found.bytes >= 1 << 31:
        raise ModelError("needs 2 GiB or more, where TFLM's offsets end", where=graph.where)
    at = dict(zip(blocks, found.offsets, strict=False))  # behind the tensors come the scratch buffers
    offsets = [
        at.get(roots.get((number, t), (number, t)), -1) if bytes_of(part, t) else -1
        for number, part in enumerate(graphs)
        for t in range(len(part.tensors))
    ]
    return Arena(tuple(offsets), tuple(order), found.bytes, found.lower_bound)


def order_of_least_peak(graph: TfliteGraph, limits: Limits) -> tuple[int, ...]:
    """Return an order of the operators with the least bytes live at once, as far as the search gets.

    Inputs are there from the start, outputs to the end: both belong to operators of their own.
    """
    given = tuple(node.index for node in graph.nodes)
    views = views_of(graph)
    size = {t: max(bytes_of(graph, t), 1) for node in graph.nodes for t in node.outputs if t >= 0}
    size |= {t: max(bytes_of(graph, t), 1) for t in graph.inputs}
    root = {t: views.get((0, t), (0, t))[1] for t in size}
    if len({t for node in graph.nodes for t in node.outputs}) < sum(len(n.outputs) for n in graph.nodes):
        return given
    ops, real = [], []
    if graph.inputs:
        ops.append(OperatorSpec("start", "Start", [], [str(t) for t in dict.fromkeys(graph.inputs)]))
        real.append(-1)
    for node in graph.nodes:
        writes = [str(t) for t in node.outputs if t >= 0 and root[t] == t]
        reads = [str(root[t]) for t in dict.fromkeys(node.inputs) if t in size]
        if not writes:
            continue
        ops.append(OperatorSpec(node.label, node.type, list(dict.fromkeys(reads)), writes))
        real.append(node.index)
    ends = list(dict.fromkeys(str(root[t]) for t in graph.outputs if t in size))
    if not ends or not ops:
        return given
    ops.append(OperatorSpec("end", "End", ends, ["end"]))
    real.append(-1)
    made = {name for op in ops for name in op.outputs}
    if any(name not in made for op in ops for name in op.inputs):
        return given
    network = Network.build(
        "arena",
        [(name, size.get(int(name), 1) if name != "end" else 1, "activation") for name in made],
        ops,
        ["end"],
    )
    found = minimum_peak(Problem.of(network, ALIGNMENT), limits=limits)
    wanted = [real[v] for v in found.order if real[v] >= 0]
    return expanded(graph, wanted)


def expanded(graph: TfliteGraph, wanted: Sequence[int]) -> tuple[int, ...]:
    """Return all operators, those that are not named just before what reads their results, or at the end."""
    producer = {t: node.index for node in graph.nodes for t in node.outputs if t >= 0}
    done: dict[int, None] = {}
    for index in (*wanted, *range(len(graph.nodes))):
        needed, pending = dict[int, None](), [index]
        while pending:
            node = pending.pop()
            if node in done or node in needed:
                continue
            needed[node] = None
            pending += [producer[t] for t in graph.nodes[node].inputs if t in producer]
        done |= dict.fromkeys(sorted(needed))
    return tuple(done)
