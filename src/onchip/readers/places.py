"""The place of every value: the tensor that holds its bytes, and the order in which they are read.

Nodes that move no data (reshape, transpose, slice, split, ...) become layouts of the value they start from.
A layout whose bytes lie side by side is the tensor itself under another shape, or a view of a part of it.
Any other layout is left to the readers that accept it (`onchip.readers.traits.GATHERING`); if a reader does
not, or the value is an output of the network, the value is copied into a tensor of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from onchip.base.allowance import spend
from onchip.readers.constants import Constants
from onchip.readers.elements import BITS
from onchip.readers.layout import Layout
from onchip.readers.onnx_graph import Graph, Node
from onchip.readers.plain import plain_of
from onchip.readers.quantised import CONVERSIONS, Steps, steps_of
from onchip.readers.traits import reads_any_layout

__all__ = ["Place", "Places", "find_places"]

_RESHAPES = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"})
_ORDERED = frozenset({"Transpose", "Slice", "Split", "Gather", "GatherND"})


@dataclass(frozen=True, slots=True)
class Place:
    """The bytes of `root` that make up a value; `converted` if it is dequantised on the way, with `steps`.

    Quantised again by the same steps, it is those bytes themselves.
    """

    root: str
    layout: Layout
    converted: bool = False
    steps: Steps | None = None

    @property
    def bytes_as_they_lie(self) -> bool:
        """True if the value is a contiguous range of its root's memory, in order."""
        return not self.converted and self.layout.contiguous


@dataclass(frozen=True)
class Places:
    """`of` places every non-constant value; `copies` are the values that an operator must copy, with the
    places of their elements before that."""

    of: dict[str, Place]
    layout_nodes: frozenset[int]
    copies: dict[str, Place]


def find_places(graph: Graph, nodes: list[Node], constants: Constants, *, absorb: bool) -> Places:
    """Return the places of all values that `nodes` (live, in order) compute.

    `absorb` leaves dequantising to readers. Raises `ModelError` naming the node for a reshape to another
    number of elements or an index out of range.
    """
    copied: set[str] = set()
    while True:
        places, wanted = _place(graph, nodes, constants, absorb, copied)
        if wanted <= copied:
            return places
        copied |= wanted  # values placed through them may have other places now


def _place(
    graph: Graph, nodes: list[Node], constants: Constants, absorb: bool, copied: set[str]
) -> tuple[Places, set[str]]:
    """Return the places if the values in `copied` are copied, and the values that readers need copied."""
    of = {name: _whole(graph, name) for name in graph.inputs if name in graph.shape}
    layout_nodes: set[int] = set()
    wanted: set[str] = set()
    copies: dict[str, Place] = {}
    for node in nodes:
        spend(node.label)
        moved = _moved(graph, node, constants, of, absorb)
        if moved is not None and None in moved.values() and not of[node.inputs[0]].layout.contiguous:
            wanted.add(_copy_point(graph, node.inputs[0], of, layout_nodes))
            of[node.inputs[0]] = _whole(graph, node.inputs[0])
            moved = _moved(graph, node, constants, of, absorb)
        if moved is not None and None not in moved.values():
            layout_nodes.add(node.index)
            of |= {name: _whole(graph, name) if name in copied else p for name, p in moved.items() if p}
            copies |= {name: p for name, p in moved.items() if p and name in copied}
            continue
        of |= {name: _whole(graph, name) for name in node.outputs if name and name in graph.shape}
        crooked = {name for name in set(node.inputs) if name in of and not of[name].layout.contiguous}
        for position, name in enumerate(node.inputs if crooked else ()):
            if name in crooked and not _gathers(node, position, name):
                wanted.add(_copy_point(graph, name, of, layout_nodes))
    for name in graph.outputs:
        place = of.get(name)
        if place is None:
            continue
        if place.converted or place.layout.offset * BITS[graph.element[place.root]] % 8:
            wanted.add(name)
        elif not place.layout.contiguous:
            wanted.add(_copy_point(graph, name, of, layout_nodes))
    return Places(of, frozenset(layout_nodes), copies), wanted


def _gathers(node: Node, position: int, name: str) -> bool:
    """Return whether a node can read that operand permuted or strided."""
    plain = plain_of(node)
    if plain is node:
        return not node.domain and reads_any_layout(node.op, position)
    return name in plain.inputs and reads_any_layout(plain.op, plain.inputs.index(name))


def _whole(graph: Graph, name: str) -> Place:
    return Place(name, Layout.whole(graph.shape[name]))


def _copy_point(graph: Graph, name: str, of: dict[str, Place], layout_nodes: set[int]) -> str:
    """Return the value to copy so that `name` lies in order: `name`, or the value that it only reshapes."""
    while True:
        spend(name)
        node = graph.producer.get(name)
        if node is None or node.index not in layout_nodes or node.op in _ORDERED:
            return name
        before = of.get(node.inputs[0])
        if (
            before is None
            or before.layout.contiguous
            or before.root == node.inputs[0]
            or before.converted != of[name].converted
        ):
            return name
        name = node.inputs[0]


def _moved(
    graph: Graph, node: Node, constants: Constants, of: dict[str, Place], absorb: bool
) -> dict[str, Place | None] | None:
    """Return the places of a node's outputs if it moves no data (None for one without a layout).

    None altogether if the node computes.
    """
    node = plain_of(node) if node.op in CONVERSIONS else node
    if node.domain or not node.inputs or node.inputs[0] not in of:
        return _single(graph, node, of)
    source = of[node.inputs[0]]
    here = graph.shape[node.inputs[0]]
    out = node.outputs[0]
    if out not in graph.shape and node.op != "Split":
        return None
    layout = source.layout

    def at(result: Layout | None) -> Place | None:
        return None if result is None else Place(source.root, result, source.converted, source.steps)

    match node.op:
        case "Dropout":
            if not _inactive(node, constants) or not graph.read.isdisjoint(node.outputs[1:]):
                return None
            return {out: at(layout)}
        case "Cast" | "CastLike":
            return {out: at(layout)} if graph.element.get(out) == graph.element.get(node.inputs[0]) else None
        case "DequantizeLinear":
            if not absorb or not _settings(node, constants):
                return None
            return {out: Place(source.root, layout, True, steps_of(graph, node, constants))}
        case "QuantizeLinear" if source.converted and source.steps is not None:
            # What was dequantised, moved and quantised alike was only moved.
            alike = source.steps == steps_of(graph, node, constants)
            return {out: Place(source.root, layout)} if alike else None
        case "Transpose":
            return {out: at(layout.transpose(node.integers("perm") or tuple(reversed(range(len(here))))))}
        case "Slice":
            cut = _slices(graph, node, constants)
            return None if cut is None else {out: at(_sliced(layout, cut))}
        case "Gather":
            return _gathered(graph, node, constants, at, layout)
        case "GatherND":
            return _picked(graph, node, constants, at, layout)
        case "Split":
            return _split(graph, node, at, layout)
        case "Expand" | "Tile":
            same = math.prod(graph.shape[out]) == math.prod(here)
            return {out: at(layout.reshape(graph.shape[out]))} if same else None
        case op if op in _RESHAPES:
            try:
                return {out: at(layout.reshape(graph.shape[out]))}
            except ValueError as problem:
                raise graph.refuse(str(problem), node.label) from None
    return _single(graph, node, of)


def _single(graph: Graph, node: Node, of: dict[str, Place]) -> dict[str, Place | None] | None:
    """Return the operand's place for a concat, sum, ... of one operand."""
    if node.domain or node.op not in ("Concat", "Sum", "Max", "Min", "Mean") or len(node.inputs) != 1:
        return None
    place = of.get(node.inputs[0])
    if place is None or graph.shape.get(node.outputs[0]) != graph.shape.get(node.inputs[0]):
        return None
    return {node.outputs[0]: place}


def _inactive(node: Node, constants: Constants) -> bool:
    """Return whether a dropout is in inference mode."""
    if len(node.inputs) < 3 or not node.inputs[2]:
        return True
    value = constants.value(node.inputs[2])
    return value is not None and not value.any()


def _settings(node: Node, constants: Constants) -> bool:
    return all(name in constants for name in node.inputs[1:] if name)


def _slices(graph: Graph, node: Node, constants: Constants) -> list[tuple[int, int, int, int]] | None:
    """Return (axis, start, count, step) of each axis of a slice; None if its settings are not known."""
    shape = graph.shape[node.inputs[0]]
    lists: list[Any] = []
    if len(node.inputs) == 1:
        lists = [node.integers(key) for key in ("starts", "ends", "axes")]
        lists.append(None)
    else:
        for name in (*node.inputs[1:], "", "", "")[:4]:
            value = constants.value(name) if name else None
            if name and value is None:
                return None
            lists.append(None if value is None else [int(v) for v in value.reshape(-1)])
    starts, ends, axes, steps = lists
    if starts is None or ends is None:
        return None
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise graph.refuse("its starts, ends, axes and steps do not fit together", node.label)
    cut = []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if not -len(shape) <= axis < len(shape):
            raise graph.refuse(f"slices axis {axis} of {len(shape)}", node.label)
        indices = range(*slice(start, end, step).indices(shape[axis]))
        if not indices:
            raise graph.refuse(f"its output {node.outputs[0]} has zero bytes", node.label)
        cut.append((axis % len(shape), indices[0], len(indices), step))
    return cut


def _sliced(layout: Layout, cut: list[tuple[int, int, int, int]]) -> Layout | None:
    result: Layout | None = layout
    for axis, start, count, step in cut:
        if result is None:
            return None
        result = result.slice(axis, start, count, step)
    return result


def _gathered(
    graph: Graph, node: Node, constants: Constants, at: Any, layout: Layout
) -> dict[str, Place | None] | None:
    """Return the place of a gather by constant, evenly spaced indices: a slice."""
    if len(node.inputs) < 2 or node.inputs[1] not in constants:
        return None
    indices = constants.value(node.inputs[1])
    if indices is None or indices.size == 0:
        return None
    shape = graph.shape[node.inputs[0]]
    axis = node.integer("axis", 0) % max(1, len(shape))
    flat = [int(i) for i in indices.reshape(-1)]
    if any(not -shape[axis] <= i < shape[axis] for i in flat):
        raise graph.refuse(f"gathers beyond axis {axis} of {shape[axis]}", node.label)
    flat = [i % shape[axis] for i in flat]
    step = flat[1] - flat[0] if len(flat) > 1 else 1
    if step == 0 or any(b - a != step for a, b in pairwise(flat)):
        return None
    cut = layout.slice(axis, flat[0], len(flat), step)
    return {node.outputs[0]: at(None if cut is None else cut.reshape(graph.shape[node.outputs[0]]))}


def _picked(
    graph: Graph, node: Node, constants: Constants, at: Any, layout: Layout
) -> dict[str, Place | None] | None:
    """Return the place of a look-up by constant indices that are a range: a reshape or a part."""
    if len(node.inputs) < 2 or node.inputs[1] not in constants or node.integer("batch_dims", 0):
        return None
    indices = constants.value(node.inputs[1])
    shape, out = graph.shape[node.inputs[0]], node.outputs[0]
    if indices is None or not indices.size or not 0 < indices.shape[-1] <= len(shape):
        return None
    depth = indices.shape[-1]
    rows = indices.reshape(-1, depth)
    if (rows < -np.array(shape[:depth])).any() or (rows >= shape[:depth]).any():
        raise graph.refuse(f"gathers beyond {list(shape[:depth])}", node.label)
    places = np.ravel_multi_index(tuple((rows % shape[:depth]).T), shape[:depth])
    first, count = int(places[0]), len(places)
    if (places != np.arange(first, first + count)).any():
        return None
    flat = layout.reshape((math.prod(shape[:depth]), *shape[depth:]))
    cut = None if flat is None else flat.slice(0, first, count)
    return {out: at(None if cut is None else cut.reshape(graph.shape[out]))}


def _split(graph: Graph, node: Node, at: Any, layout: Layout) -> dict[str, Place | None] | None:
    shape = graph.shape[node.inputs[0]]
    axis = node.integer("axis", 0) % len(shape)
    result: dict[str, Place | None] = {}
    start = 0
    for name in node.outputs:
        if name not in graph.shape or not name:
            return None
        count = graph.shape[name][axis]
        if count == 0:
            raise graph.refuse(f"its output {name} has zero bytes", node.label)
        result[name] = at(layout.slice(axis, start, count))
        start += count
    return result
