"""Floats between bytes: what lies between a DEQUANTIZE and a QUANTIZE becomes a table of 256 bytes.

Converters leave operators that they have no integer form of in floats, in the middle of a network of bytes.
Where such a float depends on one byte alone, 256 results in single precision say all about it, as
interpreters compute them, and 65,536 where it depends on two, as a difference from a mean does; where
elements only move, bytes move instead. Results beyond the bytes' range, or
that are no number, have the nearest byte, or 0's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onchip.microcontroller.int8.move import MOVES
from onchip.readers.tflite_graph import Node, TensorRow, TfliteGraph
from onchip.readers.tflite_traits import SAME_BYTES

__all__ = ["ISLAND", "ISLAND_OF_TWO", "without_islands"]

ISLAND = "LOOKUP"
"""The operator that a table becomes: it reads a tensor of bytes and a constant of 256 of them."""
ISLAND_OF_TWO = "LOOKUP_TWO"
"""The same of two tensors, and a constant of a row of 256 for each byte of the first."""

FLOAT32, INT8 = 1, 3  # ONNX's element types
MOVED = {
    **{kind: at for kind, (at, _) in MOVES.items()},
    **dict.fromkeys((*SAME_BYTES, "TRANSPOSE", "RESIZE_NEAREST_NEIGHBOR"), 0),
}
"""Operators that only move elements, with the position of the operand that they move."""

Single = np.ndarray[Any, np.dtype[np.float32]]
Table = np.ndarray[Any, np.dtype[np.int8]]


@dataclass(frozen=True)
class _Traced:
    """A tensor of floats: what it holds for every byte of a tensor, whose elements operators move.

    With `other` it depends on a byte of that tensor, too, moved by nothing: `values` is [256, 256] then.
    """

    source: int
    moves: tuple[Node, ...]
    values: Single
    other: int = -1


def without_islands(graph: TfliteGraph) -> TfliteGraph:
    """Return the graph with floats between bytes as tables; those that are no function of a byte remain."""
    return _Islands(graph).graph()


class _Islands:
    def __init__(self, graph: TfliteGraph) -> None:
        self.old = graph
        self.tensors = list(graph.tensors)
        self.content = bytearray(graph.content)
        self.nodes: list[Node] = []
        self.traced: dict[int, _Traced] = {}
        self.moved: dict[tuple[int, tuple[int, ...]], int] = {}

    def graph(self) -> TfliteGraph:
        """Return the graph; the same object where it has no such floats."""
        count = len(self.tensors)
        for node in self.old.nodes:
            if any(not 0 <= t < count for t in (*node.inputs, *node.outputs) if t != -1):
                return self.old
        for node in self.old.nodes:
            self._take(node)
        if len(self.tensors) == count:
            return self.old
        return replace(
            self.old,
            content=bytes(self.content),
            tensors=tuple(self.tensors),
            nodes=tuple(self._needed()),
        )

    def _take(self, node: Node) -> None:
        first = node.inputs[0] if node.inputs else -1
        if node.type == "QUANTIZE" and len(node.outputs) == 1 and (traced := self.traced.get(first)):
            table = self._table(self.tensors[node.outputs[0]], traced)
            if table is not None:
                self._look_up(node, traced, table)
                return
        self.nodes.append(node)
        if len(node.outputs) == 1 and self.tensors[node.outputs[0]].element == FLOAT32:
            with np.errstate(all="ignore"):
                found = self._traced(node)
            if found is not None:
                self.traced[node.outputs[0]] = found

    def _traced(self, node: Node) -> _Traced | None:
        """Return what an operator on floats makes of a byte; None where that is no function of one."""
        if node.type == "DEQUANTIZE" and len(node.inputs) == 1:
            return self._begun(self.tensors[node.inputs[0]])
        if node.type in MOVED:
            at = MOVED[node.type]
            value = self.traced.get(node.inputs[at]) if at < len(node.inputs) else None
            return None if value is None or value.other >= 0 else replace(value, moves=(*value.moves, node))
        given = [self.traced.get(t) for t in node.inputs]
        if node.type in _ONE and len(given) == 1 and given[0] is not None:
            return replace(given[0], values=_single(_ONE[node.type](given[0].values, node)))
        return self._of_two(node, given)

    def _of_two(self, node: Node, given: list[_Traced | None]) -> _Traced | None:
        value = next((one for one in given if one is not None), None)
        if node.type not in _TWO or len(given) != 2 or value is None:
            return None
        sources = dict.fromkeys(
            t for one in given if one is not None for t in (one.source, one.other) if t >= 0
        )
        if len(sources) > 2 or any(one is not None and one.moves != value.moves for one in given):
            return None
        if len(sources) == 2 and value.moves:
            return None
        axes = [*sources]
        sides = [
            self._constant(t) if one is None else _along(one, axes)
            for t, one in zip(node.inputs, given, strict=True)
        ]
        if sides[0] is None or sides[1] is None:
            return None
        made = _single(_TWO[node.type](sides[0], sides[1]))
        number = node.options.get("FusedActivationFunction", 0)
        if number not in _FUSED:
            return None
        held = _Traced(axes[0], value.moves, np.clip(made, *_FUSED[number]))
        return held if len(axes) == 1 else replace(held, other=axes[1])

    def _begun(self, row: TensorRow) -> _Traced | None:
        found = row.quantisation
        if row.element != INT8 or found is None or len(found.scales) != 1 or len(found.zero_points) != 1:
            return None
        every = np.arange(-128, 128) - found.zero_points[0]
        return _Traced(row.index, (), np.float32(found.scales[0]) * every.astype(np.float32))

    def _constant(self, t: int) -> Single | None:
        """Return a constant of one number, or of one number everywhere."""
        row = self.tensors[t] if t >= 0 else None
        if row is None or row.element != FLOAT32 or row.data is None:
            return None
        start, end = row.data
        values = np.frombuffer(self.old.content[start : end - (end - start) % 4], "<f4")
        return values[:1] if values.size and (values == values[0]).all() else None

    def _table(self, row: TensorRow, traced: _Traced) -> Table | None:
        """Return the byte of every byte on the output's scale; None where that is no scale of bytes."""
        found = row.quantisation
        if row.element != INT8 or found is None or len(found.scales) != 1 or len(found.zero_points) != 1:
            return None
        with np.errstate(all="ignore"):
            scaled = _single(traced.values / np.float32(found.scales[0])).astype(np.float64)
        held = np.clip(np.nan_to_num(scaled, posinf=1e9, neginf=-1e9), -1e9, 1e9)
        rounded = np.copysign(np.floor(np.abs(held) + 0.5), held)
        table: Table = np.clip(rounded + found.zero_points[0], -128, 127).astype(np.int8)
        return table

    def _look_up(self, node: Node, traced: _Traced, table: Table) -> None:
        """Add the table as an operator, behind those that move its bytes."""
        source = traced.source
        for n, move in enumerate(traced.moves):
            key = traced.source, tuple(one.index for one in traced.moves[: n + 1])
            if key not in self.moved:
                made, old = self.tensors[move.outputs[0]], self.tensors[source]
                self.moved[key] = self._row(
                    f"{made.name}_bytes",
                    made.shape,
                    replace(old, data=None),
                )
                at = MOVED[move.type]
                inputs = tuple(source if i == at else t for i, t in enumerate(move.inputs))
                self.nodes.append(replace(move, inputs=inputs, outputs=(self.moved[key],)))
            source = self.moved[key]
        start = len(self.content)
        self.content += table.tobytes()
        like = replace(self.tensors[source], data=(start, len(self.content)))
        constant = self._row(f"{node.label}_table", table.shape, like)
        if traced.other >= 0:
            self.nodes.append(replace(node, type=ISLAND_OF_TWO, inputs=(source, traced.other, constant)))
            return
        self.nodes.append(replace(node, type=ISLAND, inputs=(source, constant)))

    def _row(self, name: str, shape: tuple[int, ...], like: TensorRow) -> int:
        index = len(self.tensors)
        self.tensors.append(replace(like, index=index, name=name, shape=shape, variable=False))
        return index

    def _needed(self) -> list[Node]:
        """Return the operators without those on floats that nothing reads any more."""
        needed, kept = set(self.old.outputs), []
        for node in reversed(self.nodes):
            if needed.isdisjoint(node.outputs) and any(t in self.traced for t in node.outputs):
                continue
            needed.update(node.inputs)
            kept.append(node)
        return kept[::-1]


def _along(traced: _Traced, axes: list[int]) -> Single:
    """Return the values along one axis for each tensor that they and others depend on."""
    if len(axes) == 1 or traced.other >= 0:
        swapped = traced.other >= 0 and traced.source != axes[0]
        return traced.values.T if swapped else traced.values
    return traced.values[:, None] if traced.source == axes[0] else traced.values[None, :]


def _single(values: Any) -> Single:
    found: Single = np.asarray(values).astype(np.float32)
    return found


def _wide(function: Callable[[Any], Any]) -> Callable[[Single, Node], Any]:
    """Return a function of floats that is computed in double precision and rounded once."""
    return lambda x, _: function(x.astype(np.float64))


def _logistic(x: Single, _: Node) -> Any:
    """Return shares as the interpreters' reference kernels do, which end at 16.6 and at -9."""
    wide = x.astype(np.float64)
    power = np.exp(-np.abs(wide))
    inside = np.where(wide >= 0, 1 / (1 + power), power / (1 + power))
    return np.where(x > 16.619047164916992, 1.0, np.where(x < -9, np.exp(wide), inside))


_ONE: Mapping[str, Callable[[Single, Node], Any]] = {
    "ABS": lambda x, _: np.abs(x),
    "CEIL": lambda x, _: np.ceil(x),
    "COS": _wide(np.cos),
    "ELU": _wide(lambda x: np.where(x < 0, np.expm1(x), x)),
    "EXP": _wide(np.exp),
    "FLOOR": lambda x, _: np.floor(x),
    "HARD_SWISH": lambda x, _: x * np.clip(x + np.float32(3), 0, 6) / np.float32(6),
    "LEAKY_RELU": lambda x, node: np.where(x > 0, x, x * np.float32(node.reals.get("Alpha", 0.0))),
    "LOG": _wide(np.log),
    "LOGISTIC": _logistic,
    "NEG": lambda x, _: -x,
    "RELU": lambda x, _: np.maximum(x, 0),
    "RELU6": lambda x, _: np.clip(x, 0, 6),
    "RELU_N1_TO_1": lambda x, _: np.clip(x, -1, 1),
    "ROUND": lambda x, _: np.round(x),
    "RSQRT": lambda x, _: np.float32(1) / np.sqrt(x),
    "SIN": _wide(np.sin),
    "SQRT": lambda x, _: np.sqrt(x),
    "SQUARE": lambda x, _: x * x,
    "TANH": _wide(np.tanh),
}
"""The functions of one float, by operator."""

_TWO: Mapping[str, Callable[[Single, Single], Any]] = {
    "ADD": lambda x, y: x + y,
    "DIV": lambda x, y: x / y,
    "MAXIMUM": np.maximum,
    "MINIMUM": np.minimum,
    "MUL": lambda x, y: x * y,
    "SQUARED_DIFFERENCE": lambda x, y: (x - y) * (x - y),
    "SUB": lambda x, y: x - y,
}
"""The same of two, of which one may be a constant."""

_FUSED: Mapping[int, tuple[float, float]] = {
    0: (-np.inf, np.inf),
    1: (0.0, np.inf),
    2: (-1.0, 1.0),
    3: (0.0, 6.0),
}
"""The bounds of the activation that an operator has inside it, by its number in the file."""
