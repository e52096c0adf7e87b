"""The limits of an ONNX file: counted before anything is copied, inlined, inferred or computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onchip.base.errors import ModelError
from onchip.base.limits import VARIABLE, limits

if TYPE_CHECKING:
    import onnx

__all__ = ["MOST_DIMS", "check_bounds", "check_counts", "is_control_flow"]

MOST_DIMS = 32
"""The most dimensions of a value; real ones have eight."""

MOST_ATTRIBUTES = 128
"""The most attributes of a node."""

MOST_OPSETS = 100
"""The most operator sets that a model may name."""

MOST_ITEMS = 4096
"""The most numbers in an attribute of a standard operator, and letters in a text: shapes depend on these."""


def is_control_flow(node: onnx.NodeProto) -> bool:
    """Return whether a node runs a graph of its own."""
    return node.op_type in ("If", "Loop", "Scan") or any(a.type in (5, 10) for a in node.attribute)


def check_counts(model: onnx.ModelProto, where: str) -> None:
    """Refuse more nodes than are read, counting those of each function once; contents are not examined."""
    most = limits().operators * 4
    most_functions = limits().operators
    reason = f"at most {most:,} are read ({VARIABLE}OPERATORS sets a quarter of that)"
    graph = model.graph
    for what, things in (
        ("inputs", graph.input),
        ("outputs", graph.output),
        ("initializers", graph.initializer),
        ("sparse initializers", graph.sparse_initializer),
        ("stated types", graph.value_info),
        ("operator sets", model.opset_import),
    ):
        if len(things) > (most if things is not model.opset_import else MOST_OPSETS):
            raise ModelError(f"has {len(things):,} {what}: more than are read", where=where)
    for count in (len(model.graph.node), *(len(f.node) for f in model.functions[: most_functions + 1])):
        if count > most:
            raise ModelError(f"has {count:,} nodes; {reason}", where=where)
    if len(model.functions) > most_functions:
        reason = f"at most {most_functions:,} are read ({VARIABLE}OPERATORS)"
        raise ModelError(f"has {len(model.functions):,} functions; {reason}", where=where)


def check_bounds(model: onnx.ModelProto, where: str) -> None:
    """Refuse values of too many dimensions, and nodes with oversized attributes."""
    graph = model.graph
    check_counts(model, where)
    for info in (*graph.input, *graph.output, *graph.value_info):
        _check_rank(len(info.type.tensor_type.shape.dim), f"tensor {info.name}", where)
    for tensor in graph.initializer:
        _check_rank(len(tensor.dims), f"tensor {tensor.name}", where)
    for sparse in graph.sparse_initializer:
        _check_rank(len(sparse.dims), f"tensor {sparse.values.name}", where)
    for node in graph.node:
        if len(node.attribute):
            _check_attributes(node, where)


def _check_rank(rank: int, item: str, where: str) -> None:
    if rank > MOST_DIMS:
        raise ModelError(f"has {rank:,} dimensions; {MOST_DIMS} are read at most", where=where, item=item)


def _check_attributes(node: onnx.NodeProto, where: str) -> None:
    name = node.name or next((o for o in node.output if o), "(unnamed)")
    item = f"node {name} ({node.op_type})"
    if len(node.attribute) > MOST_ATTRIBUTES:
        reason = f"has {len(node.attribute):,} attributes; {MOST_ATTRIBUTES} are read at most"
        raise ModelError(reason, where=where, item=item)
    if is_control_flow(node):
        raise ModelError("control flow cannot be planned", where=where, item=item)
    standard = node.domain in ("", "ai.onnx") and node.op_type != "Constant"
    for attribute in node.attribute:
        for rank in (len(attribute.t.dims), len(attribute.sparse_tensor.dims)):
            _check_rank(rank, f"{item}, attribute {attribute.name}", where)
        size = max(len(attribute.ints), len(attribute.floats), len(attribute.s))
        if standard and size > MOST_ITEMS:
            what = "letters" if attribute.s else "numbers"
            reason = f"its attribute {attribute.name} has {size:,} {what}; {MOST_ITEMS:,} are read at most"
            raise ModelError(reason, where=where, item=item)
