"""The engine of `.tflite` models: LiteRT with its reference kernels, in a process of its own.

An operator runs as a model of its own: the file with another list of operators, inputs and outputs in front
(`onchip.readers.tflite_rewrite`), so that options, weights and quantisation are the file's.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from onchip.base.errors import Mismatch, MissingExtra
from onchip.network import Network, Operator
from onchip.readers.source import TfliteExecutable
from onchip.readers.tflite_rewrite import rewritten
from onchip.run.compare import relative_difference
from onchip.run.slots import Slots
from onchip.run.tflite_child import Child
from onchip.run.weights import draw_input

__all__ = ["TfliteEngine"]

Array = np.ndarray[Any, Any]

OPTIMISED_TOLERANCE = 1e-4
"""Largest difference of a network output between the kernels, over that output's largest magnitude."""


class TfliteEngine:
    """LiteRT with one network; raises `MissingExtra` when it is not installed."""

    name = "LiteRT's reference kernels"
    optimised = "LiteRT's optimised kernels"

    def __init__(self, network: Network, slots: Slots, executable: TfliteExecutable) -> None:
        if find_spec("ai_edge_litert") is None:
            raise MissingExtra("tflite", "ai-edge-litert")
        self.child, self.other = Child(), Child()  # the second opinion runs on another core
        self.network, self.slots, self.executable = network, slots, executable
        self.notes: list[str] = []

    def seeded_inputs(self, seed: int) -> dict[int, Array]:
        """Return a value for each graph input; one that indexes a table is drawn within the table."""
        rows = self._tables()
        return {
            t.id: draw_input(
                t.name,
                self.slots.dtype[t.id],
                self.slots.shape[t.id],
                seed,
                rows.get(self.executable.value[t.id]),
            )
            for t in self.network.tensors
            if t.kind == "input"
        }

    def _tables(self) -> dict[int, int]:
        """Return the least extent of a constant table that each tensor indexes."""
        rows: dict[int, int] = {}
        graph = self.executable.graph
        for node in graph.nodes:
            at = {"GATHER": (0, 1), "GATHER_ND": (0, 1), "EMBEDDING_LOOKUP": (1, 0)}.get(node.type)
            if at is not None and len(node.inputs) > 1:
                table, index = (node.inputs[i] for i in at)
                least = min(graph.tensors[table].shape, default=1)
                rows[index] = min(least, rows.get(index, least))
        return rows

    def reference(self, inputs: Mapping[int, Array]) -> dict[int, Array]:
        """Return every tensor's value, from one run of the whole file with all tensors kept."""
        what = f"network {self.network.name}"
        content, value = self.executable.graph.content, self.executable.value
        rest = [t.id for t in self.network.tensors if t.id not in inputs]
        given = {value[t]: array for t, array in inputs.items()}
        found = self.child.run(content, given, [value[t] for t in rest], what, keep=True)
        return {**inputs, **{t: found[value[t]] for t in rest}}

    def kernel(self, op: Operator, operands: Mapping[int, Array]) -> Mapping[int, Array]:
        """Return one operator's outputs, run as a model of its own."""
        value = self.executable.value
        part = rewritten(
            self.executable.graph,
            operators=self.executable.nodes[op.id],
            inputs=[value[t] for t in op.inputs],
            outputs=[value[t] for t in op.outputs],
            bare=True,
        )
        given = {value[t]: operands[t] for t in op.inputs}
        found = self.child.run(part, given, [value[t] for t in op.outputs], f"operator {op.name}")
        return {t: found[value[t]] for t in op.outputs}

    def second_opinion(self, inputs: Mapping[int, Array], reference: Mapping[int, Array]) -> float:
        """Return the largest relative difference of an output; it is judged where all is floating point."""
        value, worst = self.executable.value, 0.0
        outputs = [t for t in self.network.outputs if t not in inputs]
        given = {value[t]: array for t, array in inputs.items()}
        found = self.other.run(
            self.executable.graph.content,
            given,
            [value[t] for t in outputs],
            f"network {self.network.name}, optimised",
            keep=True,
            optimised=True,
        )
        smooth = all(d.kind == "f" and d.itemsize >= 4 for d in self.slots.dtype)
        for t in outputs:
            difference = relative_difference(found[value[t]], reference[t])
            worst = max(worst, difference)
            if smooth and difference > OPTIMISED_TOLERANCE:
                raise Mismatch(
                    f"output {self.network.tensors[t].name}: {self.optimised} differ from the reference ones"
                    f" by {difference:.3g}, relative"
                )
        return worst
