"""A model's own functions: the size of the model without them, by arithmetic; then the model without them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onchip.base.allowance import spend
from onchip.base.errors import ModelError
from onchip.base.limits import VARIABLE, limits
from onchip.readers.onnx_bounds import is_control_flow

if TYPE_CHECKING:
    import onnx

__all__ = ["inline"]

MOST_DEPTH = 64
"""The most calls within calls; onnx inlines them by recursion."""

MOST_BYTES = 96 << 20
"""The most bytes of the nodes of an inlined model, besides those in its file."""

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class _Size:
    """The inlined size of a function. `refs`: attributes that it takes from the call."""

    nodes: int = 0
    bytes: int = 0
    refs: int = 0
    depth: int = 0


def inline(model: onnx.ModelProto, where: str) -> None:
    """Replace calls of the model's own functions by their bodies; the initializers stay where they are.

    Raises `ModelError` naming the function or node for functions that call each other in a circle or 64 deep,
    for control flow, and for a model that would have too many nodes or bytes.
    """
    import onnx
    from onnx import inliner

    functions = {(_plain(f.domain), f.name, f.overload): f for f in model.functions}
    reached = _check_size(model, functions, where)
    shell = onnx.ModelProto(ir_version=model.ir_version)
    shell.opset_import.extend(model.opset_import)
    shell.functions.extend(functions[key] for key in reached)
    shell.graph.name = "shell"
    shell.graph.node.extend(model.graph.node)
    shell.graph.input.extend(model.graph.input)
    shell.graph.output.extend(model.graph.output)
    try:
        inlined = inliner.inline_local_functions(shell)
    except Exception as problem:  # onnx's own, of several classes
        reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0]
        raise ModelError(f"its functions cannot be inlined: {reason}", where=where) from None
    del model.graph.node[:]
    model.graph.node.extend(inlined.graph.node)
    del model.functions[:]


def _plain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


def _key(node: onnx.NodeProto) -> Key:
    return _plain(node.domain), node.op_type, node.overload


def _check_size(model: onnx.ModelProto, functions: dict[Key, onnx.FunctionProto], where: str) -> list[Key]:
    """Refuse a model that becomes too large; return the functions that it reaches, called ones first."""
    sizes: dict[Key, _Size] = {}
    total = _Size()
    argument = 0  # the largest attribute that a call passes, or a function has as its default
    most = limits().operators * 4
    for node in model.graph.node:
        key = _key(node)
        if key not in functions:
            total = _Size(total.nodes + 1, total.bytes, total.refs)
            continue
        argument = max([argument, *(a.ByteSize() for a in node.attribute)])
        _measure(key, functions, sizes, where)
        found = sizes[key]
        total = _Size(total.nodes + found.nodes, total.bytes + found.bytes, total.refs + found.refs)
        if total.nodes > most:
            reason = f"at most {most:,} are read ({VARIABLE}OPERATORS sets a quarter of that)"
            raise ModelError(
                f"its calls become {total.nodes:,} nodes; {reason}", where=where, item=f"function {key[1]}"
            )
    for key in sizes:
        body = functions[key]
        argument = max([argument, *(a.ByteSize() for a in body.attribute_proto)])
        for node in body.node:
            if _key(node) in functions:
                argument = max([argument, *(a.ByteSize() for a in node.attribute)])
    size = total.bytes + total.refs * argument
    if size > MOST_BYTES + 2 * model.ByteSize():
        raise ModelError(f"its functions, inlined, become {size:,} bytes", where=where)
    return list(sizes)


def _measure(key: Key, functions: dict[Key, onnx.FunctionProto], sizes: dict[Key, _Size], where: str) -> None:
    """Fill in the sizes of a function and of all that it calls, without recursion."""
    if key in sizes:
        return
    path = [(key, _Size(), 0)]  # a function, its size so far, and the next of its nodes
    while path:
        at, so_far, position = path.pop()
        body = functions[at].node
        while position < len(body):
            node = body[position]
            spend(f"function {at[1]}")
            if is_control_flow(node):
                raise ModelError("control flow cannot be planned", where=where, item=f"function {at[1]}")
            called = _key(node)
            if called in functions and called not in sizes:
                break
            so_far = _with(so_far, node, sizes.get(called))
            position += 1
        if position == len(body):
            sizes[at] = so_far
        else:
            path += [(at, so_far, position), (called, _Size(), 0)]
            if any(called == key for key, _, _ in path[:-1]):
                raise ModelError("calls itself", where=where, item=f"function {called[1]}")
        if len(path) > MOST_DEPTH or so_far.depth > MOST_DEPTH:
            raise ModelError(
                f"is called {MOST_DEPTH} deep; no more is read", where=where, item=f"function {at[1]}"
            )


def _with(so_far: _Size, node: onnx.NodeProto, called: _Size | None) -> _Size:
    """Return a function's size with one more node: a call, or one that stays."""
    refs = sum(1 for a in node.attribute if a.ref_attr_name)
    if called is None:
        called = _Size(1, node.ByteSize())
    return _Size(
        so_far.nodes + called.nodes,
        so_far.bytes + called.bytes,
        so_far.refs + called.refs + refs,
        max(so_far.depth, called.depth + 1),
    )
