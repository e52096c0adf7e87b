"""The place of every computed tensor of a `.tflite` file: in bytes of its own, or in a range of another's.

Reshapes, and slices and splits whose bytes lie side by side, move nothing: their outputs are other shapes, or
views, of their operands. Any other rearranging node is an operator that copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onchip.readers.elements import value_bytes
from onchip.readers.layout import Layout
from onchip.readers.tflite_graph import Node, TfliteGraph
from onchip.readers.tflite_traits import SAME_BYTES

__all__ = ["Place", "cuts", "find_places"]

Cut = tuple[int, int, int, int]
"""(axis, start, count, step)"""


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor's elements are those of `root` from element `offset` on; `via` is the node in between."""

    root: int
    offset: int
    via: Node | None = None
    source: int = -1


def find_places(
    graph: TfliteGraph, nodes: list[Node], inputs: list[int], dtype: Literal["file", "int8", "int16"]
) -> dict[int, Place]:
    """Return the places of the network's inputs and of every tensor that `nodes` (in order) compute.

    Raises `ModelError` naming the node for a reshape to another number of elements.
    """
    of = {t: Place(t, 0) for t in inputs}
    for node in nodes:
        moved = _moved(graph, node, of, dtype)
        of |= moved if moved is not None else {t: Place(t, 0) for t in node.outputs if t >= 0}
    return of


def _moved(
    graph: TfliteGraph, node: Node, of: dict[int, Place], dtype: Literal["file", "int8", "int16"]
) -> dict[int, Place] | None:
    """Return the places of the outputs of a node that moves no bytes; None if it computes or copies."""
    rows = graph.tensors
    position = 1 if node.type == "SPLIT" else 0
    if len(node.inputs) <= position or node.inputs[position] not in of:
        return None
    source = node.inputs[position]
    whole = Layout.whole(rows[source].shape)
    found: list[Layout | None]
    if node.type in SAME_BYTES:
        elements = rows[node.outputs[0]].elements
        if elements != whole.size:
            raise graph.refuse(f"makes {elements:,} elements of {whole.size:,}", node.label)
        found = [whole]
    elif _keeps_order(graph, node, whole):
        found = [whole]
    else:
        parts = cuts(graph, node, rows[source].shape)
        if parts is None:
            return None
        found = [_sliced(whole, cut) for cut in parts]
    if len(found) != len(node.outputs) or min(node.outputs) < 0:
        return None
    result = {}
    for t, layout in zip(node.outputs, found, strict=True):
        if layout is None or not layout.contiguous or layout.size != rows[t].elements:
            return None
        if rows[t].element != rows[source].element:
            return None
        offset = of[source].offset + layout.offset
        bits = value_bytes(rows[t].element, (offset * 8,), dtype)
        if bits % 8:  # begins inside a byte
            return None
        result[t] = Place(of[source].root, offset, node, source)
    return result


def _keeps_order(graph: TfliteGraph, node: Node, whole: Layout) -> bool:
    """Return whether a node that may rearrange or repeat its one operand leaves every element in place."""
    match node.type:
        case "TRANSPOSE" if len(node.inputs) == 2:
            axes = graph.numbers(node.inputs[1])
            if axes is None or sorted(axes) != list(range(len(whole.shape))):
                return False
            return whole.transpose(axes).contiguous
        case "TILE" | "BROADCAST_TO" | "CAST":
            return graph.tensors[node.outputs[0]].elements == whole.size
        case "CONCATENATION" | "PACK" if len(node.inputs) == 1:
            return not node.options.get("FusedActivationFunction", 0)
    return False


def _sliced(layout: Layout, cut: list[Cut]) -> Layout | None:
    result: Layout | None = layout
    for axis, start, count, step in cut:
        if result is None:
            return None
        result = result.slice(axis, start, count, step)
    return result


def cuts(graph: TfliteGraph, node: Node, shape: tuple[int, ...]) -> list[list[Cut]] | None:
    """Return for each output of a slice or split its part of the operand; None if it is not stated."""
    numbers = [graph.numbers(t) if t >= 0 else None for t in node.inputs]
    match node.type, numbers:
        case "SLICE", [_, list(begin), list(size)] if len(begin) == len(size) == len(shape):
            ends = [n - b if s == -1 else s for n, b, s in zip(shape, begin, size, strict=True)]
            cut = [(axis, b, s, 1) for axis, (b, s) in enumerate(zip(begin, ends, strict=True))]
            return _inside(shape, [cut])
        case "STRIDED_SLICE", [_, list(begin), list(end), list(step)]:
            return _strided(node, shape, begin, end, step)
        case "SPLIT", [[axis], _]:
            return _parts(graph, node, shape, axis)
        case "SPLIT_V", [_, _, [axis]]:
            return _parts(graph, node, shape, axis)
        case "UNPACK", _ if "Axis" in node.options:
            return _parts(graph, node, shape, node.options["Axis"], counts=[1] * len(node.outputs))
    return None


def _parts(
    graph: TfliteGraph, node: Node, shape: tuple[int, ...], axis: int, counts: list[int] | None = None
) -> list[list[Cut]] | None:
    """Return one part after another along an axis, as wide as the outputs are."""
    if not -len(shape) <= axis < len(shape):
        return None
    axis %= len(shape)
    if counts is None:
        shapes = [graph.tensors[t].shape for t in node.outputs if t >= 0]
        if any(len(s) != len(shape) for s in shapes):
            return None
        counts = [s[axis] for s in shapes]
    starts = [sum(counts[:i]) for i in range(len(counts))]
    return _inside(shape, [[(axis, start, n, 1)] for start, n in zip(starts, counts, strict=True)])


def _strided(
    node: Node, shape: tuple[int, ...], begin: list[int], end: list[int], step: list[int]
) -> list[list[Cut]] | None:
    options = node.options
    if not options or options["EllipsisMask"] or options["NewAxisMask"] or options["Offset"]:
        return None
    if not len(begin) == len(end) == len(step) <= len(shape) or 0 in step:
        return None
    found = []
    for axis, (first, last, by) in enumerate(zip(begin, end, step, strict=True)):
        bit = 1 << axis
        if options["ShrinkAxisMask"] & bit:
            found.append((axis, first % shape[axis], 1, 1))
            continue
        part = slice(
            None if options["BeginMask"] & bit else first, None if options["EndMask"] & bit else last, by
        )
        indices = range(*part.indices(shape[axis]))
        if not indices:
            return None
        found.append((axis, indices[0], len(indices), by))
    return _inside(shape, [found])


def _inside(shape: tuple[int, ...], parts: list[list[Cut]]) -> list[list[Cut]] | None:
    """Return the parts if every one of them lies in the tensor and has elements, else None."""
    for cut in parts:
        for axis, start, count, step in cut:
            if count < 1 or start < 0 or not 0 <= start + (count - 1) * step < shape[axis]:
                return None
    return parts
