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
from onchip.readers.plain import in_parts, plain_of
from onchip.readers.reach_more import MORE_RULES
from onchip.readers.reach_rules import SAME_ORDER, Needs, NoRule, Rule, elementwise, rule_of
from onchip.readers.reach_vendor import VENDOR_RULES
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
    axes, sums = [n for n in graph.shape[output] if n > 1] or [1], list[int]()
    for _ in range(MOST_CUTS):
        walk = Walk(graph, constants, axes, sums)
        try:
            found = walk.reach(nodes, inputs, output, weights)
        except CutAxis as cut:
            sums = walk.sums
            row, at = (axes, cut.axis) if cut.axis < len(axes) else (sums, cut.axis - len(axes))
            row[at : at + 1] = [cut.outer, row[at] // cut.outer]
        except NoRule:
            return None
        else:
            return found if most_sides(found) <= MOST_SIDES else None
    return None


def _rule(plain: Node) -> Rule | None:
    if is_elementwise(plain.op, plain.domain):
        return elementwise
    more = VENDOR_RULES.get((plain.domain, plain.op)) if plain.domain else MORE_RULES.get(plain.op)
    return rule_of(plain.op, plain.domain) or more


class Walk:
    """One way back through an operator's nodes, for one division of its output into axes.

    `parts` are the axes into which a dimension that is summed over is cut, if it must be.
    """

    def __init__(
        self, graph: Graph, constants: Constants, axes: Sequence[int], parts: Sequence[int] = ()
    ) -> None:
        self.graph, self.constants, self.axes, self.parts = graph, constants, axes, parts
        self.needs: Needs = {}
        self.tables: Needs = {}
        self.entire: Needs = {}
        self.sums: list[int] = []
        self.rounded = False
        self.nodes: Sequence[Node] = ()
        self.carries, self.across = 0, tuple[int, ...]()

    def reach(
        self, nodes: Sequence[int], inputs: Sequence[str], output: str, weights: dict[str, int]
    ) -> Reach:
        self.needs[output] = tuple(Side(n, i) for i, n in enumerate(self.axes))
        self.nodes = [self.graph.nodes[index] for index in nodes]
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
            tuple(self.settled(self.needs[name]) for name in inputs),
            tuple(Constant(name, size, self.stored(name, size)) for name, size in weights.items()),
            tuple(self.sums),
            self.carries,
            self.across,
        )

    def settled(self, need: Need) -> Need:
        """Return a value's sides, no two of them along one axis of the output."""
        seen: set[int] = set()
        found: list[Side] = []
        for side in need:
            if side.size == 1:
                continue
            again = side.axis >= 0 and side.axis in seen
            found.append(everything(side.size) if again else side)
            seen.add(side.axis)
        return tuple(found) or (everything(1),)

    def stored(self, name: str, size: int) -> Need:
        """Return the sides of a constant; whole if they do not divide its bytes or are not known.

        Of a table they are those of the elements that are looked up.
        """
        if name in self.tables and name not in self.needs:
            sides = self.settled(self.tables[name])
            looked_up = prod(side.size for side in sides)
            count = prod(self.graph.shape[name])
            if looked_up < count and size % looked_up == 0:
                return sides
            return (everything(1),) if size % count else self.settled(self.entire[name])
        count = prod(self.graph.shape.get(name, ())) or 1
        if name not in self.needs or size % count:
            return (everything(1),)
        return self.settled(self.needs[name])

    # -- rules -----------------------------------------------------------------------------------------------

    def back(self, node: Node, stop: Sequence[str]) -> None:
        """Derive the needs of a node's inputs from those of its results."""
        plain = plain_of(node)
        for position, name in enumerate(node.outputs):
            if name not in self.needs or name in stop:
                continue
            shape = self.graph.shape[name]
            rule = _rule(plain)
            if rule is None:
                raise NoRule
            try:
                dims = (self.needs[name],) if plain.op in SAME_ORDER else tuple(self.dims(name, shape))
                self.rounded = not in_parts(node)
                found = rule(self, plain, position, dims)
                for other in filter(None, node.inputs if plain is not node else ()):
                    if other not in plain.inputs:
                        found[other] = self.beside(plain, other, name, dims)
            except (ArithmeticError, LookupError, TypeError, ValueError):
                raise NoRule from None  # the file states shapes or settings that its nodes cannot have
            for source, need in found.items():
                known = self.needs.get(source)
                self.needs[source] = need if known is None else together(known, need)

    def beside(self, plain: Node, other: str, made: str, dims: tuple[Need, ...]) -> Need:
        """Return the need of an operand that the plain form of a node leaves out.

        Such a one is a scale or zero point, of all numbers or one for every channel of the result, or is
        added to each element of it.
        """
        shape, result = self.shape(other), self.shape(made)
        if shape == result and len(shape) > 1:
            return flat(dims)
        axis = 1 if plain.op == "Conv" else -1
        along = plain.op in ("Conv", "Gemm", "MatMul") and len(shape) == 1 and shape[0] > 1
        return flat([dims[axis]]) if along and shape[0] == result[axis] else self.all_of(other)

    def dims(self, name: str, shape: Sequence[int]) -> tuple[Need, ...]:
        return tuple(grouped(self.needs[name], shape, [*self.axes, *self.sums]))

    def regrouped(self, dims: Sequence[Need], shape: Sequence[int]) -> list[Need]:
        return grouped(flat(dims), shape, [*self.axes, *self.sums])

    def shape(self, name: str) -> tuple[int, ...]:
        found = self.graph.shape.get(name)
        if found is None:
            raise NoRule
        return found

    def looked_up(self, table: str, need: Need, entire: Need) -> None:
        maker = self.graph.producer.get(table)
        while maker is not None and maker.op in ("Cast", "DequantizeLinear", "Identity"):
            table = maker.inputs[0]
            maker = self.graph.producer.get(table)
        if table in self.tables:
            raise NoRule
        self.tables[table], self.entire[table] = need, entire

    def summed(self, node: Node, dims: Sequence[Need], *sizes: int) -> list[Need]:
        """Return the dimensions that a node's result is summed over, each as axes of its own if possible.

        The operator's output must be that result, element by element, up to functions of each element, and no
        operand may come twice: one that is also added to the sum could not be cut with it. Nor can the sum of
        a node that does more with it than scale, round, or apply a function to each element.
        """
        made = tuple(side for side in flat(dims) if side.size > 1)
        if (
            prod(sizes) > 1
            and not self.sums
            and not self.rounded
            and len(set(node.inputs)) == len(node.inputs)
            and made == tuple(Side(n, i) for i, n in enumerate(self.axes) if n > 1)
        ):
            return self._apart(sizes)
        return [(everything(size),) if size > 1 else () for size in sizes]

    def _apart(self, sizes: Sequence[int]) -> list[Need]:
        """Return dimensions that are summed over, along new axes: those of `parts` if they divide so."""
        found: list[Need] = []
        parts = list(self.parts if prod(self.parts) == prod(sizes) else [n for n in sizes if n > 1])
        for size in sizes:
            sides: list[Side] = []
            while prod(side.size for side in sides) < size:
                sides.append(Side(parts[0], len(self.axes) + len(self.sums)))
                self.sums.append(parts.pop(0))
            found.append(tuple(sides))
        return found

    def rescaled(self, node: Node, dims: Sequence[Need], size: int, shared: Need) -> Need:
        """Return a dimension that a node's result is summed over with the weights of a softmax along it, as
        an axis of its own if possible: the highest score and the sum of weights so far come with a part.

        Beside the node the operator may only reorder elements, as its parts are computed by themselves.
        """
        made = sorted((side for side in flat(dims) if side.size > 1), key=lambda side: side.axis)
        others = {other.op for other in self.nodes if other is not node}
        if (
            size == 1
            or self.sums
            or self.rounded
            or not others <= {*SAME_ORDER, "Constant", "Transpose"}
            or made != [Side(n, i) for i, n in enumerate(self.axes) if n > 1]
        ):
            return (everything(size),)
        [inner] = self._apart([size])
        self.carries, self.across = 2, tuple(side.axis for side in shared if side.size > 1)
        return inner

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
