"""The maps of a group that runs by rows: how many rows each step makes, and which rows it reads.

Everything follows from the shapes of tensors and from what the operators' reaches say of rows; what the plan
adds is which operators run in one step, and of which maps they read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from onchip.check.rules import broken
from onchip.network import Network, Operator
from onchip.network.operators import Side
from onchip.network.reaches import reach_for
from onchip.plans import RowMap

__all__ = ["ColumnRun", "Read", "StepMap", "maps_of"]

SUM_BYTES = 4
"""The bytes of a sum of a pool that is not complete."""

ROW, COLUMN = 1, 2
"""The axes of rows and columns: shapes are images, rows, columns, channels."""


@dataclass(frozen=True, slots=True)
class Read:
    """Rows [first, end) of the map with number `map` that a step reads."""

    map: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class ColumnRun:
    """Columns [first, end) of a row, and the number of the map that they read of each operand."""

    first: int
    end: int
    reads: tuple[int, ...]


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
    columns: tuple[int, int] = (0, 0)
    part: bool = False
    runs: tuple[ColumnRun, ...] = ()

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
        columns = self.columns(number, one, tensor)
        every = self.network.tensors[tensor].shape[COLUMN]
        part = columns != (0, every)
        mine = each // every * (columns[1] - columns[0])
        if one.does == "fetch":
            if ops or one.reads or tensor in self.written:
                self.refuse(number, f"{one.tensor} is no input of the group that comes row by row")
            return StepMap(tensor, mine, rows, mine, ((),) * rows, columns=columns, part=part)
        if one.does != "rows" and any(self.found[k].part for k in one.reads):
            self.refuse(number, "it reads some columns of a map")
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
                for index, maps in enumerate(outside)
                if (window := self.window(number, ops, index, (row, row + 1), ROW)) is not None
                for k in maps
            )
            for row in range(rows)
        )
        runs = self.runs(number, ops, outside, columns, part)
        share = -(-work * (columns[1] - columns[0]) // every)
        return StepMap(tensor, mine, rows, mine, found, False, space, share, columns, part, runs)

    def columns(self, number: int, one: RowMap, tensor: int) -> tuple[int, int]:
        """Return the columns that a map has of its tensor."""
        every = self.network.tensors[tensor].shape[COLUMN]
        if not one.columns:
            return 0, every
        fits = len(one.columns) == 2 and 0 <= one.columns[0] < one.columns[1] <= every
        if not fits or one.does not in ("fetch", "rows"):
            self.refuse(number, f"it is no rows, or fetch, of columns of the {every} of {one.tensor}")
        return one.columns[0], one.columns[1]

    def runs(
        self,
        number: int,
        ops: list[Operator],
        outside: Sequence[tuple[int, ...]],
        columns: tuple[int, int],
        part: bool,
    ) -> tuple[ColumnRun, ...]:
        """Return which columns read which maps.

        Of each operand it is the first that has all of a column's window.
        """
        if not part and not any(self.found[k].part for maps in outside for k in maps):
            return ()
        found: list[ColumnRun] = []
        for x in range(*columns):
            taken = []
            for index, maps in enumerate(outside):
                window = self.window(number, ops, index, (x, x + 1), COLUMN)
                there = [
                    k
                    for k in maps
                    if window is None
                    or (self.found[k].columns[0] <= window[0] and window[1] <= self.found[k].columns[1])
                ]
                if not there:
                    self.refuse(
                        number, f"no map that it reads has all columns that its column {x} is made of"
                    )
                taken.append(there[0])
            if found and found[-1].reads == tuple(taken):
                found[-1] = replace(found[-1], end=x + 1)
            else:
                found.append(ColumnRun(x, x + 1, tuple(taken)))
        for k in {k for maps in outside for k in maps} - {k for run in found for k in run.reads}:
            self.refuse(number, f"it reads no column of map {k}")
        return tuple(found)

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

    def outside(
        self, number: int, one: RowMap, ops: list[Operator], main: Operator
    ) -> tuple[tuple[int, ...], ...]:
        """Return the maps that a step reads of each operand from outside: several where they are parts."""
        first = ops[0]
        if first is not main and len(first.inputs) != 1:
            self.refuse(number, f"{first.name} pads several operands")
        left, found = list(one.reads), []
        for t in first.inputs:
            mine: list[int] = []
            while left and self.found[left[0]].tensor == t and (not mine or self.found[left[0]].part):
                mine.append(left.pop(0))
            if not mine or any(self.maps[k].does in ("sums", "joined") for k in mine):
                self.refuse(
                    number, f"it reads no map with rows of {self.network.tensors[t].name} in its turn"
                )
            found.append(tuple(mine))
        if left:
            self.refuse(number, f"{first.name} does not read map {left[0]}, or not in its turn")
        return tuple(found)

    def window(
        self, number: int, ops: list[Operator], index: int, made: tuple[int, int], axis: int
    ) -> tuple[int, int] | None:
        """Return the rows, or columns, of an operand that those of the last operator need; None for none."""
        first, end = made
        for n in range(len(ops) - 1, -1, -1):
            side = self.side(number, ops[n], index if n == 0 else 0, axis)
            first, end = _along(side, first, end)
            if first >= end:
                return None
        return first, end

    def side(self, number: int, op: Operator, index: int, axis: int = ROW) -> Side:
        """Return what an operator's reach says of an operand's rows: all of them, where it says nothing."""
        reach, t = reach_for(self.network, op), op.inputs[index]
        self.rows(number, t), self.rows(number, op.outputs[0])
        size, made = (self.network.tensors[x].shape[axis] for x in (t, op.outputs[0]))
        every = Side(size, span=size)
        if _kind(op) == "elementwise" and op.reach is None:
            shapes = [self.network.tensors[x].shape for x in (t, op.outputs[0])]
            if all(mine in (1, there) for mine, there in zip(*shapes, strict=True)):
                return Side(size, axis) if size == made else Side(1)
            return every
        if reach is None or len(reach.output) < 4 or reach.output[0] != 1 or reach.output[axis] != made:
            return every
        sides = reach.reads[index]
        if prod(side.size for side in sides) != self.network.tensors[t].bytes or len(sides) < 4:
            return every
        others = [side for i, side in enumerate(sides) if i != axis and side.axis == axis]
        if sides[0].size != 1 or sides[axis].size != size or others or sides[axis].axis not in (axis, -1):
            return every
        return sides[axis]

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
