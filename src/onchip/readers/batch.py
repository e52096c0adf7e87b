"""`--batch N`: a model of one image read as the model of N images, if it provably stays the same.

The graph is inferred twice, for one image and for N. Every computed value must have exactly one axis that is
N times as long, and every node must keep images apart when they lie side by side along that axis. Targets of
`Reshape`, `Expand` and `Resize` that contain the one image are rewritten: with the images first in memory
before and after, N images reshaped are N reshaped images.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from onchip.base.errors import ModelError, UsageError
from onchip.readers.constants import Constants
from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.plain import plain_of
from onchip.readers.shapes import infer, node_types
from onchip.readers.traits import VENDOR, is_elementwise

__all__ = ["at_one_image", "infer_at_batch"]

Shape = tuple[int, ...]

_TARGETS = {"Reshape": 1, "Expand": 1, "Resize": 3}
"""Operators with an operand that states their output's shape, and its position."""

_IMAGES_FIRST = frozenset({
    "Attention", "AveragePool", "BatchNormalization", "Conv", "ConvInteger", "ConvTranspose", "DepthToSpace",
    "Gemm", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GroupNormalization",
    "InstanceNormalization", "LRN", "LpPool", "MaxPool", "QLinearConv", "Resize", "SpaceToDepth", "Upsample",
})  # fmt: skip
"""Operators whose axis 0 is the images: their result for one image depends on that image only."""

_MOVING = frozenset({"Concat", "Expand", "Gather", "Pad", "Slice", "Split", "Tile"})
"""Operators that join elements or take some: never along the images."""

_ALONG_ONE_AXIS = {"Hardmax": -1, "LogSoftmax": -1, "LpNormalization": -1, "Softmax": -1}
_FROM_AN_AXIS_ON = {"LayerNormalization": -1, "RMSNormalization": -1}
"""Normalisations, with the default of their `axis`."""

_ANY = frozenset({
    "ArgMax", "ArgMin", "Dropout", "Identity", "MatMul", "MatMulInteger", "QLinearMatMul", "ReduceL1",
    "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "ReduceSumSquare", "Squeeze", "TopK", "Transpose", "Unsqueeze",
})  # fmt: skip
"""Operators for which the shapes suffice: had they mixed images, no axis would be N times as long."""

_VENDORS: dict[str, frozenset[int]] = {
    "Attention": frozenset({1, 2}),
    "GroupQueryAttention": frozenset({6, 7, 8}),
    "MatMulNBits": frozenset(range(1, 6)),
    "MultiHeadAttention": frozenset({3}),
    "QLinearAveragePool": frozenset(range(1, 5)),
    "QLinearGlobalAveragePool": frozenset(range(1, 5)),
    "RotaryEmbedding": frozenset({2, 3}),
}
"""onnxruntime's operators whose axis 0 is the images, and their operands that may be constants: others
have a row for each image."""

_VENDORS_BY_ROWS = frozenset({"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"})


def infer_at_batch(
    graph: Graph, dims: Mapping[str, int], resize: tuple[int, int] | None, batch: int
) -> Constants:
    """Infer shapes as `shapes.infer` does, with `batch` images where the model has one or a free dimension.

    The first axis of every input counts the images. Raises `ModelError` naming the input that holds another
    number of images, or the node that is not known to keep them apart.
    """
    axes = _first_axes(graph, dims, batch)
    constants = infer(graph, {**dims, **{symbol: 1 for symbol in axes.values() if symbol}}, resize)
    one = dict(graph.shape)
    if batch == 1:
        return constants
    _write_targets(graph, constants, batch)
    for name in axes:
        graph.inputs[name].type.tensor_type.shape.dim[0].dim_value = batch
    graph.shape.clear()
    graph.element.clear()
    constants = infer(graph, {}, believe=False)
    _Proof(graph, constants, one, batch).run()
    return constants


def at_one_image(graph: Graph, dims: Mapping[str, int], batch: int) -> dict[str, int]:
    """Return `dims`, and 1 for each symbol that counts the images of a model to be read at `batch`."""
    return {**dims, **{symbol: 1 for symbol in _first_axes(graph, dims, batch).values() if symbol}}


def _first_axes(graph: Graph, dims: Mapping[str, int], batch: int) -> dict[str, str]:
    """Return the inputs that have images, each with the symbol of its first axis, empty if that is 1."""
    found: dict[str, str] = {}
    wanted = {name for node in graph.live() for name in node.inputs} | set(graph.outputs)
    for name, info in graph.inputs.items():
        axes = info.type.tensor_type.shape.dim
        if name not in wanted or not axes:
            continue
        if axes[0].HasField("dim_value") and axes[0].dim_value >= 0:
            if axes[0].dim_value != 1:
                raise graph.refuse(
                    f"its first axis is {axes[0].dim_value}; only a model of one image is read at a batch",
                    f"input {name}",
                )
            found[name] = ""
        else:
            found[name] = axes[0].dim_param or f"{name}.0"
            if dims.get(found[name], batch) != batch:
                raise UsageError(f"{found[name]} is the batch, which is {batch}", item="dims")
    if not found:
        raise graph.refuse("no input has an axis that could count images", "inputs")
    return found


def _write_targets(graph: Graph, constants: Constants, batch: int) -> None:
    """Replace the first axis of one image by that of all images in every constant target shape."""
    import onnx

    taken = {name for node in graph.nodes for name in (*node.inputs, *node.outputs)} | set(graph.weights)
    for node in graph.nodes:
        position = _TARGETS.get(node.op)
        if position is None or node.domain or len(node.inputs) <= position or node.inputs[0] in constants:
            continue
        name = node.inputs[position]
        value = constants.value(name) if name in constants else None
        if value is None or value.size == 0 or value.dtype.kind not in "iu" or value.reshape(-1)[0] < 1:
            continue
        if node.op != "Reshape" and value.reshape(-1)[0] != 1:
            continue
        sizes = [int(v) for v in value.reshape(-1)]
        if sizes[0] * batch >= 1 << 63:
            continue  # not a shape: the inference reports it
        fresh = f"{name}@{batch}x{node.index}"
        while fresh in taken:
            fresh += "_"
        taken.add(fresh)
        tensor = onnx.helper.make_tensor(
            fresh, onnx.TensorProto.INT64, [len(sizes)], [sizes[0] * batch, *sizes[1:]]
        )
        graph.model.graph.initializer.append(tensor)
        graph.weights[fresh] = graph.model.graph.initializer[-1]
        graph.weight_shape[fresh] = (len(sizes),)
        node.proto.input[position] = fresh
        node.inputs = tuple(node.proto.input)
    graph.keep(graph.nodes)


class _Proof:
    """The axis of the images in every value, node by node."""

    def __init__(self, graph: Graph, constants: Constants, one: Mapping[str, Shape], batch: int) -> None:
        self.graph, self.constants, self.one, self.batch = graph, constants, one, batch
        self.axis: dict[str, int] = {}
        """By value, the axis that is `batch` times as long as for one image; constants have none."""

    def run(self) -> None:
        """Check all nodes that an output depends on."""
        for name in self.graph.inputs:
            if self.graph.shape.get(name):
                self.axis[name] = 0
        for node in self.graph.live():
            outputs = [name for name in node.outputs if name and name not in self.constants]
            if not outputs or node.op in ("Shape", "Size"):
                continue
            given = [name for name in node.inputs if name in self.axis]
            for name in outputs:
                if name in self.graph.read:
                    self.axis[name] = self._scaled(node, name)
            kept = [name for name in outputs if name in self.axis]
            if given and kept and not self._keeps_apart(node, given, kept):
                raise self._refuse(node, "is not known to keep images apart")

    def _refuse(self, node: Node, why: str) -> ModelError:
        return self.graph.refuse(f"{why}: the model cannot be read at batch {self.batch}", node.label)

    def _scaled(self, node: Node, name: str) -> int:
        """Return the one axis of a value that is `batch` times as long."""
        many, single = self.graph.shape.get(name), self.one.get(name)
        if many is None or single is None:
            reason = node_types(self.graph, node, {})[1]
            raise self._refuse(
                node, f"the shape of {name} cannot be inferred" + (f" ({reason})" * bool(reason))
            )
        different = [
            axis for axis, sizes in enumerate(zip(many, single, strict=False)) if len(set(sizes)) > 1
        ]
        scaled = len(many) == len(single) and len(different) == 1
        if not scaled or many[different[0]] != self.batch * single[different[0]]:
            raise self._refuse(node, f"makes {list(many)} of {self.batch} images, and {list(single)} of one")
        return different[0]

    def _keeps_apart(self, node: Node, given: list[str], made: list[str]) -> bool:
        axis, shape = self.axis, self.graph.shape
        before, after = given[0], made[0]
        node = plain_of(node)
        if node.domain:
            return node.domain == VENDOR and self._vendors_keeps_apart(node, given, made)
        if node.op in _IMAGES_FIRST:
            mixes = node.op == "Gemm" and node.integer("transA", 0)
            mixes = mixes or (node.op == "BatchNormalization" and node.integer("training_mode", 0))
            return not mixes and all(axis[name] == 0 for name in (*given, *made))
        if is_elementwise(node.op, node.domain):
            return len({axis[name] - len(shape[name]) for name in (*given, *made)}) == 1
        if node.op in ("Reshape", "Flatten"):
            return self._same_order(before, after)
        if node.op in _MOVING:
            if node.op in ("Concat", "Split") and self._axis_of(node, before, 0) == axis[before]:
                return False
            return all(shape[g][axis[g]] == shape[m][axis[m]] for g in given for m in made)
        if node.op in _ALONG_ONE_AXIS:
            if self.graph.opsets[""] < 13 and node.op != "LpNormalization":
                return axis[before] < self._axis_of(node, before, 1)
            return axis[before] != self._axis_of(node, before, -1)
        if node.op in _FROM_AN_AXIS_ON:
            return axis[before] < self._axis_of(node, before, -1)
        if node.op in ("Cast", "CastLike"):
            return True
        return node.op in _ANY

    def _vendors_keeps_apart(self, node: Node, given: list[str], made: list[str]) -> bool:
        axis, shape = self.axis, self.graph.shape
        if node.op in _VENDORS:
            fixed = {i for i, name in enumerate(node.inputs) if name and name not in axis}
            return fixed <= _VENDORS[node.op] and all(axis[name] == 0 for name in (*given, *made))
        if node.op in _VENDORS_BY_ROWS:
            places = {axis[name] - len(shape[name]) for name in (*given, *made)}
            return len(places) == 1 and places != {-1}
        return node.op == "FusedMatMul"

    def _axis_of(self, node: Node, name: str, default: int) -> int:
        return node.integer("axis", default) % len(self.graph.shape[name])

    def _same_order(self, before: str, after: str) -> bool:
        """Return whether a reshape leaves every image's elements to that image."""
        sides = []
        for name in (before, after):
            axis, shape = self.axis[name], self.one[name]
            sides.append((math.prod(shape[:axis]), shape[axis]))
        return sides[0] == sides[1] or sides[0][0] == sides[1][0] == 1
