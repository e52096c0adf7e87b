"""Values made on the way: what only repeats or scales another value is read through by each of its readers.

A mask of all queries and keys that follows from one number for each key, the keys that several heads share,
a scaled transpose of keys: as a tensor of its own such a value is larger than what it is made of, or as
large. An operator that computes the elements it needs from that has less to fetch, and nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from onchip.base.allowance import spend
from onchip.readers.behind import PRODUCTS
from onchip.readers.constants import Constants
from onchip.readers.drafts import Draft
from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.places import Places
from onchip.readers.rows import within_rows
from onchip.readers.traits import VENDOR, is_elementwise

__all__ = ["spread"]

_FUNCTIONS = frozenset({
    "Abs", "Add", "And", "Cast", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
    "Min", "Mul", "Neg", "Not", "Or", "Sub", "Where", "Xor",
})  # fmt: skip
"""Functions of single elements that each reader may compute again."""

_READERS = frozenset({"Attention", "Einsum", "MatMul"})
"""The products that may scale or turn an operand as they read it."""

_MASKS = {("", "Attention"): 3, (VENDOR, "MultiHeadAttention"): 5}
"""The operand of an attention that is added to its scores, or chooses among them."""

_INDICES = {("", "GatherElements"): 1, ("", "ScatterElements"): 1}
"""The operand that names elements along one dimension, often the same ones all along the others."""


def spread(
    drafts: list[Draft],
    graph: Graph,
    constants: Constants,
    places: Places,
    sizes: Callable[[str], int],
    keep: Collection[str],
) -> list[Draft]:
    """Let the readers of values that are made on the way make them; return the operators that are left.

    `sizes` states the bytes of a value, `keep` the tensors that are outputs of the network.
    """
    return _Spreading(drafts, graph, constants, places, sizes, keep).run()


@dataclass(frozen=True, slots=True)
class _Through:
    """A value made on the way: larger than what it is made of; of one value and single numbers; of a value
    that a product makes, whose elements have no neighbours in rows and columns of an image."""

    repeats: bool
    scaled: bool
    of_product: bool


class _Spreading:
    def __init__(
        self,
        drafts: list[Draft],
        graph: Graph,
        constants: Constants,
        places: Places,
        sizes: Callable[[str], int],
        keep: Collection[str],
    ) -> None:
        self.drafts, self.graph, self.constants, self.places = drafts, graph, constants, places
        self.sizes, self.keep = sizes, keep
        self.makers = {name: draft for draft in drafts for name in draft.outputs}
        self.readers: dict[str, list[Draft]] = {}
        for draft in drafts:
            for name in draft.inputs:
                self.readers.setdefault(self.root(name), []).append(draft)

    def root(self, name: str) -> str:
        return self.places.of[name].root

    def run(self) -> list[Draft]:
        left = []
        for draft in self.drafts:  # in order: what reads a value may itself be made on the way
            spend(f"operator {draft.name}")
            readers = self.takers(draft)
            if readers:
                self.hand_on(draft, readers)
            else:
                left.append(draft)
        return left

    def takers(self, draft: Draft) -> list[Draft]:
        """Return the readers of what a draft makes if all of them can make it on the way, else none."""
        if len(draft.outputs) != 1 or not draft.inputs or not self.made_on_the_way(draft):
            return []
        [made] = draft.outputs
        fetched = sum(map(self.sizes, draft.inputs)) + sum(draft.weights.values())
        scaled = len(draft.inputs) == 1 and not draft.weights
        if made in self.keep or self.sizes(made) < fetched + (not scaled):
            return []
        readers = self.readers.get(made, [])
        maker = self.makers.get(next(iter(draft.inputs)))
        through = _Through(
            repeats=self.sizes(made) > fetched,
            scaled=scaled,
            of_product=scaled and maker is not None and not PRODUCTS.isdisjoint(maker.types),
        )
        if all(made in reader.inputs and self.can_take(reader, made, through) for reader in readers):
            return readers
        return []

    def made_on_the_way(self, draft: Draft) -> bool:
        """Return whether a draft's nodes only move, repeat, and compute cheap functions of elements."""
        return all(
            index in self.places.layout_nodes or (node.domain == "" and (node.op in {"Expand", *_FUNCTIONS}))
            for index in draft.nodes
            for node in (self.graph.nodes[index],)
        )

    def can_take(self, reader: Draft, made: str, through: _Through) -> bool:
        """Return whether all nodes of a draft that read a value can read what it is made of instead."""
        if len(reader.outputs) != 1:
            return False
        return all(
            self.reads_through(self.graph.nodes[index], made, through)
            for index in reader.nodes
            if index not in self.places.layout_nodes
        )

    def reads_through(self, node: Node, made: str, through: _Through) -> bool:
        at = [i for i, name in enumerate(node.inputs) if name in self.places.of and self.root(name) == made]
        if not at:
            return True
        named = (node.domain, node.op)
        if through.repeats and (
            is_elementwise(node.op, node.domain) or at in ([_MASKS.get(named)], [_INDICES.get(named)])
        ):
            return True
        if through.of_product and within_rows(self.graph, self.constants, node):
            return True
        return through.scaled and node.domain == "" and node.op in _READERS

    def hand_on(self, draft: Draft, readers: list[Draft]) -> None:
        [made] = draft.outputs
        del self.readers[made]
        for reader in readers:
            reader.nodes |= draft.nodes
            inputs = dict.fromkeys(
                other for name in reader.inputs for other in (draft.inputs if name == made else (name,))
            )
            reader.inputs.clear()
            reader.inputs.update(inputs)
            reader.weights.update(draft.weights)
            reader.types.extendleft(reversed(draft.types))
            reader.geometry = None
            for name in draft.inputs:
                beside = self.readers[self.root(name)]
                if reader not in beside:
                    beside.append(reader)
        for name in draft.inputs:
            self.readers[self.root(name)].remove(draft)
