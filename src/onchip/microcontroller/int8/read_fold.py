"""Operators on whole numbers that are known when a file is read: they become constants.

Converters leave the computation of shapes in a file (SHAPE, STRIDED_SLICE, PACK in front of a RESHAPE),
though every shape is stated. What is computed lies behind the file's own bytes, as constants do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from onchip.base.errors import ModelError
from onchip.microcontroller.int8.move import strides_of
from onchip.microcontroller.int8.read_site import Site
from onchip.readers.tflite_graph import Node, TfliteGraph

__all__ = ["FOLDS", "folded"]

Whole = np.ndarray[Any, Any]
INT32, INT64 = 6, 7  # ONNX's element types
MOST = 64
"""The most numbers of a constant that is folded: shapes and places, no maps."""


def folded(graph: TfliteGraph) -> TfliteGraph:
    """Return the graph in which operators on known whole numbers are constants."""
    known: dict[int, Whole] = {}
    content = bytearray(graph.content)
    tensors, nodes = list(graph.tensors), []
    for node in graph.nodes:
        found = _value(graph, node, known)
        if found is None:
            nodes.append(node)
            continue
        [made] = node.outputs
        row = tensors[made]
        values = found.astype("<i4" if row.element == INT32 else "<i8")
        known[made] = values
        start = len(content)
        content += values.tobytes()
        tensors[made] = replace(row, data=(start, len(content)), shape=values.shape)
    if not known:
        return graph
    return replace(graph, content=bytes(content), tensors=tuple(tensors), nodes=tuple(nodes))


def _value(graph: TfliteGraph, node: Node, known: Mapping[int, Whole]) -> Whole | None:
    """Return what an operator makes; None where it is not known or no number."""
    count = len(graph.tensors)
    if (
        node.type not in FOLDS
        or len(node.outputs) != 1
        or any(not 0 <= t < count for t in (*node.inputs, *node.outputs))
    ):
        return None
    row = graph.tensors[node.outputs[0]]
    if row.element not in (INT32, INT64) or row.data is not None or node.outputs[0] in known:
        return None
    given: list[Whole] = []
    for t in node.inputs:
        if node.type == "SHAPE":
            given.append(np.array(graph.tensors[t].shape, np.int64))
            continue
        values = known.get(t)
        if values is None:
            values = graph.constant(t) if graph.tensors[t].element in (INT32, INT64) else None
        if values is None or values.size > MOST:
            return None
        given.append(values)
    try:
        found = FOLDS[node.type](Site(graph, node, {}, 0), given)
    except (ModelError, ValueError, IndexError, TypeError):
        return None
    return found if found.size <= MOST else None


def _pack(site: Site, given: list[Whole]) -> Whole:
    return np.stack(given, site.option("Axis", 0))


def _strided(site: Site, given: list[Whole]) -> Whole:
    begin, end, step = ([int(n) for n in part.ravel()] for part in given[1:])
    return np.asarray(given[0][strides_of(site, given[0].ndim, begin, end, step)])


def _reshape(site: Site, given: list[Whole]) -> Whole:
    return given[0].reshape(site.out.shape)


def _product(site: Site, given: list[Whole]) -> Whole:
    return np.asarray(prod(int(n) for n in given[0].ravel())).reshape(site.out.shape)


def _range(site: Site, given: list[Whole]) -> Whole:
    return np.arange(*(int(n.item()) for n in given))


FOLDS: Mapping[str, Callable[[Site, list[Whole]], Whole]] = {
    "ADD": lambda site, given: given[0] + given[1],
    "CAST": lambda site, given: given[0],
    "CONCATENATION": lambda site, given: np.concatenate(given, site.option("Axis", 0)),
    "EXPAND_DIMS": _reshape,
    "FLOOR_DIV": lambda site, given: given[0] // given[1],
    "GATHER": lambda site, given: np.take(given[0], given[1], site.option("Axis", 0)),
    "MAXIMUM": lambda site, given: np.maximum(given[0], given[1]),
    "MINIMUM": lambda site, given: np.minimum(given[0], given[1]),
    "MUL": lambda site, given: given[0] * given[1],
    "PACK": _pack,
    "RANGE": _range,
    "REDUCE_PROD": _product,
    "RESHAPE": _reshape,
    "SHAPE": lambda site, given: given[0],
    "SQUEEZE": _reshape,
    "STRIDED_SLICE": _strided,
    "SUB": lambda site, given: given[0] - given[1],
}
"""The result of each operator, from its operands."""
