"""`--cache`: an output that is an input with new elements behind it stays where the input lies.

A decoder of text reads keys and values of all words so far, appends those of one more, and hands all of them
back. Whoever runs it keeps one buffer for all, in which the new ones are written behind the others. So the
network's output is what is new, and nothing of what was there is written again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from onchip.base.errors import UsageError

if TYPE_CHECKING:
    import onnx

__all__ = ["with_caches"]


def with_caches(content: bytes, pairs: str) -> bytes:
    """Return an ONNX file's bytes in which what is appended to each cache is the output, not the whole.

    `pairs` is INPUT=OUTPUT,...; a `*` in both stands for the same text. A file that is no ONNX model is
    returned unchanged, for the reader to refuse. Raises `UsageError` for a pair that names no input and
    output of the model, or whose output is not the input with something behind it.
    """
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, ValueError, RecursionError):
        return content
    graph = model.graph
    constant = {tensor.name for tensor in graph.initializer}
    inputs = [value.name for value in graph.input if value.name not in constant]
    outputs = [value.name for value in graph.output]
    makers = {name: node for node in graph.node for name in node.output if name}
    renamed: dict[str, str] = {}
    for text in pairs.split(","):
        for first, last in _named(text, inputs, outputs):
            if last in renamed:
                raise UsageError(f"{last} is in two caches", item=f"--cache {text}")
            renamed[last] = _appended(graph, makers, first, last, f"--cache {text}")
    kept = list(graph.output)
    elements = {value.name: value.type.tensor_type.elem_type for value in kept}
    del graph.output[:]
    for value in kept:
        name = renamed.get(value.name, value.name)
        if name in (made.name for made in graph.output):
            continue
        if name != value.name:
            value = onnx.helper.make_tensor_value_info(name, elements[value.name], None)
        graph.output.append(value)
    return bytes(model.SerializeToString(deterministic=True))


def _named(text: str, inputs: Sequence[str], outputs: Sequence[str]) -> list[tuple[str, str]]:
    """Return the inputs and outputs that a pair names."""
    reason = "is not INPUT=OUTPUT of an input and an output that the model has"
    for equals in (m.start() for m in re.finditer("=", text)):
        first, last = text[:equals], text[equals + 1 :]
        if first in inputs and last in outputs:
            return [(first, last)]
        if first.count("*") != 1 or last.count("*") != 1:
            continue
        before, behind = first.split("*")
        found = []
        for name in inputs:
            if len(name) < len(first) - 1 or not (name.startswith(before) and name.endswith(behind)):
                continue
            other = last.replace("*", name[len(before) : len(name) - len(behind)])
            if other in outputs:
                found.append((name, other))
            else:
                reason = f"there is an input {name}, and no output {other}"
        if found:
            return found
    raise UsageError(reason, item=f"--cache {text}")


def _appended(
    graph: onnx.GraphProto, makers: dict[str, onnx.NodeProto], first: str, last: str, item: str
) -> str:
    """Return the name of what stands behind the input in the output."""

    def origin(name: str) -> str:
        for _ in range(len(graph.node)):  # a file may have circles
            if name not in makers or makers[name].op_type != "Identity" or not makers[name].input:
                break
            name = makers[name].input[0]
        return name

    node = makers.get(origin(last))
    if node is None or node.op_type != "Concat" or len(node.input) < 2 or origin(node.input[0]) != first:
        raise UsageError(
            f"{last} is not {first} with new elements behind it: no Concat makes it so", item=item
        )
    if len(node.input) == 2:
        return str(node.input[1])
    import onnx

    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)

    name = f"{last}.new"
    while name in makers:
        name += "."
    made = onnx.helper.make_node("Concat", list(node.input[1:]), [name], name, axis=axis)
    at = list(graph.node).index(node)
    graph.node.insert(at, made)
    makers[name] = made
    return name
