"""A single operator executed in boxes of its output, in any number of dimensions.

The scratch holds the part of every operand and constant that a box needs; the operator's own nodes then run
on operands whose other elements are all not-a-number (or, of whole numbers, all alike), and the box of their
result counts. A box with too few elements therefore contains not-a-number, and one with enough is bit for bit
the operator's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import InputError, Mismatch
from onchip.network import Operator, Reach, Side
from onchip.plans import Boxes, Group
from onchip.run.arena import Claim
from onchip.run.sessions import following
from onchip.run.state import State
from onchip.run.tiled.buffers import SliceBuffer
from onchip.run.tiled.group import Executed
from onchip.run.tiled.passes import IllegalTiling
from onchip.run.tiled.poison import poison_of

if TYPE_CHECKING:
    import onnx

    from onchip.run.onnx_engine import OnnxEngine

__all__ = ["run_in_boxes"]

Array = np.ndarray[Any, Any]
Span = tuple[int, int]

_POISONED = (np.float32, np.float64, np.int8, np.uint8)
"""The elements of constants of which a box has only its part."""

_SUMMING = frozenset({"Conv", "Einsum", "FusedMatMul", "Gemm", "MatMul"})
"""The nodes whose results are sums over an axis that a reach may have."""


def run_in_boxes(
    state: State, engine: OnnxEngine, group: Group, boxes: Boxes, operators: Sequence[Operator]
) -> Executed:
    """Run a group of one operator box by box. Raises `IllegalTiling` where that cannot be done."""
    [op] = operators if len(operators) == 1 else [None]
    if op is None or op.reach is None or group.resident_weights or len(op.outputs) != 1:
        raise IllegalTiling("tiling-blocks", "it is not one operator with a reach and one output")
    axes = range(len(op.reach.extents))
    if len(boxes.sizes) != len(axes) or min(boxes.sizes) < 1 or sorted(boxes.order) != list(axes):
        raise IllegalTiling("tiling-sizes", f"boxes of {' x '.join(map(str, boxes.sizes))}")
    return _Run(state, engine, group, boxes, op, op.reach).all()


class _Operand:
    """An operand or constant: its elements in their sides, and the buffer for a box of them; `other` is the
    poison of whole numbers."""

    def __init__(self, name: str, sides: Sequence[Side], elements: Array, width: int, other: float) -> None:
        self.name, self.sides, self.width, self.other = name, sides, width, other
        self.shape, self.elements = elements.shape, elements.reshape([side.size for side in sides])
        self.buffer: SliceBuffer | None = None
        self.region: tuple[Span, ...] | None = None
        self.key: tuple[int, ...] | None = None
        self.moved = 0
        self.kept: Array | None = None
        """All that came for the sums of one box, where integers are made of them at once."""

    def keep(self, poison: float, first: bool) -> None:
        """Keep what is in the scratch until the sums of a box are complete; `first` forgets what was kept."""
        kind = self.elements.dtype
        if first or self.kept is None:
            self.kept = np.full(self.elements.shape, poison if kind.kind == "f" else self.other, kind)
        assert self.region is not None
        if self.buffer is not None:
            assert self.buffer.data is not None
            self.kept[tuple(slice(*span) for span in self.region)] = self.buffer.data

    def needs(self, spans: Sequence[Span]) -> tuple[Span, ...]:
        """Return the ranges of its sides that a box of the output needs."""
        return tuple(_part(side, *((0, 1) if side.axis < 0 else spans[side.axis])) for side in self.sides)

    def bring(self, at: Sequence[int], spans: Sequence[Span]) -> None:
        """Fetch the part that the box at those indices needs, unless it came for the box before."""
        key = tuple(at[side.axis] for side in self.sides if side.axis >= 0)
        if key == self.key:
            return
        self.key, self.region = key, self.needs(spans)
        part = self.elements[tuple(slice(*span) for span in self.region)]
        self.moved += part.size * self.width
        if self.buffer is not None:
            self.buffer.put((0, 1), (0, 1), part)

    def poisoned(self, poison: float, outer: int, *, absent: bool = False) -> Array:
        """Return the whole value: the elements in the scratch, and poison everywhere else.

        Sides along axes from `outer` on are summed over: absent elements there are 0, not poison. So are all
        its elements where it is `absent` from the sum.
        """
        kind = self.elements.dtype
        whole = np.full(self.elements.shape, poison if kind.kind == "f" else self.other, kind)
        assert self.region is not None
        sums = [side.axis >= outer for side in self.sides]
        if any(sums) or absent:
            spans = zip(self.region, sums, strict=True)
            whole[tuple(slice(None) if summed else slice(*span) for span, summed in spans)] = 0
        if absent:
            return whole.reshape(self.shape)
        if self.buffer is not None:
            assert self.buffer.data is not None
            whole[tuple(slice(*span) for span in self.region)] = self.buffer.data
        return whole.reshape(self.shape)


class _Run:
    def __init__(
        self, state: State, engine: OnnxEngine, group: Group, boxes: Boxes, op: Operator, reach: Reach
    ) -> None:
        self.state, self.engine, self.boxes, self.op, self.reach = state, engine, boxes, op, reach
        [self.target] = op.outputs
        self.cuts = [list(_cut(n, box)) for n, box in zip(reach.extents, boxes.sizes, strict=True)]
        self.subgroups = prod(map(len, self.cuts))
        if self.subgroups != group.subgroups:
            raise IllegalTiling(
                "tiling-subgroups",
                f"it states {group.subgroups:,} sub-groups, and its boxes are {self.subgroups:,}",
            )
        values = engine.executable.value
        self.nodes, _ = engine.parts.between(
            [values[t] for t in op.inputs], [values[self.target]], f"operator {op.name}"
        )
        self.reads = [self._operand(t, sides) for t, sides in zip(op.inputs, reach.reads, strict=True)]
        constants = engine.parts.constants
        self.weights: list[_Operand] = []
        for c in reach.weights:
            count = prod(side.size for side in c.sides)
            value = constants.get(c.name)
            # An operand that does not fill its sides, or is no constant by that name, is counted only.
            if value is None or value.size != count:
                value = np.zeros(count, np.float32)
            other = poison_of(self.nodes, value.dtype)
            self.weights.append(_Operand(c.name, c.sides, value, c.bytes // count, other))
        self._lay_out(group)
        self._prepare()

    def _operand(self, t: int, sides: Sequence[Side]) -> _Operand:
        state = self.state
        root = state.network.root[t]
        dtype = state.slots.dtype[t]
        if dtype == np.float16 or dtype.kind not in "fiub":
            raise InputError(
                f"cannot be run in tiles: its elements are {dtype}", item=f"tensor {state.name(t)}"
            )
        value = state.value(t, state.dram[root])
        count = prod(side.size for side in sides)
        if value.size != count:
            raise InputError(
                "cannot be run in tiles: the reach has other sides", item=f"tensor {state.name(t)}"
            )
        width = state.network.tensors[t].bytes // count
        return _Operand(state.name(t), sides, value, width, poison_of(self.nodes, dtype))

    def _lay_out(self, group: Group) -> None:
        state = self.state
        start, end = state.scratch.get(group.name, (0, 0))
        scale, round_up = state.slots.scale, state.plan.chip.round_up
        made = state.network.tensors[self.target].bytes // prod(self.reach.output)
        block = prod(min(box, n) for box, n in zip(self.boxes.sizes, self.reach.output, strict=False))
        most = [self._most(part) for part in (*self.reads, *self.weights)]
        weights = sum(n * part.width for n, part in zip(most[len(self.reads) :], self.weights, strict=True))
        reads = [n * part.width for n, part in zip(most, self.reads, strict=False)]
        need = sum(map(round_up, (*reads, block * made, weights)))
        if need * scale > end - start:
            raise IllegalTiling(
                "group-scratch",
                f"its boxes take {need:,} bytes, and its scratch has {(end - start) // scale:,}",
            )
        at = start
        for part, size, count in zip(self.reads, reads, most, strict=False):
            part.buffer = self._buffer(group, f"tensor {part.name}", at, size, part.elements.dtype, count)
            at += round_up(size) * scale
        dtype = state.slots.dtype[self.target]
        owner = f"tensor {state.name(self.target)}"
        self.block = self._buffer(group, owner, at, block * made, np.dtype(dtype), block)
        at += round_up(block * made) * scale
        for part, count in zip(self.weights, most[len(self.reads) :], strict=True):
            size = count * part.width
            if size * scale >= count * part.elements.itemsize:
                part.buffer = self._buffer(
                    group, f"weights {part.name}", at, size, part.elements.dtype, count
                )
                at += size * scale

    def _buffer(
        self, group: Group, owner: str, at: int, size: int, dtype: np.dtype[Any], count: int
    ) -> SliceBuffer:
        state = self.state
        claim = Claim(f"{owner} in the scratch of {group.name}", state.index)
        return SliceBuffer(state.arena, at, at + size * state.slots.scale, dtype, count, claim)

    def _most(self, part: _Operand) -> int:
        """Return the most elements that a box needs of an operand."""
        return prod(
            max(b - a for a, b in (_part(side, *cut) for cut in self._along(side))) for side in part.sides
        )

    def _along(self, side: Side) -> Sequence[Span]:
        return [(0, 1)] if side.axis < 0 else self.cuts[side.axis]

    def _prepare(self) -> None:
        """Prepare the inputs of the operator's nodes: operands, and the weights that lie in the scratch."""
        engine, op = self.engine, self.op
        value, known = engine.executable.value, engine.parts.constants
        self.given = {value[t]: part for t, part in zip(op.inputs, self.reads, strict=True)}
        for part in self.weights:
            poisonable = part.name in known and known[part.name].dtype in _POISONED
            if poisonable and part.buffer is not None and part.elements.size == known[part.name].size:
                self.given[part.name] = part
        self.outer = len(self.reach.output)
        self.wanted = self.head = value[self.target]
        self.bias, self.waits = "", False
        nodes, _ = engine.parts.between(self.given, [self.wanted], f"operator {op.name}")
        if any(len(cuts) > 1 for cuts in self.cuts[self.outer :]):
            self._sum(nodes)
        self.poison = poison_of(nodes, np.dtype(np.float32))
        self.part = self._session(list(self.given), self.head)
        self.tail = None if self.head == self.wanted else self._session([*self.given, self.head], self.wanted)

    def _sum(self, nodes: Sequence[onnx.NodeProto]) -> None:
        """Find the node that sums, and the bias that it adds."""
        operands = [self.engine.executable.value[t] for t in self.op.inputs]
        heads = [node for node in following(nodes, operands) if node.op_type in _SUMMING]
        cut = any(side.axis >= self.outer for part in self.given.values() for side in part.sides)
        if len(heads) != 1 or not cut:
            raise self.refuse("its sum cannot be taken apart")
        if self.state.slots.dtype[self.target].kind != "f":
            self.waits = True  # chips have wide accumulators; here the operands wait beside the scratch
            return
        self.head = heads[0].output[0]
        self.bias = heads[0].input[2] if len(heads[0].input) > 2 and heads[0].op_type != "Einsum" else ""
        if self.bias and self.bias not in self.given:
            raise self.refuse("what it adds to its sum is not among its weights")

    def _session(self, names: Sequence[str], wanted: str) -> tuple[Any, list[str]]:
        """Return the session that makes a value from others, and the names of the others that it reads."""
        engine = self.engine
        types, known = engine.values, engine.parts.constants
        nodes, constants = engine.parts.between(names, [wanted], f"operator {self.op.name}")
        read = {name for node in nodes for name in node.input}
        used = [name for name in names if name in read]
        shapes = {name: (_element(part.elements.dtype), len(part.shape)) for name, part in self.given.items()}
        shapes[self.head] = (types[self.head][0], len(types[self.head][1]))
        inputs = {name: shapes[name] for name in used}
        rest = {name: known[name] for name in constants if name not in inputs}
        return engine.parts.session(nodes, inputs, {wanted: types[wanted][0]}, rest), used

    def all(self) -> Executed:
        state, order = self.state, self.boxes.order
        made = state.slots.dtype[self.target]
        whole = np.full(self.reach.output, poison_of((), made), made)
        crossed = 0
        width = state.network.tensors[self.target].bytes // whole.size
        for turn in product(*(range(len(self.cuts[axis])) for axis in order)):
            at = [0] * len(order)
            for axis, index in zip(order, turn, strict=True):
                at[axis] = index
            spans = [cut[i] for cut, i in zip(self.cuts, at, strict=True)]
            for part in (*self.reads, *self.weights):
                part.bring(at, spans)
            first = not any(at[self.outer :])
            if self.waits:
                for part in self.given.values():
                    part.keep(self.poison, first)
            if self.waits and any(at[axis] + 1 < len(self.cuts[axis]) for axis in range(self.outer, len(at))):
                continue
            self.block.put((0, 1), (0, 1), self.add(spans[: self.outer], first))
            if any(at[axis] + 1 < len(self.cuts[axis]) for axis in range(self.outer, len(at))):
                continue
            self.block.put((0, 1), (0, 1), self.finished(spans[: self.outer]))
            whole[tuple(slice(*span) for span in spans[: self.outer])] = self.there()
            crossed += self.there().size * width
        value = whole.reshape(state.slots.shape[self.target])
        state.comparison.follow(self.op.inputs, self.op.outputs)
        if any(len(cuts) > 1 for cuts in self.cuts[self.outer :]) and not self.waits:  # in another order
            state.comparison.make_approximate(self.target)
        state.comparison.same(self.target, value, f"written by {self.op.name} ({state.where()})")
        return Executed(
            self.subgroups,
            self._crossed() | {self.target: crossed},
            sum(part.moved for part in self.weights),
            whole.size,
            0,
            {self.target: value},
        )

    def there(self) -> Array:
        """Return the box of the output in the scratch."""
        assert self.block.data is not None
        return self.block.data

    def _crossed(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for t, part in zip(self.op.inputs, self.reads, strict=True):
            root = self.state.network.root[t]
            found[root] = found.get(root, 0) + part.moved
        return found

    def add(self, spans: Sequence[Span], first: bool) -> Array:
        """Return a box of the nodes' result on the scratch's content, added to the earlier sum."""
        if self.waits:
            kept = {name: part.kept for name, part in self.given.items() if part.kept is not None}
            whole = {name: value.reshape(self.given[name].shape) for name, value in kept.items()}
            return self.box(self.part, self.head, whole, spans)
        feeds = {
            name: part.poisoned(self.poison, self.outer, absent=name == self.bias and not first)
            for name, part in self.given.items()
        }
        box = self.box(self.part, self.head, feeds, spans)
        return box if first else self.there() + box

    def finished(self, spans: Sequence[Span]) -> Array:
        """Return the box once its sums are complete."""
        if self.tail is None:
            return self.there().copy()
        summed = np.full(self.reach.output, np.nan, self.there().dtype)
        summed[tuple(slice(*span) for span in spans)] = self.there()
        feeds = {name: part.poisoned(self.poison, self.outer) for name, part in self.given.items()}
        feeds[self.head] = summed.reshape(self.engine.values[self.head][1])
        return self.box(self.tail, self.wanted, feeds, spans)

    def box(
        self,
        session: tuple[Any, list[str]],
        wanted: str,
        feeds: Mapping[str, Array],
        spans: Sequence[Span],
    ) -> Array:
        """Return a box of a value that nodes make."""
        run, names = session
        try:
            [result] = run.run([wanted], {name: feeds[name] for name in names})
        except Exception as problem:  # onnxruntime's errors have no common class
            line = (str(problem).strip().splitlines() or ["?"])[0]
            raise self.refuse(f"onnxruntime says {line}") from None
        if result.size != prod(self.reach.output):
            raise Mismatch(
                f"operator {self.op.name} makes {result.size:,} elements: its reach contradicts the model"
            )
        box: Array = result.reshape(self.reach.output)[tuple(slice(*span) for span in spans)]
        return box

    def refuse(self, why: str) -> InputError:
        return InputError(f"cannot be run in tiles: {why}", item=f"operator {self.op.name}")


def _part(side: Side, first: int, end: int) -> Span:
    """Return the range of a side that the output's indices [first, end) need."""
    low = (first * side.stride - side.before) // side.per
    high = ((end - 1) * side.stride - side.before) // side.per + side.span
    low = min(max(low, 0), side.size)
    return low, max(low, min(max(high, 0), side.size))


def _cut(size: int, step: int) -> Iterator[Span]:
    return ((first, min(first + step, size)) for first in range(0, size, step))


def _element(dtype: np.dtype[Any]) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(dtype))
