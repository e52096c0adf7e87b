"""Functions of single elements before the nodes that only reorder: scaled queries that are transposed first.

An exporter that takes attention apart scales its operands where they lie permuted. No reader takes such a
value as it lies, so that it would be copied by an operator of its own. The function of every element is the
same before the transpose: there it merges into the operator that makes the value, and the transpose into the
product that reads it. Every element stays bit for bit what it was.
"""

from __future__ import annotations

import math
from collections import Counter

from onchip.base.allowance import spend
from onchip.readers.constants import Constants
from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.traits import is_elementwise

__all__ = ["functions_first"]

_MOVES = frozenset({"Reshape", "Squeeze", "Transpose", "Unsqueeze"})
_NO_MAKERS = _MOVES | {
    "Concat", "DequantizeLinear", "Dropout", "Expand", "Flatten", "Gather", "Identity", "Pad",
    "QuantizeLinear", "Slice", "Split", "Tile",
}  # fmt: skip
"""Nodes that make a value only by moving or converting another one, and could have no function as a part."""


def functions_first(graph: Graph, constants: Constants) -> None:
    """Exchange functions of one computed value and single numbers with the transposes before them.

    Both must be read by nothing else.
    """
    reads = Counter(name for node in graph.nodes for name in node.inputs if name) + Counter(graph.outputs)
    order: list[Node] = []
    changed = False
    for node in graph.nodes:
        spend(node.label)
        moves = _moves_before(graph, constants, node, reads)
        if moves:
            _exchange(graph, node, moves, reads)
            moved = {id(move) for move in moves}
            order = [other for other in order if id(other) not in moved]
            order += [node, *moves]
            changed = True
        else:
            order.append(node)
    if changed:
        graph.keep(order)


def _moves_before(graph: Graph, constants: Constants, node: Node, reads: Counter[str]) -> list[Node]:
    """Return the nodes that reorder what a function reads, first to last; none if they are to stay."""
    if not is_elementwise(node.op, node.domain) or node.domain or len(node.outputs) != 1:
        return []
    computed = [name for name in node.inputs if name and name not in constants]
    if len(computed) != 1 or node.op in ("BatchNormalization", "DequantizeLinear", "QuantizeLinear"):
        return []
    [name], made = computed, node.outputs[0]
    if graph.element.get(name) != graph.element.get(made) or graph.shape.get(name) != graph.shape.get(made):
        return []
    moves: list[Node] = []
    while True:
        maker = graph.producer.get(name)
        if maker is None or reads[name] != 1 or name not in graph.shape:
            return []
        if maker.op not in _MOVES or maker.domain:
            break
        moves.insert(0, maker)
        name = maker.inputs[0]
    if maker.op in _NO_MAKERS or len(maker.outputs) != 1 or all(move.op != "Transpose" for move in moves):
        return []
    rank = len(graph.shape[name])
    for other in node.inputs:
        shape = graph.shape.get(other) if other and other in constants else ()
        if shape is None or math.prod(shape) != 1 or len(shape) > rank:
            return []
    return moves


def _exchange(graph: Graph, node: Node, moves: list[Node], reads: Counter[str]) -> None:
    """Let a node read what the first of the moves reads, and the moves what it makes."""
    source, last, made = moves[0].inputs[0], moves[-1].outputs[0], node.outputs[0]
    fresh = f"{made}@first"
    while fresh in reads or fresh in graph.shape:
        fresh += "_"
    _rename(node.proto.input, last, source)
    _rename(node.proto.output, made, fresh)
    _rename(moves[0].proto.input, source, fresh)
    _rename(moves[-1].proto.output, last, made)
    for changed in (node, *moves):
        changed.inputs, changed.outputs = tuple(changed.proto.input), tuple(changed.proto.output)
        changed.plain = None
    graph.shape[fresh], graph.element[fresh] = graph.shape[source], graph.element[source]
    graph.producer[fresh], graph.producer[made] = node, moves[-1]
    reads[fresh] = 1
    del graph.producer[last], reads[last]


def _rename(names: list[str], old: str, new: str) -> None:
    for i, name in enumerate(names):
        if name == old:
            names[i] = new
