"""The kernel for any other operator: its nodes as they are, on operands that are poison outside a box."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import InputError, Mismatch
from onchip.network import Operator
from onchip.network.axes import Buffer, Cut
from onchip.run.poison import poison_of
from onchip.run.sessions import following
from onchip.run.tiled.nests.exact import InParts
from onchip.run.tiled.nests.forms import Span, box_of
from onchip.run.tiled.nests.kernels import Read, Source, element_of, run_session
from onchip.run.tiled.nests.node_rules import SUMS

if TYPE_CHECKING:
    from onchip.run.onnx_engine import OnnxEngine

__all__ = ["WholeKernel"]

Array = np.ndarray[Any, Any]


class WholeKernel:
    """Runs all of an operator for every box; what is not in the box of an operand is poison.

    Raises `InParts` for an operator whose sum is cut and cannot be taken apart.
    """

    def __init__(
        self,
        engine: OnnxEngine,
        op: Operator,
        axes: Cut,
        output: Buffer,
        cut: Collection[int],
        sources: Sequence[Source],
    ) -> None:
        self.op, self.engine, self.axes, self.output, self.sources = op, engine, axes, output, sources
        self.cut = cut
        beneath = self._beneath()
        self.given = {s.name: i for i, s in enumerate(sources) if s.filled and s.name not in beneath}
        self.summed = frozenset(axis for axis in axes.sums if axis in cut)
        self.sums = bool(self.summed)
        self.wanted = self.head = engine.executable.value[op.outputs[0]]
        self.bias = ""
        self.fixed: Array | None = None
        """The addend of the complete sum; its value, if no use of the operator has it."""
        nodes, _ = engine.parts.between(self.given, [self.wanted], f"operator {op.name}")
        # A norm of a part may add up in another order.
        self.approximate = self.sums or any("Norm" in node.op_type for node in nodes)
        if self.sums:
            operands = [engine.executable.value[t] for t in op.inputs]
            heads = [node for node in following(nodes, operands) if node.op_type in SUMS]
            if len(heads) != 1:
                raise InParts("its sum cannot be taken apart")
            self.head = heads[0].output[0]
            self.bias = heads[0].input[2] if len(heads[0].input) > 2 else ""
            known = engine.parts.constants
            if self.bias and self.bias not in self.given and self.bias not in known:
                raise InParts("what it adds to its sum is not among its weights")
            if self.bias and self.bias not in self.given:
                self.fixed = known[self.bias]
        self.poison = poison_of(nodes, np.dtype(np.float32))
        apart = [] if self.fixed is None else [self.bias]
        self.parts = self._session([*self.given, *apart], self.head)
        self.tail = None
        if self.head != self.wanted:
            self.tail = self._session([*self.given, self.head], self.wanted)

    def _beneath(self) -> set[str]:
        """Return the weights of which other weights are computed: these need all of them, box or not."""
        parts, found = self.engine.parts, set[str]()
        for source in self.sources:
            if not source.filled and source.name in self.engine.values:
                found.update(parts.between((), [source.name], f"operator {self.op.name}")[1])
        return found

    def refuse(self, why: str) -> InputError:
        """Return the error that names the operator."""
        return InputError(f"cannot be run in tiles: {why}", item=f"operator {self.op.name}")

    def _session(self, names: Sequence[str], wanted: str) -> tuple[Any, list[str]]:
        parts, values = self.engine.parts, self.engine.values
        nodes, constants = parts.between(names, [wanted], f"operator {self.op.name}")
        used = [name for name in names if any(name in node.input for node in nodes)]
        inputs: dict[str, tuple[int, Sequence[int]]] = {}
        for name in used:  # with shapes, as that of a bias has to be known to onnxruntime
            if name in values and values[name][0]:
                inputs[name] = values[name]
            else:
                inputs[name] = (element_of(parts.constants[name].dtype), parts.constants[name].shape)
        rest = {name: parts.constants[name] for name in constants if name not in inputs}
        try:
            return parts.session(nodes, inputs, {wanted: values[wanted][0]}, rest), used
        except Exception as problem:  # onnxruntime's errors have no common class
            raise self.refuse(f"onnxruntime says {(str(problem).splitlines() or ['?'])[0]}") from None

    def _operand(self, name: str, read: Read, spans: Sequence[Span], *, absent: bool) -> Array:
        """Return all of an operand: the box, 0 beside it along cut sums, poison everywhere else."""
        if name not in self.given:
            assert self.fixed is not None
            return np.zeros_like(self.fixed) if absent else self.fixed
        i = self.given[name]
        source = self.sources[i]
        box, buffer = read(i), source.buffer
        kind = box.dtype
        whole = np.full(buffer.whole, self._other(kind), kind)
        places = [
            slice(first + low, first + high)
            for first, (low, high) in zip(
                buffer.first, box_of(source.use, buffer.sides, spans, self.cut), strict=True
            )
        ]
        slides = source.use.slides or (None,) * len(source.use.axes)
        summed = [
            axis in self.summed or (window is not None and window.axis in self.summed)
            for axis, window in zip(source.use.axes, slides, strict=True)
        ]
        if any(summed) or absent:
            whole[tuple(slice(None) if s else place for place, s in zip(places, summed, strict=True))] = 0
        if not absent:
            whole[tuple(places)] = box
        return whole.reshape(source.shape)

    def _other(self, kind: np.dtype[Any]) -> float:
        """Return what lies outside a box: wide whole numbers are indices there, which must name something."""
        if kind.kind == "f":
            return self.poison
        return 0 if kind.itemsize > 1 else poison_of((), kind)

    def _box(self, result: Array, spans: Sequence[Span]) -> Array:
        if result.size != prod(self.output.sides):
            raise Mismatch(
                f"operator {self.op.name} makes {result.size:,} elements: its reach contradicts the model"
            )
        return result.reshape(self.output.sides)[self._places(spans)]

    def _places(self, spans: Sequence[Span]) -> tuple[slice, ...]:
        return tuple(slice(*place) for place in box_of(self.axes.writes, self.output.sides, spans, ()))

    def part(self, read: Read, spans: Sequence[Span], *, first: bool) -> Array:
        """Return the box of the result, or of a part of its sum."""
        session, names = self.parts
        feeds = {
            name: self._operand(name, read, spans, absent=self.sums and name == self.bias and not first)
            for name in names
        }
        return self._box(run_session(self.op, session, self.head, feeds), spans)

    def finish(self, total: Array, read: Read, spans: Sequence[Span]) -> Array:
        """Return the box of the result, from its complete sum."""
        if self.tail is None:
            return total
        session, names = self.tail
        summed = np.full(self.output.sides, np.nan, total.dtype)
        summed[self._places(spans)] = total
        feeds = {name: self._operand(name, read, spans, absent=False) for name in names if name != self.head}
        feeds[self.head] = summed.reshape(self.engine.values[self.head][1])
        return self._box(run_session(self.op, session, self.wanted, feeds), spans)
