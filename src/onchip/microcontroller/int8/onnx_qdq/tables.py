"""The tables of a `.tflite` file while they are written: tensors, nodes, and the bytes of constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onchip.microcontroller.int8.onnx_qdq.steps import AS_FLOATS
from onchip.readers.tflite_graph import Node, Quantisation, TensorRow, TfliteGraph

__all__ = ["FLOAT32", "INT8", "INT32", "Tables"]

FLOAT32, INT8, INT32 = 1, 3, 6  # ONNX's element types
_STATED = {FLOAT32: "FLOAT32", INT8: "INT8", INT32: "INT32"}
_KIND = {INT8: "i1", INT32: "<i4"}


@dataclass
class Tables:
    """Rows and nodes so far; names of rows are made different."""

    where: str
    rows: list[TensorRow] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    content: bytearray = field(default_factory=bytearray)
    names: set[str] = field(default_factory=set)
    spare: int = 0
    """The first number behind those of the file's nodes: of operators that one node becomes besides."""

    def row(
        self,
        name: str,
        shape: Sequence[int],
        element: int = INT8,
        quantisation: Quantisation | None = None,
        data: np.ndarray[Any, Any] | None = None,
    ) -> int:
        """Add a tensor; return its number. One of floats that no file has is named as its bytes."""
        name = name.removesuffix(AS_FLOATS)
        unique, number = name, 2
        while unique in self.names:
            unique, number = f"{name}_{number}", number + 1
        self.names.add(unique)
        at = None
        if data is not None:
            start = len(self.content)
            self.content += np.ascontiguousarray(data).astype(_KIND[element]).tobytes()
            at = (start, len(self.content))
        index = len(self.rows)
        stated = _STATED[element]
        self.rows.append(TensorRow(index, unique, tuple(shape), element, stated, at, False, quantisation))
        return index

    def rename(self, index: int, name: str) -> None:
        """Give a row an output's name; another row of that name gets this row's."""
        old = self.rows[index].name
        for row in self.rows:
            if row.name == name:
                self.rows[row.index] = replace(row, name=old)
        self.rows[index] = replace(self.rows[index], name=name)

    def whole(self, name: str, values: Any) -> int:
        """Add a constant of whole numbers."""
        data = np.asarray(values, np.int32)
        return self.row(name, data.shape, INT32, None, data)

    def node(
        self,
        index: int,
        type: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        beta: float = 1.0,
        **options: Any,
    ) -> None:
        """Add an operator; `beta` is the real number that some have."""
        reals = {"Beta": beta, "Alpha": beta}
        if any((node.type, node.index) == (type, index) for node in self.nodes):
            index, self.spare = self.spare, self.spare + 1
        self.nodes.append(Node(index, type, tuple(inputs), tuple(outputs), options, reals))

    def graph(self, inputs: Sequence[int], outputs: Sequence[int]) -> TfliteGraph:
        """Return the file's graph."""
        return TfliteGraph(
            self.where,
            bytes(self.content),
            tuple(self.rows),
            tuple(self.nodes),
            tuple(inputs),
            tuple(outputs),
        )
