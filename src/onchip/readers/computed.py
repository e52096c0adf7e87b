"""Constants that are computed on the way: a mask is fetched as the positions that it follows from.

A file may state a constant by small constants and nodes: a causal mask by comparing positions, a mask of one
row for all rows by an expansion, rows of a table by indices that are known. An operator that computes the
element it needs from them fetches these small constants and not what they make.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from onchip.base.allowance import spend
from onchip.readers.constants import Constants
from onchip.readers.elements import BITS
from onchip.readers.onnx_graph import Graph, Node

__all__ = ["Computed"]

_MOVES = frozenset({"Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
_ON_THE_WAY = frozenset({
    "Abs", "Add", "And", "Cast", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min",
    "Mul", "Neg", "Not", "Or", "Sub", "Where", "Xor",
})  # fmt: skip
"""Functions of single elements that cost a few gates. Others, sines of positions say, are made before and
fetched."""

MOST_PARTS = 8
"""The most constants that are fetched instead of one that they make."""

Parts = dict[str, int]
"""Bytes by constant."""


class Computed:
    """The bytes that are fetched for the constants of a graph; `stored` states those of one as it is."""

    def __init__(self, graph: Graph, constants: Constants, stored: Callable[[str, int], int]) -> None:
        self.graph, self.constants, self.stored = graph, constants, stored
        self._found: dict[str, Parts] = {}

    def parts(self, name: str) -> Parts:
        """Return what is fetched for a constant whose shape and element type are known: the least of itself
        and the constants that it is computed from on the way."""
        pending = [name]
        while pending:
            spend()
            current = pending[-1]
            if current in self._found:
                pending.pop()
                continue
            sources = self._sources(current)
            missing = [source for source in sources if source not in self._found]
            if missing:
                pending += missing
                continue
            pending.pop()
            self._found[current] = self._least(current, sources)
        return self._found[name]

    def _sources(self, name: str) -> list[str]:
        """Return the constants that a constant is computed from, if that is done on the way."""
        node = self.graph.producer.get(name)
        if node is None or node.domain or name in self.graph.weights or len(node.outputs) != 1:
            return []
        if node.op in _MOVES:
            found = node.inputs[:1]
        elif node.op in _ON_THE_WAY:
            found = tuple(dict.fromkeys(filter(None, node.inputs)))
        else:
            return []
        known = all(
            source in self.graph.shape and self.graph.element.get(source, 0) in BITS for source in found
        )
        return list(found) if known else []

    def _least(self, name: str, sources: list[str]) -> Parts:
        own = self._itself(name)
        together: Parts = {}
        for source in sources:
            together |= self._found[source]
        # Of equal size the one before: what is read in two shapes is then fetched once.
        fewer = sum(together.values()) <= sum(own.values()) and len(together) <= MOST_PARTS
        return together if sources and fewer else own

    def _itself(self, name: str) -> Parts:
        """Return the bytes of a constant as it is: none for a single number, which is an immediate."""
        count = math.prod(self.graph.shape[name])
        if count <= 1:
            return {}
        node = self.graph.producer.get(name)
        rows = None if node is None else self._rows(node)
        return {name: self.stored(name, count if rows is None else min(rows, count))}

    def _rows(self, node: Node) -> int | None:
        """Return the elements of the different rows of a constant table that known indices name."""
        if node.op != "Gather" or node.domain or any(name not in self.constants for name in node.inputs):
            return None
        table = self.graph.shape.get(node.inputs[0])
        indices = self.constants.value(node.inputs[1])
        if table is None or indices is None or not indices.size:
            return None
        axis = node.integer("axis", 0) % len(table)
        different = {int(i) % table[axis] for i in indices.reshape(-1)}
        return math.prod(table) // table[axis] * len(different)
