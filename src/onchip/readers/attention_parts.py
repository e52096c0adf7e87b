"""`--attention parts`: every ONNX `Attention` node as its products, mask and softmax.

An `Attention` that outputs its scores or keeps a cache stays whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.allowance import spend
from onchip.base.errors import ModelError
from onchip.readers.batch import at_one_image
from onchip.readers.onnx_bounds import check_counts
from onchip.readers.onnx_graph import parse
from onchip.readers.shapes import infer, parse_dims
from onchip.readers.source import ReadOptions

if TYPE_CHECKING:
    import onnx

__all__ = ["with_attention_parts"]

_FLOATS = (1, 10, 11, 16)
"""ONNX's float, float16, double and bfloat16."""

_MOST_SCORES = 1 << 28
"""The most scores of one head; more is a mistake."""


def with_attention_parts(
    content: bytes, options: ReadOptions, *, where: str, folder: Path | None, resize: tuple[int, int] | None
) -> bytes:
    """Return an ONNX file's bytes with its attentions taken apart; the other arguments are `read_onnx`'s.

    Raises `ModelError` naming the node whose sizes are not known, and for files that `parse` and `infer`
    refuse; a file that is no ONNX model is returned unchanged, for the reader to refuse.
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, ValueError, RecursionError):
        return content
    check_counts(model, where)
    if not any(_can_part(node) for node in model.graph.node):
        return content
    graph = parse(content, where=where, folder=folder)
    dims = parse_dims(options.dims)
    if options.batch is not None:
        dims = at_one_image(graph, dims, options.batch)
    infer(graph, dims, resize)
    nodes = list(model.graph.node)
    taken = {name for node in nodes for name in (node.name, *node.input, *node.output)}
    taken |= {tensor.name for tensor in model.graph.initializer}
    del model.graph.node[:]
    for node in nodes:
        if _can_part(node):
            spend(f"node {node.name} (Attention)")
            _Parts(model.graph, node, graph.shape, graph.element, taken, where).write()
        else:
            model.graph.node.append(node)
    return bytes(model.SerializeToString(deterministic=True))


def _can_part(node: onnx.NodeProto) -> bool:
    if node.op_type != "Attention" or node.domain not in ("", "ai.onnx"):
        return False
    settings = {a.name: a for a in node.attribute}
    if any(node.output[1:]) or any(node.input[4:]):
        return False
    return not ("softcap" in settings and settings["softcap"].f) and "softmax_precision" not in settings


class _Parts:
    """One attention: queries (batch, heads, rows, width), keys and values (batch, heads, columns, width)."""

    def __init__(
        self,
        graph: onnx.GraphProto,
        node: onnx.NodeProto,
        shapes: Mapping[str, tuple[int, ...]],
        elements: Mapping[str, int],
        taken: set[str],
        where: str,
    ) -> None:
        self.graph, self.node, self.taken = graph, node, taken
        self.name, self.where = node.name or next(iter(node.output), ""), where
        self.settings = {a.name: a for a in node.attribute}
        if len(node.input) < 3 or not node.output:
            raise self.refuse("it has no queries, keys, values or result")
        for value in node.input[:3]:
            if value not in shapes or len(shapes[value]) not in (3, 4) or min(shapes[value]) < 1:
                raise self.refuse(f"the shape of {value} is not known")
        self.shapes = [shapes[value] for value in node.input[:3]]
        self.element = elements.get(node.input[0], 1)
        if self.element not in _FLOATS:
            raise self.refuse(f"{node.input[0]} is not of floating-point numbers")
        self.mask_element = elements.get(node.input[3], 1) if len(node.input) > 3 else 0

    def refuse(self, reason: str) -> ModelError:
        return ModelError(
            f"cannot be taken apart: {reason}", where=self.where, item=f"node {self.name} (Attention)"
        )

    def write(self) -> None:
        import onnx

        query, key, value = (self.heads(i) for i in range(3))
        (batch, heads, rows, width), (_, groups, columns, _), (_, _, _, deep) = query[1], key[1], value[1]
        if heads % groups or rows * columns > _MOST_SCORES:
            wrong = (
                f"{heads} heads share {groups}"
                if heads % groups
                else f"{rows} x {columns} scores are too many"
            )
            raise self.refuse(wrong)
        scale = self.settings["scale"].f if "scale" in self.settings else 1 / math.sqrt(width)
        # Heads that share keys are stacked, so that both products stay products of matrices.
        together = [batch, groups, heads // groups * rows]
        asked = self.shaped(query[0], query[1], [*together, width], "queries")
        flipped = self.add("Transpose", "keys", [key[0]], perm=[0, 1, 3, 2])
        scores = self.add("MatMul", "scores", [asked, flipped])
        scores = self.shaped(scores, [*together, columns], [batch, heads, rows, columns], "heads")
        scores = self.add("Mul", "scaled", [scores, self.number("scale", np.asarray(scale))])
        if "is_causal" in self.settings and self.settings["is_causal"].i:
            below = self.triangle(rows, columns)
            lowest = self.number("lowest", np.asarray(-1e4 if self.element == 10 else -1e30))
            scores = self.add("Where", "causal", [below, scores, lowest])
        if len(self.node.input) > 3 and self.node.input[3]:
            mask = self.node.input[3]
            if self.mask_element == onnx.TensorProto.BOOL:
                lowest = self.number("masked.lowest", np.asarray(-1e4 if self.element == 10 else -1e30))
                scores = self.add("Where", "masked", [mask, scores, lowest])
            else:
                scores = self.add("Add", "masked", [scores, mask])
        shares = self.add("Softmax", "softmax", [scores], axis=-1)
        shares = self.shaped(shares, [batch, heads, rows, columns], [*together, columns], "shares")
        result = self.add("MatMul", "weighted", [shares, value[0]])
        result = self.shaped(result, [*together, deep], [batch, heads, rows, deep], "apart")
        if len(self.shapes[0]) == 3:
            result = self.add("Transpose", "tokens", [result], perm=[0, 2, 1, 3])
            result = self.reshape(result, [batch, rows, heads * deep], "result")
        last = self.graph.node[-1]
        if last.output[0] == result and last.op_type != "Constant":
            last.output[0] = self.node.output[0]
        else:
            self.graph.node.add(
                op_type="Identity", name=self.unique("result"), input=[result], output=self.node.output[:1]
            )

    def triangle(self, rows: int, columns: int) -> str:
        """Return the mask of the columns up to each row, computed from constants to keep the model small."""
        sides = []
        for part, count, shape in (("rows", rows, (rows, 1)), ("columns", columns, (1, columns))):
            ends = [self.constant(f"{part}.{n}", np.asarray(n, np.int64)) for n in (0, count, 1)]
            sides.append(self.reshape(self.add("Range", part, ends), shape, f"{part}.side"))
        return self.add("GreaterOrEqual", "triangle", sides)

    def heads(self, i: int) -> tuple[str, list[int]]:
        """Return an operand with its heads in front, and its shape."""
        name, shape = self.node.input[i], self.shapes[i]
        if len(shape) == 4:
            return name, list(shape)
        key = "kv_num_heads" if i else "q_num_heads"
        heads = int(self.settings[key].i) if key in self.settings else 0
        if heads < 1 or shape[2] % heads:
            raise self.refuse(f"{key} is {heads}, which does not divide {shape[2]}")
        apart = [shape[0], shape[1], heads, shape[2] // heads]
        part = ("query", "key", "value")[i]
        name = self.reshape(name, apart, f"{part}.heads")
        name = self.add("Transpose", part, [name], perm=[0, 2, 1, 3])
        return name, [apart[0], heads, apart[1], apart[3]]

    def shaped(self, value: str, before: Sequence[int], after: Sequence[int], part: str) -> str:
        return value if list(before) == list(after) else self.reshape(value, after, part)

    def reshape(self, value: str, shape: Sequence[int], part: str) -> str:
        target = self.constant(f"{part}.shape", np.asarray(shape, np.int64))
        return self.add("Reshape", part, [value, target])

    def add(self, op: str, part: str, inputs: list[str], **settings: Any) -> str:
        from onnx import helper

        name = self.unique(part)
        self.graph.node.append(helper.make_node(op, inputs, [name], name=name, **settings))
        return name

    def number(self, part: str, value: np.ndarray[Any, Any]) -> str:
        from onnx import helper

        return self.constant(part, value.astype(helper.tensor_dtype_to_np_dtype(self.element)))

    def constant(self, part: str, value: np.ndarray[Any, Any]) -> str:
        from onnx import numpy_helper

        name = self.unique(part)
        self.graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def unique(self, part: str) -> str:
        name, count = f"{self.name}.{part}", 0
        while name in self.taken:
            count += 1
            name = f"{self.name}.{part}_{count}"
        self.taken.add(name)
        return name
