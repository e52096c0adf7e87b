"""The kernel of an attention whose keys come in parts: an on-line softmax.

A part of the sum over keys is kept as it is weighed with the highest score so far; beside it, for every row,
that score and the sum of weights. Two parts are brought to one highest score and added up. The result is the
complete sum over the sum of its weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_letters
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import InputError
from onchip.network import Operator
from onchip.network.axes import ALL, Cut
from onchip.run.tiled.nests.forms import Span
from onchip.run.tiled.nests.kernels import Read, Source

if TYPE_CHECKING:
    import onnx

    from onchip.run.onnx_engine import OnnxEngine

__all__ = ["OnlineKernel", "Weighed"]

Array = np.ndarray[Any, Any]

LOWEST = np.float32(-np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class Weighed:
    """A part of a sum, in the sides of the output; of every row the highest score and the sum of weights."""

    total: Array
    state: Array
    """[2, *rows]: the sides of the output but those that share it."""


class OnlineKernel:
    """Makes parts of an attention from boxes of its operands.

    Raises `InputError` for an operator that it cannot take apart.
    """

    approximate = True
    sums = True

    def __init__(self, engine: OnnxEngine, op: Operator, axes: Cut, sources: Sequence[Source]) -> None:
        self.op, self.axes = op, axes
        at = {source.name: i for i, source in enumerate(sources)}
        nodes, _ = engine.parts.between(at, [engine.executable.value[op.outputs[0]]], f"operator {op.name}")
        heads = [node for node in nodes if node.op_type == "Attention"]
        if len(heads) != 1:
            raise self.refuse("it is no attention in one piece")
        [node] = heads
        made = {result: other.input[0] for other in nodes for result in other.output if other is not node}
        operands = []
        for name in node.input[:4]:
            while name in made:
                name = made[name]
            if name and name not in at:
                raise self.refuse(f"{name} is none of its operands")
            operands.append(at[name] if name else None)
        query, key, value, *mask = operands
        if query is None or key is None or value is None:
            raise self.refuse("it has no queries, keys or values")
        self.query, self.key, self.value = query, key, value
        self.mask = mask[0] if mask else None
        self.scale = self._scale(node, engine.values[node.input[0]][1])
        self.rows = [a for a in axes.writes.axes if a not in axes.across]
        letters = iter(ascii_letters)
        self.letter = {axis: next(letters) for axis in range(len(axes.axes))}
        self.features = [next(letters) for axis in axes.uses[query].axes if axis == ALL]
        self.summed = "".join(self.letter[axis] for axis in axes.sums)
        self.row = "".join(self.letter[axis] for axis in self.rows)
        self.output = "".join(self.letter[axis] for axis in axes.writes.axes)

    def refuse(self, why: str) -> InputError:
        """Return the error that names the operator."""
        return InputError(f"cannot be run in tiles: {why}", item=f"operator {self.op.name}")

    def _scale(self, node: onnx.NodeProto, shape: Sequence[int]) -> np.float32:
        settings = {a.name: a for a in node.attribute}
        if "scale" in settings:
            return np.float32(settings["scale"].f)
        width = shape[-1] if len(shape) == 4 else shape[-1] // settings["q_num_heads"].i
        return np.float32(1 / math.sqrt(width))

    def _text(self, i: int) -> str:
        """Return the sides of an operand in letters; those that it is needed whole along are features."""
        features = iter(self.features)
        return "".join(next(features) if a == ALL else self.letter[a] for a in self.axes.uses[i].axes)

    def part(self, read: Read) -> Weighed:
        """Return what the keys of these boxes add."""
        scores_are = self.row + self.summed
        query, key, value = (read(i).astype(np.float32) for i in (self.query, self.key, self.value))
        text = f"{self._text(self.query)},{self._text(self.key)}->{scores_are}"
        scores = np.einsum(text, query, key, optimize=True) * self.scale
        if self.mask is not None:
            scores = self._masked(scores, read(self.mask), scores_are)
        along = tuple(range(len(self.row), scores.ndim))
        highest = np.maximum(scores.max(axis=along), LOWEST)
        weights = np.exp(scores - np.expand_dims(highest, along))
        total = np.einsum(
            f"{scores_are},{self._text(self.value)}->{self.output}", weights, value, optimize=True
        )
        return Weighed(total, np.stack([highest, weights.sum(axis=along)]))

    def _masked(self, scores: Array, mask: Array, scores_are: str) -> Array:
        """Add a mask; it is repeated along sides that it lacks."""
        sides = [
            (self.letter[a], n)
            for a, n in zip(self.axes.uses[self._mask].axes, mask.shape, strict=True)
            if n > 1
        ]
        order = sorted(range(len(sides)), key=lambda i: scores_are.index(sides[i][0]))
        thin = mask.reshape([n for _, n in sides]).transpose(order)
        shape = [1] * scores.ndim
        for letter, n in sides:
            shape[scores_are.index(letter)] = n
        thin = thin.reshape(shape)
        if thin.dtype == np.bool_:
            found: Array = np.where(thin, scores, -np.inf)
            return found
        return scores + thin.astype(np.float32)

    @property
    def _mask(self) -> int:
        assert self.mask is not None
        return self.mask

    def merged(self, one: Weighed, other: Weighed) -> Weighed:
        """Return two parts as one."""
        highest = np.maximum(one.state[0], other.state[0])
        shares = [np.exp(part.state[0] - highest) for part in (one, other)]
        total = sum(part.total * self._wide(share) for part, share in zip((one, other), shares, strict=True))
        weights = sum(part.state[1] * share for part, share in zip((one, other), shares, strict=True))
        return Weighed(np.asarray(total), np.stack([highest, np.asarray(weights)]))

    def finished(self, part: Weighed) -> Array:
        """Return the result of all keys."""
        found: Array = part.total / self._wide(part.state[1])
        return found

    def _wide(self, rows: Array) -> Array:
        """Return rows, repeated along the sides of the output that share them."""
        shared = tuple(i for i, axis in enumerate(self.axes.writes.axes) if axis in self.axes.across)
        return np.expand_dims(rows, shared)

    def box(self, spans: Sequence[Span]) -> list[Span]:
        """Return the rows of a box."""
        return [spans[axis] for axis in self.rows]
