"""Element type and static shape of every value: values for symbolic dimensions, then inference.

onnx infers one node after the other, each from the types of its operands and, if those do not suffice, from
the contents of its small constant operands. It never sees the whole graph at once: it would carry contents
from node to node itself, and forty nodes that double a list fill any memory. Here the dimensions of a value
are bounded before the next node sees it, and so are the contents that `Constants` computes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from onchip.base.allowance import spend
from onchip.base.close_names import did_you_mean
from onchip.base.errors import UsageError
from onchip.readers.constants import Constants
from onchip.readers.onnx_bounds import MOST_DIMS
from onchip.readers.onnx_graph import Graph, Node, is_vendors, one_line
from onchip.readers.plain import made_as, plain_of
from onchip.readers.quantised import CONVERSIONS
from onchip.readers.traits import is_elementwise
from onchip.readers.vendor import vendor_shapes

if TYPE_CHECKING:
    import onnx

__all__ = ["UnknownDimension", "contradiction", "infer", "node_types", "parse_dims"]


MAX_DIM = (1 << 31) - 1


class UnknownDimension(UsageError):
    """`--dims` gives a value to a dimension that is not open in the model."""

    def __init__(self, dimension: str, reason: str) -> None:
        self.dimension = dimension
        super().__init__(reason, item="dims")


def parse_dims(text: str) -> dict[str, int]:
    """Return `batch=1,height=224` as a mapping; raises `UsageError` naming the part that is wrong."""
    result: dict[str, int] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, value = part.rpartition("=")
        name, value = name.strip(), value.strip()
        if (
            not equals
            or not name
            or not (value.isascii() and value.isdigit())
            or not 0 < int(value[:20]) <= MAX_DIM
        ):
            raise UsageError(
                f"{part[:80]!r} is not NAME=SIZE with a whole number from 1 to 2^31 - 1", item="dims"
            )
        if name in result:
            raise UsageError(f"gives {name} twice", item="dims")
        result[name] = int(value)
    return result


def infer(
    graph: Graph,
    dims: Mapping[str, int],
    resize: tuple[int, int] | None = None,
    *,
    believe: bool = True,
) -> Constants:
    """Fill in `graph.element` and `graph.shape`; return the graph's constants.

    `resize` replaces the last two dimensions of every input with four or five of them; then, and without
    `believe`, shapes that the file states are not trusted. Raises `ModelError` naming an input and its symbol
    if a dimension has no value, and the node if inference finds a contradiction; `UsageError` for a value
    that nothing asks for.
    """
    _fix_inputs(graph, dims, resize)
    claimed = _claimed(graph, dims) if believe and resize is None else {}
    for name, info in graph.inputs.items():
        _learn(graph, name, info.type)
    for name, tensor in graph.weights.items():
        graph.element[name] = tensor.data_type
        graph.shape[name] = graph.weight_shape[name]
    constants = Constants(graph)
    for node in graph.nodes:
        spend(node.label)
        for name in node.inputs:
            if name and name not in graph.shape and name in claimed and name not in graph.producer:
                graph.shape[name] = claimed[name]
        if any(name and name not in graph.shape for name in node.outputs):
            contradicted = _infer_node(graph, node, constants)
            for name in node.outputs:
                if name in claimed and not contradicted:
                    graph.shape.setdefault(name, claimed[name])
            if node.op == "NonMaxSuppression" and node.outputs[0] not in graph.shape:
                _at_most(graph, node, constants)
        constants.visit(node)
    for output in graph.model.graph.output:
        stated = output.type.tensor_type.elem_type
        # The stated type of an input that is also an output must be a type too: nothing infers it.
        if not graph.element.get(output.name) or (stated and output.name in graph.inputs):
            graph.element[output.name] = stated
    return constants


def _at_most(graph: Graph, node: Node, constants: Constants) -> None:
    """Give the boxes that are selected their upper bound: as many of every class and image as may be."""
    scores = graph.shape.get(node.inputs[1]) if len(node.inputs) > 1 else None
    limit = constants.value(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] in constants else None
    if scores is None or len(scores) != 3 or limit is None or limit.size != 1 or node.domain:
        return
    most = min(max(int(limit.reshape(-1)[0]), 0), scores[2])
    graph.element[node.outputs[0]] = 7
    graph.shape[node.outputs[0]] = (scores[0] * scores[1] * most, 3)


def static_shape(type_: onnx.TypeProto, dims: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the shape in a type, symbols replaced; None if it is not static."""
    if not type_.HasField("tensor_type") or not type_.tensor_type.HasField("shape"):
        return None
    shape = []
    for dim in type_.tensor_type.shape.dim:
        value = dim.dim_value if dim.HasField("dim_value") else dims.get(dim.dim_param, -1)
        if value < 0:
            return None
        shape.append(int(value))
    return tuple(shape)


def _fix_inputs(graph: Graph, dims: Mapping[str, int], resize: tuple[int, int] | None) -> None:
    wanted = {name for node in graph.live() for name in node.inputs} | set(graph.outputs)
    resized = False
    open_: dict[str, list[tuple[str, int, onnx.TensorShapeProto.Dimension]]] = {}
    for name, info in graph.inputs.items():
        item = f"input {name}"
        kind = info.type.WhichOneof("value")
        if name not in wanted:
            continue
        if kind != "tensor_type":
            raise graph.refuse(
                f"is a {(kind or 'value of no type').replace('_type', '')}, not a tensor", item
            )
        if not info.type.tensor_type.HasField("shape"):
            raise graph.refuse("has no shape", item)
        axes = info.type.tensor_type.shape.dim
        if resize is not None and len(axes) in (4, 5):
            axes[-2].dim_value, axes[-1].dim_value = resize
            resized = True
        for axis, dim in enumerate(axes):
            if not (dim.HasField("dim_value") and dim.dim_value >= 0):
                open_.setdefault(dim.dim_param or f"{name}.{axis}", []).append((item, axis, dim))
    for unknown in sorted(set(dims) - set(open_)):  # first: one that is missed may be misspelt
        hint = did_you_mean(unknown, open_)
        line = f"no input of {graph.where} has a dimension {unknown} without a value"
        raise UnknownDimension(unknown, f"{line}; {hint}" if hint else line)
    for symbol, places in open_.items():
        for item, axis, dim in places:
            if symbol not in dims:
                raise graph.refuse(
                    f"dimension {axis} is {dim.dim_param or 'unnamed'} and has no value; give it with --dims,"
                    f" as in --dims {symbol}=1",
                    item,
                )
            dim.dim_value = dims[symbol]
    if resize is not None and not resized:
        raise graph.refuse("cannot be resized: no input has the form of an image", "inputs")


def _claimed(graph: Graph, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Return the shapes that the file states itself: used only where inference finds none."""
    result = {}
    for info in (*graph.model.graph.value_info, *graph.model.graph.output):
        shape = static_shape(info.type, dims)
        if shape is not None:
            result[info.name] = shape
    return result


_ANY_CONTENTS = frozenset({
    "AveragePool", "BatchNormalization", "Concat", "Conv", "ConvTranspose", "Flatten", "Gemm",
    "GlobalAveragePool", "GlobalMaxPool", "Identity", "LRN", "LayerNormalization", "LpPool", "MatMul",
    "MaxPool", "Softmax", "Transpose",
})  # fmt: skip
"""Operators, besides the element-wise ones, whose shape does not depend on the contents of operands."""


def _learn(graph: Graph, name: str, type_: onnx.TypeProto) -> None:
    kind = type_.WhichOneof("value")
    if kind not in ("tensor_type", None):
        graph.element[name] = -1  # a sequence, map or optional: refused by the node that reads it
        graph.type[name] = type_
        return
    if type_.tensor_type.elem_type:
        graph.element[name] = type_.tensor_type.elem_type
    shape = static_shape(type_, {})
    if shape is not None:
        graph.shape[name] = shape
    else:
        graph.type[name] = type_


def _infer_node(graph: Graph, node: Node, constants: Constants) -> bool:
    """Infer one node's outputs, if needed with the contents of its small constant operands.

    Returns whether onnx refused.
    """
    plain = node.op in _ANY_CONTENTS or is_elementwise(node.op, node.domain)
    if plain and not _infer_from(graph, node, {}) and all(n in graph.shape for n in node.outputs if n):
        return False
    return _infer_from(graph, node, _contents(graph, node, constants))


def _infer_from(graph: Graph, node: Node, contents: Mapping[str, onnx.TensorProto]) -> bool:
    types, reason = node_types(graph, node, contents)
    for name, type_ in types.items():
        if len(type_.tensor_type.shape.dim) > MOST_DIMS:
            count = len(type_.tensor_type.shape.dim)
            raise graph.refuse(
                f"its output {name} has {count:,} dimensions; {MOST_DIMS} are read at most", node.label
            )
        _learn(graph, name, type_)
    return bool(reason)


def _contents(graph: Graph, node: Node, constants: Constants) -> dict[str, onnx.TensorProto]:
    from onnx import numpy_helper

    contents = {}
    for name in node.inputs:
        if name and name in constants:
            value = constants.value(name)
            if value is not None:
                graph.shape.setdefault(name, value.shape)
                contents[name] = numpy_helper.from_array(value, name)
    return contents


_LIKE_THEIR_OPERAND = frozenset({"GroupNormalization"})
"""Operators whose result is like their first operand, which onnx does not infer."""


def node_types(
    graph: Graph, node: Node, contents: Mapping[str, onnx.TensorProto]
) -> tuple[dict[str, onnx.TypeProto], str]:
    """Return onnx's own types for one node's outputs; if it refuses, none and its reason.

    Of a vendor's node they are those of its plain form, or of a rule here.
    """
    import onnx
    from onnx import shape_inference

    if is_vendors(node, graph.opsets):
        return _vendors_types(graph, node, contents)
    types = {name: _type_of(graph, name) for name in dict.fromkeys(node.inputs) if name}
    schema = onnx.defs.get_schema(node.op, graph.opsets[node.domain], node.domain)
    try:
        found = shape_inference.infer_node_outputs(
            schema,
            node.proto,
            types,
            input_data=dict(contents),
            opset_imports=list(graph.model.opset_import),
            ir_version=graph.model.ir_version,
        )
    except Exception as problem:  # onnx's own, of several classes: a refusal of this node
        return {}, one_line(problem)
    if (
        node.op in _LIKE_THEIR_OPERAND
        and static_shape(found.get(node.outputs[0], onnx.TypeProto()), {}) is None
    ):
        return {node.outputs[0]: _type_of(graph, node.inputs[0])}, ""
    return found, ""


def _vendors_types(
    graph: Graph, node: Node, contents: Mapping[str, onnx.TensorProto]
) -> tuple[dict[str, onnx.TypeProto], str]:
    import onnx
    from onnx import shape_inference

    plain = plain_of(node)
    if plain is node:
        made = vendor_shapes(graph, node, contents) or []
        pairs = zip(node.outputs, made, strict=False)
        return {name: _tensor_type(*found) for name, found in pairs if name and found is not None}, ""
    if plain.op in CONVERSIONS:
        return {node.outputs[0]: _tensor_type(made_as(graph, node), graph.shape.get(node.inputs[0]))}, ""
    newest = onnx.defs.onnx_opset_version()
    types = {name: _tensor_type(1, graph.shape.get(name)) for name in plain.inputs if name}
    try:
        found = shape_inference.infer_node_outputs(
            onnx.defs.get_schema(plain.op, newest, ""),
            plain.proto,
            types,
            opset_imports=[onnx.helper.make_opsetid("", newest)],
            ir_version=graph.model.ir_version,
        )
    except Exception as problem:  # onnx's own, of several classes: a refusal of this node
        return {}, one_line(problem)
    [name] = plain.outputs
    shape = static_shape(found[name], {}) if name in found else None
    return {name: _tensor_type(made_as(graph, node), shape)}, ""


def _type_of(graph: Graph, name: str) -> onnx.TypeProto:
    """Return the known type of a value; not to be changed."""
    if name not in graph.shape and name in graph.type:
        return graph.type[name]
    return _tensor_type(max(graph.element.get(name, 0), 0), graph.shape.get(name))


@lru_cache(1024)
def _tensor_type(element: int, shape: tuple[int, ...] | None) -> onnx.TypeProto:
    import onnx

    type_ = onnx.TypeProto()
    type_.tensor_type.elem_type = element
    if shape is not None:
        type_.tensor_type.shape.SetInParent()
        for size in shape:
            type_.tensor_type.shape.dim.add().dim_value = size
    return type_


def contradiction(graph: Graph, node: Node) -> str:
    """Return in words why a node's operands do not fit together although onnx infers its output, or ""."""
    node = plain_of(node)
    shapes = [graph.shape.get(name, ()) for name in node.inputs if name]
    match node.op:
        case "Conv" | "ConvInteger" if len(shapes) > 1 and len(shapes[0]) > 2 and len(shapes[1]) > 2:
            channels, filters = shapes[0][1], shapes[1]
            groups = node.integer("group", 1)
            if channels != filters[1] * groups or (groups and filters[0] % groups):
                return f"{channels} channels do not fit {groups} groups of filters {list(filters)}"
            return _window(node, shapes[0][2:], filters[2:])
        case "MaxPool" | "AveragePool" | "LpPool" if shapes and len(shapes[0]) > 2:
            return _window(node, shapes[0][2:], node.integers("kernel_shape") or ())
        case "Gemm" if len(shapes) > 1 and len(shapes[0]) == len(shapes[1]) == 2:
            left = shapes[0][0 if node.integer("transA", 0) else 1]
            right = shapes[1][1 if node.integer("transB", 0) else 0]
            if left != right:
                return f"{left} features do not fit a matrix of {right} rows"
    return ""


def _window(node: Node, image: tuple[int, ...], kernel: tuple[int, ...]) -> str:
    """Return in words that a window is larger than the padded image, or ""."""
    auto = node.attribute("auto_pad")
    if (auto is not None and auto.s.startswith(b"SAME")) or len(kernel) != len(image):
        return ""
    pads = node.integers("pads") or (0,) * (2 * len(image))
    dilations = node.integers("dilations") or (1,) * len(image)
    for size, taps, step, before, after in zip(
        image, kernel, dilations, pads, pads[len(image) :], strict=False
    ):
        if (taps - 1) * step + 1 > size + before + after:
            return f"a window of {list(kernel)} does not fit an image of {list(image)}"
    return ""
