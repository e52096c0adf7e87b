"""The geometry of an operator, from the ONNX node: its walk, the basis of proofs about overlap and halos.

`input` and `output` are the shapes that the node itself sees, NCHW. The kinds:

- `conv`, `depthwise`, `pool`: windows over height and width. A reduction over the whole map (a global pool,
  a mean over height and width) is a `pool` with the map as kernel and an output of one pixel;
- `fully_connected`: a matrix of parameters; shapes are (rows, features);
- `elementwise`: the largest operands have an element for each one of the output, smaller ones of the same
  type are broadcast;
- `concat`: over the channels; `input` is the first operand. The others have its images, rows and columns, and
  as many channels as their bytes imply in comparison with the first one's;
- `pad`: rows and columns of a constant (or, with a negative padding, fewer of them);
- `rowwise`: a pixel of the output needs that pixel of the input in all its channels, and nothing else.

If the node does not read whole tensors as they lie, `gathered` precedes the kind; if it makes a map and none
of the kinds fits, the kind is `other`. Both promise nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from onchip.network import GATHERED, Geometry
from onchip.readers.constants import Constants
from onchip.readers.layout import Layout
from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.padded import added
from onchip.readers.padding import same_padding
from onchip.readers.traits import is_elementwise

__all__ = ["geometry_of", "geometry_of_copy"]

_OVER_A_MAP = frozenset({
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare",
})  # fmt: skip
_ALONG_CHANNELS = frozenset({"Hardmax", "LogSoftmax", "LpNormalization", "Softmax"})


def geometry_of(
    graph: Graph,
    node: Node,
    activations: list[str],
    stored: Mapping[str, int],
    constants: Constants,
    *,
    whole: bool,
) -> Geometry | None:
    """Return the node's geometry, None if `Geometry` cannot state it; `activations` are its computed inputs.

    `stored` are the element types of the tensors that hold them: what is dequantised on the way has another.
    Unless the node reads `whole` tensors as they lie, the shapes are those that it sees and the kind is
    gathered.
    """
    found = _walk(graph, node, activations, stored, constants)
    if found is None:
        made = [name for name in node.outputs if name]
        return _other(graph, activations[:1], made[0]) if len(made) == 1 else None
    return found if whole else replace(found, kind=GATHERED + found.kind)


def _other(graph: Graph, read: list[str], made: str) -> Geometry | None:
    """Return the shapes of an operator that makes a map in a way that has no kind."""
    shapes = [graph.shape.get(name, ()) for name in (*read, made)]
    return Geometry("other", input=shapes[0], output=shapes[-1]) if len(shapes[-1]) == 4 and read else None


def _walk(
    graph: Graph, node: Node, activations: list[str], stored: Mapping[str, int], constants: Constants
) -> Geometry | None:
    """Return the geometry if one of the kinds fits, with inputs as the node sees them."""
    pointwise = is_elementwise(node.op, node.domain)
    if (node.domain and not pointwise) or not activations or not node.outputs[0]:
        return None
    result = graph.shape[node.outputs[0]]
    first = graph.shape[node.inputs[0]] if node.inputs[0] else ()
    if pointwise:
        counts = {math.prod(graph.shape[a]) for a in activations}
        types = set(stored.values())
        if max(counts) == math.prod(result) and (len(counts) == 1 or len(types) == 1):
            return Geometry("elementwise", input=result, output=result)
        return None
    if node.op == "Concat":
        return _concat(graph, node, activations, stored, result)
    if activations != [node.inputs[0]]:
        return None
    match node.op:
        case "Conv" if len(first) == 4:
            weight = graph.shape[node.inputs[1]]
            groups = node.integer("group", 1)
            kind = "depthwise" if groups == first[1] and groups > 1 else "conv"
            return _windowed(node, kind, first, result, weight[2:], groups)
        case "MaxPool" | "AveragePool" | "LpPool" if len(first) == 4:
            return _windowed(node, "pool", first, result, node.integers("kernel_shape") or (), 1)
        case "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" if len(first) == 4:
            return Geometry("pool", input=first, output=result, kernel=first[2:])
        case "Gemm" if len(first) == 2 and not node.integer("transA", 0):
            return Geometry("fully_connected", input=first, output=result)
        case "MatMul" if len(first) >= 2 and len(result) == len(first):
            rows = math.prod(first[:-1])
            if rows * result[-1] == math.prod(result):
                return Geometry("fully_connected", input=(rows, first[-1]), output=(rows, result[-1]))
        case "Pad" if len(first) == len(result) == 4:
            return _padded(graph, node, constants, first, result)
        case "LRN" if len(first) == 4:
            return Geometry("rowwise", input=first, output=result)
        case op if op in _ALONG_CHANNELS and len(result) == len(first):
            return _along_channels(graph, node, first)
        case op if op in _OVER_A_MAP and len(first) == 4:
            axes = _axes(node, constants)
            if axes is not None and sorted(axis % 4 for axis in axes) == [2, 3]:
                return Geometry("pool", input=first, output=(*first[:2], 1, 1), kernel=first[2:])
    return None


def geometry_of_copy(root: tuple[int, ...], copied: Layout) -> Geometry | None:
    """Return the geometry of an operator that copies some of a tensor's channels, or all of them reordered.

    `root` is the tensor's shape, `copied` the layout of the copied elements in it. A map whose pixels move is
    made in a way that has no kind.
    """
    made = _pixels_kept(root, copied)
    if made is None and len(copied.shape) == 4:
        return Geometry("other", input=root, output=copied.shape)
    return made


def _pixels_kept(root: tuple[int, ...], copied: Layout) -> Geometry | None:
    """Return the geometry of such an operator if every pixel of every image stays where it is."""
    if len(root) != 4:
        return None
    images, _, height, width = root
    channels, rest = divmod(copied.size, images * height * width)
    if rest:
        return None
    shape = (images, channels, height, width)
    as_map, whole = copied.reshape(shape), Layout.whole(root)
    if as_map is None or any(as_map.dims[axis] != whole.dims[axis] for axis in (0, 2, 3)):
        return None
    return Geometry("rowwise", input=root, output=shape)


def _concat(
    graph: Graph, node: Node, activations: list[str], stored: Mapping[str, int], result: tuple[int, ...]
) -> Geometry | None:
    """Return a concat of maps over channels, each operand another tensor of the same element type."""
    shapes = [graph.shape[a] for a in activations]
    if list(node.inputs) != activations or len(set(activations)) < len(activations) or len(result) != 4:
        return None
    if node.integer("axis", 1) % 4 != 1 or len(set(stored.values())) != 1:
        return None
    return Geometry("concat", input=shapes[0], output=result)


def _padded(
    graph: Graph, node: Node, constants: Constants, first: tuple[int, ...], result: tuple[int, ...]
) -> Geometry | None:
    """Return a constant around rows and columns; negative amounts cut some off."""
    sides = added(node, constants, 4)
    if sides is None or any(sides[0]) or any(sides[1]):
        return None
    padding = (*(before for before, _ in sides[2:]), *(after for _, after in sides[2:]))
    return Geometry("pad", input=first, output=result, padding=padding)


def _along_channels(graph: Graph, node: Node, first: tuple[int, ...]) -> Geometry | None:
    """Return a softmax (or the like) over the channels of a map, or over the features of a matrix."""
    coerced = node.op not in ("LpNormalization",) and graph.opsets[""] < 13
    axis = node.integer("axis", 1 if coerced else -1) % len(first)
    if len(first) == 4 and axis == 1 and (not coerced or first[2:] == (1, 1)):
        return Geometry("rowwise", input=first, output=first)
    if len(first) in (2, 3) and axis == len(first) - 1:
        shape = (math.prod(first[:-1]), first[-1])
        return Geometry("rowwise", input=shape, output=shape)
    return None


def _axes(node: Node, constants: Constants) -> tuple[int, ...] | None:
    return node.integers("axes") or _numbers(node, 1, constants)


def _numbers(node: Node, position: int, constants: Constants) -> tuple[int, ...] | None:
    """Return the contents of a small constant operand; None if they are not known."""
    if len(node.inputs) <= position or node.inputs[position] not in constants:
        return None
    value = constants.value(node.inputs[position])
    return None if value is None else tuple(int(v) for v in value.reshape(-1))


def _windowed(
    node: Node,
    kind: str,
    first: tuple[int, ...],
    result: tuple[int, ...],
    kernel: tuple[int, ...],
    groups: int,
) -> Geometry | None:
    if len(kernel) != 2 or len(result) != 4:
        return None
    stride = node.integers("strides") or (1, 1)
    dilation = node.integers("dilations") or (1, 1)
    auto = node.attribute("auto_pad")
    mode = b"NOTSET" if auto is None else auto.s
    padding = node.integers("pads") or (0, 0, 0, 0)
    if mode == b"VALID":
        padding = (0, 0, 0, 0)
    elif mode in (b"SAME_UPPER", b"SAME_LOWER"):
        lower = mode == b"SAME_LOWER"
        padding = same_padding(first[2:], result[2:], kernel, stride, dilation, more_before=lower)
    return Geometry(
        kind,
        input=first,
        output=result,
        kernel=kernel,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
