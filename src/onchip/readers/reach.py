"""The reach of an operator: from a box of its output back through its nodes to boxes of its operands.

Every rule gives, for one node, the part of each input that a box of its result needs. The rules follow one
another from the operator's output to its operands, through merged, reshaped and reordered values. An operator
with a node that has no rule gets no reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from onchip.base.allowance import spend
from onchip.network import MOST_SIDES, Constant, Geometry, Reach, Side, most_sides
from onchip.readers.constants import Constants
from onchip.readers.digits import CutAxis, Need, everything, flat, grouped, together
from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.reach_rules import SAME_ORDER, Needs, NoRule, elementwise, rule_of
from onchip.readers.traits import is_elementwise

__all__ = ["in_maps", "reach_of"]

MOST_CUTS = 32  # of the axes of an output


def in_maps(geometry: Geometry | None, batch: int | None) -> bool:
    """Return whether a geometry already tells how the operator's maps are read: as images or their rows."""
    if geometry is None or not geometry.promises:
        return False
    if len(geometry.output) == 4 or len(geometry.input) == 4:
        return True
    return len(geometry.output) == 2 and batch is not None and geometry.output[0] == batch


def reach_of(
    graph: Graph,
    constants: Constants,
    nodes: Sequence[int],
    inputs: Sequence[str],
    output: str,
    weights: dict[str, int],
) -> Reach | None:
    """Return the reach of an operator of these `nodes` with one `output`; `weights` are bytes by constant."""
    axes = [n for n in graph.shape[output] if n > 1] or [1]
    for _ in range(MOST_CUTS):
        try:
            found = Walk(graph, constants, axes).reach(nodes, inputs, output, weights)
        except CutAxis as cut:
            axes[cut.axis : cut.axis + 1] = [cut.outer, axes[cut.axis] // cut.outer]
        except NoRule:
            return None
        else:
            return found if most_sides(found) <= MOST_SIDES else None
    return None


class Walk:
    """One way back through an operator's nodes, for one division of its output into axes."""

    def __init__(self, graph: Graph, constants: Constants, axes: Sequence[int]) -> None:
        self.graph, self.constants, self.axes = graph, constants, axes
        self.needs: Needs = {}
        self.sums: list[int] = []

    def reach(
        self, nodes: Sequence[int], inputs: Sequence[str], output: str, weights: dict[str, int]
    ) -> Reach:
        self.needs[output] = tuple(Side(n, i) for i, n in enumerate(self.axes))
        for index in sorted(nodes, reverse=True):
            spend()
            self.back(self.graph.nodes[index], stop=inputs)
        # A constant may be cast or reordered between memory and its reader.
        pending = [name for name in self.needs if name in self.constants and name not in weights]
        while pending:
            spend()
            name = pending.pop()
            maker = self.graph.producer.get(name)
            if maker is None or name in weights:
                continue
            before = set(self.needs)
            try:
                self.back(maker, stop=())
            except NoRule:
                continue  # its operands are needed whole
            pending += [n for n in self.needs.keys() - before if n in self.constants]
        if any(name not in self.needs for name in inputs):
            raise NoRule
        return Reach(
            tuple(self.axes),
            tuple(self.settled(name) for name in inputs),
            tuple(Constant(name, size, self.stored(name, size)) for name, size in weights.items()),
            tuple(self.sums),
        )

    def settled(self, name: str) -> Need:
        """Return a value's sides, no two of them along one axis of the output."""
        seen: set[int] = set()
        found: list[Side] = []
        for side in self.needs[name]:
            if side.size == 1:
                continue
            again = side.axis >= 0 and side.axis in seen
            found.append(everything(side.size) if again else side)
            seen.add(side.axis)
        return tuple(found) or (everything(1),)

    def stored(self, name: str, size: int) -> Need:
        """Return the sides of a constant; whole if they do not divide its bytes or are not known."""
        count = prod(self.graph.shape.get(name, ())) or 1
        if name not in self.needs or size % count:
            return (everything(1),)
        return self.settled(name)

    # -- rules -----------------------------------------------------------------------------------------------

    def back(self, node: Node, stop: Sequence[str]) -> None:
        """Derive the needs of a node's inputs from those of its results."""
        for position, name in enumerate(node.outputs):
            if name not in self.needs or name in stop:
                continue
            shape = self.graph.shape[name]
            rule = elementwise if is_elementwise(node.op, node.domain) else rule_of(node.op, node.domain)
            if rule is None:
                raise NoRule
            try:
                dims = (self.needs[name],) if node.op in SAME_ORDER else self.dims(name, shape)
                found = rule(self, node, position, tuple(dims))
            except (ArithmeticError, LookupError, TypeError, ValueError):
                raise NoRule from None  # the file states shapes or settings that its nodes cannot have
            for source, need in found.items():
                known = self.needs.get(source)
                self.needs[source] = need if known is None else together(known, need)

    def dims(self, name: str, shape: Sequence[int]) -> tuple[Need, ...]:
        return tuple(grouped(self.needs[name], shape, self.axes))

    def regrouped(self, dims: Sequence[Need], shape: Sequence[int]) -> list[Need]:
        return grouped(flat(dims), shape, self.axes)

    def shape(self, name: str) -> tuple[int, ...]:
        found = self.graph.shape.get(name)
        if found is None:
            raise NoRule
        return found

    def summed(self, node: Node, dims: Sequence[Need], size: int) -> Need:
        """Return a dimension that a node's result is summed over, as an axis of its own if possible.

        The operator's output must be that result, element by element, up to functions of each element, and no
        operand may come twice: one that is also added to the sum could not be cut with it.
        """
        made = tuple(side for side in flat(dims) if side.size > 1)
        if size == 1:
            return ()
        if (
            self.sums
            or len(set(node.inputs)) < len(node.inputs)
            or made != tuple(Side(n, i) for i, n in enumerate(self.axes) if n > 1)
        ):
            return (everything(size),)
        self.sums.append(size)
        return (Side(size, len(self.axes)),)

    def all_of(self, name: str) -> Need:
        return tuple(everything(n) for n in self.shape(name)) or (everything(1),)

    def numbers(self, node: Node, position: int, attribute: str = "") -> tuple[int, ...] | None:
        """Return a setting: an attribute, or a small constant operand; None if it is not stated."""
        stated = node.integers(attribute) if attribute else None
        if stated is not None:
            return stated
        name = node.inputs[position] if position < len(node.inputs) else ""
        if not name:
            return None
        value = self.constants.value(name) if name in self.constants else None
        if value is None:
            raise NoRule
        return tuple(int(n) for n in np.asarray(value).reshape(-1))
