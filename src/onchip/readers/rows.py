"""Functions of rows that are written in parts: a norm of squares, means and quotients, a rotary embedding.

What a part makes has one reader, which reads all that the part reads: the sum of a row's squares, and the
quotient of the row by its root; the halves of a row exchanged, and the row itself. The reader needs the whole
row either way and computes the part, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection

from onchip.base.allowance import spend
from onchip.readers.constants import Constants
from onchip.readers.drafts import Draft
from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.places import Places
from onchip.readers.traits import is_elementwise

__all__ = ["LONGEST_ROW", "functions_of_rows", "within_rows"]

LONGEST_ROW = 16_384
"""The most elements of a row: a longer one, of maps say, is better read twice than held."""

_REDUCTIONS = frozenset({
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare",
})  # fmt: skip


def within_rows(graph: Graph, constants: Constants, node: Node) -> bool:
    """Return whether a node makes each element of a row from elements of that row, and of others alike."""
    shape = graph.shape.get(node.inputs[0], ()) if node.inputs else ()
    if node.domain or len(node.outputs) != 1 or not shape:
        return False
    if is_elementwise(node.op, ""):
        return True
    if node.op == "Concat":
        return _last(node.integer("axis", 0), shape) and graph.shape[node.outputs[0]][-1] <= LONGEST_ROW
    if node.op not in _REDUCTIONS:
        return False
    axes = node.integers("axes")
    if axes is None:
        stated = constants.value(node.inputs[1]) if len(node.inputs) > 1 and node.inputs[1] else None
        axes = None if stated is None else tuple(int(axis) for axis in stated.reshape(-1))
    return axes is not None and len(axes) == 1 and _last(axes[0], shape) and shape[-1] <= LONGEST_ROW


def _last(axis: int, shape: tuple[int, ...]) -> bool:
    return axis % len(shape) == len(shape) - 1


def functions_of_rows(
    drafts: list[Draft],
    graph: Graph,
    constants: Constants,
    places: Places,
    elements: Callable[[str], int],
    keep: Collection[str],
) -> list[Draft]:
    """Merge parts of functions of rows into their readers; return the operators that are left, in order."""
    rows = {id(draft) for draft in drafts if _of_rows(draft, graph, constants, places)}
    parts = _Parts(drafts, places, elements, keep, rows)
    while (left := parts.once(drafts)) and len(left) < len(drafts):
        drafts = left
    return drafts


def _of_rows(draft: Draft, graph: Graph, constants: Constants, places: Places) -> bool:
    nodes = [graph.nodes[i] for i in draft.nodes if i not in places.layout_nodes]
    return bool(nodes) and all(within_rows(graph, constants, node) for node in nodes)


class _Parts:
    def __init__(
        self,
        drafts: list[Draft],
        places: Places,
        elements: Callable[[str], int],
        keep: Collection[str],
        rows: set[int],
    ) -> None:
        self.places, self.elements, self.keep, self.rows = places, elements, keep, rows
        self.makers = {name: draft for draft in drafts for name in draft.outputs}
        self.readers: dict[str, list[Draft]] = {}
        for draft in drafts:
            for name in draft.inputs:
                self.readers.setdefault(places.of[name].root, []).append(draft)

    def once(self, drafts: list[Draft]) -> list[Draft]:
        left = []
        for draft in drafts:
            spend(f"operator {draft.name}")
            reader = self.taker(draft)
            if reader is None:
                left.append(draft)
            else:
                self.give(draft, reader)
        return left

    def taker(self, draft: Draft) -> Draft | None:
        """Return the reader of which a draft computes a part."""
        if id(draft) not in self.rows or len(draft.outputs) != 1 or "QuantizeLinear" in draft.types:
            return None
        [made] = draft.outputs
        beside = self.readers.get(made, [])
        if made in self.keep or len(beside) != 1:
            return None
        [reader] = beside
        if id(reader) not in self.rows or made not in reader.inputs or len(reader.outputs) != 1:
            return None
        roots = {self.places.of[name].root for name in draft.inputs}
        known = {self.places.of[name].root for name in reader.inputs}
        if roots <= known and self.elements(made) <= self.elements(reader.outputs[0]):
            return reader
        # The squares of a row, whose sum its reader makes; a row less its mean.
        [*names] = draft.inputs
        if len(names) > 1 or self.elements(names[0]) != self.elements(made):
            return None
        alone = not _REDUCTIONS.isdisjoint(reader.types) or all(
            self.of_one(other, names[0], reader) for other in reader.inputs if other != made
        )
        return reader if alone else None

    def of_one(self, other: str, name: str, reader: Draft) -> bool:
        """Return whether a value that a draft reads is `name`, or a function of its rows that nothing else
        reads."""
        [root, mine] = (self.places.of[value].root for value in (other, name))
        if root == mine:
            return True
        maker = self.makers.get(other)
        if maker is None or id(maker) not in self.rows or self.readers[root] != [reader]:
            return False
        return {self.places.of[value].root for value in maker.inputs} == {mine}

    def give(self, draft: Draft, reader: Draft) -> None:
        [made] = draft.outputs
        del reader.inputs[made]
        for name in draft.inputs:
            beside = self.readers[self.places.of[name].root]
            beside.remove(draft)
            if name not in reader.inputs:
                reader.inputs[name] = None
                beside.append(reader)
        reader.nodes |= draft.nodes
        reader.weights = draft.weights | reader.weights
        reader.types = deque([*draft.types, *reader.types])
        reader.geometry, reader.elementwise = None, False
