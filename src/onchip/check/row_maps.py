"""The maps of a group that runs by rows: how many rows each step makes, and which rows it reads.

Everything follows from the shapes of tensors and from what the operators' reaches say of rows; what the plan
adds is which operators run in one step, and of which maps they read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from onchip.check.rules import broken
from onchip.network import Network, Operator
from onchip.network.operators import Side
from onchip.network.reaches import reach_for
from onchip.plans import RowMap

__all__ = ["Read", "StepMap", "maps_of"]

SUM_BYTES = 4
"""The bytes of a sum of a pool that is not complete."""

ROW = 1
"""The axis of rows: shapes are images, rows, columns, channels."""


@dataclass(frozen=True, slots=True)
class Read:
    """Rows [first, end) of the map with number `map` that a step reads."""

    map: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class StepMap:
    """A map as steps make it: in each step `bytes` bytes, and `rows` rows of `row_bytes` in all of them.

    `reads` are what each step reads. One that reads `pieces` reads whole maps, as they lie. `workspace` are
    the bytes of the kernel's workspace, `macs` the multiply-accumulates of all steps.
    """

    tensor: int
    bytes: int
    rows: int
    row_bytes: int
    reads: tuple[tuple[Read, ...], ...]
    pieces: bool = False
    workspace: int = 0
    macs: int = 0

    @property
    def steps(self) -> int:
        return len(self.reads)


def maps_of(network: Network, name: str, maps: Sequence[RowMap], ids: Sequence[int]) -> tuple[StepMap, ...]:
    """Return the maps of group `name`, whose operators are `ids`. Raises `Broken`."""
    making = _Making(network, name, frozenset(ids))
    for number, one in enumerate(maps):
        making.add(number, one)
    stand = {op for one in maps for op in one.operators}
    for op in ids:
        if network.operators[op].name not in stand:
            broken("rows-complete", f"group {name} makes no row by {network.operators[op].name}")
    return tuple(making.found)


class _Making:
    def __init__(self, network: Network, name: str, inside: frozenset[int]) -> None:
        self.network, self.name, self.inside = network, name, inside
        self.found: list[StepMap] = []
        self.maps: list[RowMap] = []
        self.written = {t for op in inside for t in network.operators[op].outputs}

    def refuse(self, number: int, reason: str) -> None:
        broken("rows-maps", f"group {self.name}, map {number}: {reason}")

    def add(self, number: int, one: RowMap) -> None:
        """Add a map; refuse one whose rows its operators do not make from what it reads."""
        tensor = self.network.tensor_id.get(one.tensor)
        if tensor is None:
            broken("unknown-tensor", f"the network has no tensor {one.tensor}")
        if any(not 0 <= k < number for k in one.reads):
            self.refuse(number, "it reads maps before it, by their numbers")
        ops = [self.operator(number, op) for op in one.operators]
        made = self.made_by(number, one, tensor, ops)
        if len(one.addresses) != made.steps:
            self.refuse(number, f"it has {made.steps} steps and {len(one.addresses)} addresses")
        if made.workspace and len(one.workspace) not in (1, made.steps):
            self.refuse(number, f"it has {made.steps} steps and {len(one.workspace)} workspaces")
        self.found.append(made)
        self.maps.append(one)

    def operator(self, number: int, name: str) -> Operator:
        op = self.network.operator_id.get(name)
        if op is None or op not in self.inside:
            self.refuse(number, f"{name} is no operator of the group")
        assert op is not None
        return self.network.operators[op]

    def made_by(self, number: int, one: RowMap, tensor: int, ops: list[Operator]) -> StepMap:
        bytes_, rows = self.network.tensors[tensor].bytes, self.rows(number, tensor)
        each = bytes_ // rows
        if one.does == "fetch":
            if ops or one.reads or tensor in self.written:
                self.refuse(number, f"{one.tensor} is no input of the group that comes row by row")
            return StepMap(tensor, each, rows, each, ((),) * rows)
        if one.does == "gather":
            if ops or len(one.reads) != 1 or self.found[one.reads[0]].tensor != tensor:
                self.refuse(number, "it gathers the rows of one map of the same tensor")
            return StepMap(tensor, bytes_, rows, each, ((self.all_of(one.reads[0]),),))
        if not ops or list(ops[-1].outputs) != [tensor]:
            self.refuse(number, f"its operators do not end with the one that makes {one.tensor}")
        if one.does == "joined":
            self.prove_joined(number, one, ops)
            return StepMap(tensor, bytes_, rows, each, ())
        main = self.main(number, one, ops)
        work = sum(op.work for op in ops)
        space = max(op.workspace for op in ops)
        if one.does == "sums":
            below = self.pooled(number, one, ops)
            size = SUM_BYTES * bytes_
            steps = self.found[below].rows
            if self.found[below].tensor != ops[0].inputs[0]:
                self.refuse(number, "it adds up another map than its pool's input")
            reads = tuple(
                (Read(below, row, row + 1), *((Read(number, row - 1, row),) if row else ()))
                for row in range(steps)
            )
            return StepMap(tensor, size, steps, size, reads, workspace=space)
        if one.does == "end":
            sums = one.reads[0] if len(one.reads) == 1 else 0
            if (
                len(one.reads) != 1
                or self.maps[sums].does != "sums"
                or self.maps[sums].operators != (main.name,)
            ):
                self.refuse(number, f"it does not end the sums of {main.name}")
            last = self.found[sums].rows
            return StepMap(tensor, bytes_, rows, each, ((Read(sums, last - 1, last),),), False, space, work)
        outside = self.outside(number, one, ops, main)
        if one.does == "whole":
            reads = (tuple(self.all_of(k) for k in one.reads),)
            return StepMap(tensor, bytes_, rows, each, reads, True, space, work)
        found = tuple(
            tuple(
                Read(k, *window)
                for k, (op, index) in zip(one.reads, outside, strict=True)
                if (window := self.window(number, ops, op, index, row)) is not None
            )
            for row in range(rows)
        )
        return StepMap(tensor, each, rows, each, found, False, space, work)

    def rows(self, number: int, tensor: int) -> int:
        """Return the rows of a tensor: the second of its four dimensions."""
        shape, size = self.network.tensors[tensor].shape, self.network.tensors[tensor].bytes
        if len(shape) != 4 or shape[0] != 1 or shape[ROW] < 1 or size % shape[ROW] or size != prod(shape):
            self.refuse(
                number, f"{self.network.tensors[tensor].name} does not state 1 image of rows of bytes"
            )
        return shape[ROW]

    def all_of(self, k: int) -> Read:
        return Read(k, 0, self.found[k].rows)

    def main(self, number: int, one: RowMap, ops: list[Operator]) -> Operator:
        """Return the operator that reads: behind pads, in front of those that change its row in place."""
        at = 0
        while at < len(ops) - 1 and one.does == "rows" and _kind(ops[at]) == "pad":
            at += 1
        for before, after in pairwise(ops):
            if list(after.inputs) != list(before.outputs):
                self.refuse(number, f"{after.name} does not read what {before.name} makes, and nothing else")
        for op in ops[at + 1 :]:
            same = self.network.tensors[op.inputs[0]].bytes == self.network.tensors[op.outputs[0]].bytes
            if _kind(op) != "elementwise" or not same:
                self.refuse(number, f"{op.name} does not change a row element by element")
        return ops[at]

    def outside(self, number: int, one: RowMap, ops: list[Operator], main: Operator) -> list[tuple[int, int]]:
        """Return the operands from outside a step: the operator's place in it, the operand's number."""
        first = ops[0]
        if first is not main and len(first.inputs) != 1:
            self.refuse(number, f"{first.name} pads several operands")
        found = [(0, i) for i in range(len(first.inputs))]
        if len(found) != len(one.reads):
            self.refuse(number, f"{first.name} has {len(found)} operands, and it reads {len(one.reads)} maps")
        for t, k in zip(first.inputs, one.reads, strict=True):
            if self.found[k].tensor != t or self.maps[k].does in ("sums", "joined"):
                self.refuse(number, f"map {k} has no rows of {self.network.tensors[t].name}")
        return found

    def window(
        self, number: int, ops: list[Operator], at: int, index: int, row: int
    ) -> tuple[int, int] | None:
        """Return the rows of an operand that a row of the last operator needs; None for none."""
        first, end = row, row + 1
        for n in range(len(ops) - 1, at - 1, -1):
            side = self.side(number, ops[n], index if n == at else 0)
            first, end = _along(side, first, end)
            if first >= end:
                return None
        return first, end

    def side(self, number: int, op: Operator, index: int) -> Side:
        """Return what an operator's reach says of an operand's rows: all of them, where it says nothing."""
        reach, t = reach_for(self.network, op), op.inputs[index]
        size, rows = self.rows(number, t), self.rows(number, op.outputs[0])
        every = Side(size, span=size)
        if _kind(op) == "elementwise" and op.reach is None:
            shapes = [self.network.tensors[x].shape for x in (t, op.outputs[0])]
            if all(mine in (1, made) for mine, made in zip(*shapes, strict=True)):
                return Side(size, ROW) if size == rows else Side(1)
            return every
        if reach is None or len(reach.output) < 4 or reach.output[0] != 1 or reach.output[ROW] != rows:
            return every
        sides = reach.reads[index]
        if prod(side.size for side in sides) != self.network.tensors[t].bytes or len(sides) < 4:
            return every
        others = [side for i, side in enumerate(sides) if i != ROW and side.axis == ROW]
        if sides[0].size != 1 or sides[ROW].size != size or others or sides[ROW].axis not in (ROW, -1):
            return every
        return sides[ROW]

    def pooled(self, number: int, one: RowMap, ops: list[Operator]) -> int:
        """Return the map that a pool adds up row by row; refuse what is no pool over all rows."""
        [op] = ops if len(ops) == 1 else [ops[0]]
        if len(ops) != 1 or len(one.reads) != 1 or len(op.inputs) != 1 or _kind(op) != "pool":
            self.refuse(number, "it is not one pool over one map")
        rows = self.rows(number, op.inputs[0])
        if self.rows(number, op.outputs[0]) != 1 or _along(self.side(number, op, 0), 0, 1) != (0, rows):
            self.refuse(number, f"{op.name} does not add up all rows to one")
        return one.reads[0]

    def prove_joined(self, number: int, one: RowMap, ops: list[Operator]) -> None:
        """Refuse unless the bytes of a concat's output are those of its operands, one behind the other."""
        op = ops[0]
        reach = reach_for(self.network, op)
        if len(ops) != 1 or reach is None or len(one.reads) != len(op.inputs):
            self.refuse(number, "it is not one concat of the maps that it reads")
        assert reach is not None
        at = 0
        for k, t, sides in zip(one.reads, op.inputs, reach.reads, strict=True):
            if self.found[k].tensor != t or self.maps[k].does in ("sums", "joined", "fetch"):
                self.refuse(number, f"map {k} is no map of {self.network.tensors[t].name}")
            axis = next((i for i, n in enumerate(reach.output) if n > 1), 0)
            plain = len(sides) == len(reach.output) and all(
                side.axis in (i, -1) and side.stride == side.per == side.span == 1
                and (side.before == 0 and side.size == reach.output[i] if i != axis else True)
                for i, side in enumerate(sides)
            )  # fmt: skip
            behind = prod(reach.output[axis + 1 :])
            if not plain or sides[axis].before * behind != at:
                self.refuse(number, f"{op.name} does not put its operands behind one another")
            at += self.network.tensors[t].bytes
        if at != self.network.tensors[op.outputs[0]].bytes:
            self.refuse(number, f"{op.name} makes more than its operands")


def _kind(op: Operator) -> str:
    return "" if op.geometry is None else op.geometry.kind


def _along(side: Side, first: int, end: int) -> tuple[int, int]:
    """Return the indices [first, end) of a side that indices of the output's rows need."""
    if side.axis < 0:
        first, end = 0, 1
    low = (first * side.stride - side.before) // side.per
    high = ((end - 1) * side.stride - side.before) // side.per + side.span
    return max(low, 0), min(high, side.size)
