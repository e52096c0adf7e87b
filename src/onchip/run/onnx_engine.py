"""The engine of ONNX models: onnxruntime with every optimisation off, on the original nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from onchip.base.errors import Mismatch, ModelError
from onchip.network import Network, Operator
from onchip.readers.source import Executable
from onchip.run.compare import relative_difference
from onchip.run.sessions import Signature, Subgraphs, runtime
from onchip.run.slots import Slots
from onchip.run.weights import Weights, seeded_inputs, seeded_weights

__all__ = ["OnnxEngine"]

Array = np.ndarray[Any, Any]

OPTIMISED_TOLERANCE = 1e-4
"""Largest difference of a network output between the two sessions, over that output's largest magnitude."""


@dataclass(frozen=True)
class OnnxEngine:
    """The model as a whole, run in onnxruntime: the reference of the plan's execution."""

    network: Network
    slots: Slots
    executable: Executable
    weights: Weights
    name: str = "unoptimised onnxruntime"
    optimised: str = "optimised onnxruntime"

    @classmethod
    def of(cls, network: Network, slots: Slots, executable: Executable, seed: int) -> OnnxEngine:
        """Return the engine, with weights that the model lacks drawn from `seed`."""
        runtime()
        where = network.source or network.name
        weights = seeded_weights(executable.model, seed, executable.folder, executable.weights, where=where)
        return cls(network, slots, executable, weights)

    @cached_property
    def parts(self) -> Subgraphs:
        return Subgraphs(self.executable.model, self.weights.values)

    @property
    def notes(self) -> list[str]:
        """Notes on the weights that were filled or replaced."""
        notes = []
        if self.weights.seeded:
            notes.append(f"{len(self.weights.seeded):,} weights without data were filled from the seed")
        if self.weights.replaced:
            count = len(self.weights.replaced)
            notes.append(f"{count:,} weights that are one constant in the file were replaced from the seed")
        return notes

    @cached_property
    def signature(self) -> Signature:
        return {
            name: (element, shape)
            for name, element, shape in zip(
                self.executable.value, self.executable.dtype, self.slots.shape, strict=True
            )
        }

    @cached_property
    def values(self) -> Signature:
        """Every value of the model, tensor or not, with (element type, shape)."""
        graph = self.executable.model.graph
        found = {}
        for info in (*graph.value_info, *graph.input, *graph.output):
            kind = info.type.tensor_type
            found[info.name] = (kind.elem_type, tuple(d.dim_value for d in kind.shape.dim))
        return {**found, **self.signature}

    def by_value(self, values: Mapping[int, Array]) -> dict[str, Array]:
        """Return the same by ONNX name."""
        return {self.executable.value[t]: value for t, value in values.items()}

    def kernel(self, op: Operator, operands: Mapping[int, Array]) -> Mapping[int, Array]:
        """Return one operator's outputs, computed by the original nodes."""
        wanted = [self.executable.value[t] for t in op.outputs]
        results = self.parts.run(self.by_value(operands), self.signature, wanted, f"operator {op.name}")
        return dict(zip(op.outputs, results, strict=True))

    def seeded_inputs(self, seed: int) -> dict[int, Array]:
        """Return a value for each graph input."""
        ids = {self.executable.value[t.id]: t.id for t in self.network.tensors if t.kind == "input"}
        shapes = {name: self.signature[name] for name in ids}
        return {
            ids[name]: value for name, value in seeded_inputs(self.executable.model, shapes, seed).items()
        }

    def reference(self, inputs: Mapping[int, Array]) -> dict[int, Array]:
        """Return every tensor's value, from one unoptimised session over the whole network."""
        rest = [t.id for t in self.network.tensors if t.id not in inputs]
        names = list(dict.fromkeys(self.executable.value[t] for t in rest))
        what = f"network {self.network.name}"
        found = dict(
            zip(names, self.parts.run(self.by_value(inputs), self.signature, names, what), strict=True)
        )
        reference = {**inputs, **{t: found[self.executable.value[t]] for t in rest}}
        for t, value in reference.items():
            dtype, shape = self.slots.dtype[t], self.slots.shape[t]
            if value.shape != shape or value.dtype != dtype:
                raise ModelError(
                    f"is {value.dtype}{list(value.shape)} when run, not {dtype}{list(shape)}",
                    item=f"tensor {self.network.tensors[t].name}",
                )
        return reference

    def second_opinion(self, inputs: Mapping[int, Array], reference: Mapping[int, Array]) -> float:
        """Return the largest relative difference of outputs between optimised and unoptimised onnxruntime."""
        outputs = [t for t in self.network.outputs if t not in inputs]
        names = list(dict.fromkeys(self.executable.value[t] for t in outputs))
        if not names:
            return 0.0
        what = f"network {self.network.name}, optimised"
        values = self.parts.run(self.by_value(inputs), self.signature, names, what, optimise=True)
        found, worst = dict(zip(names, values, strict=True)), 0.0
        for t in outputs:
            difference = relative_difference(found[self.executable.value[t]], reference[t])
            worst = max(worst, difference)
            if difference > OPTIMISED_TOLERANCE and self.is_smooth(t):
                raise Mismatch(
                    f"output {self.network.tensors[t].name}: optimised and unoptimised onnxruntime differ by"
                    f" {difference:.3g}, relative; the plan is held to the unoptimised one"
                )
        return worst

    def is_smooth(self, output: int) -> bool:
        """Return False where rounding is arbitrary: indices and steps, half precision, quantised values.

        So it is of products with an `accuracy_level` above 1 (float32): onnxruntime rounds their operands if
        it may pack the weights.
        """
        return (
            self.slots.dtype[output].kind == "f"
            and all(d.kind != "f" or d.itemsize >= 4 for d in self.slots.dtype)
            and not any(
                "Quantize" in n.op_type
                or n.op_type.startswith("QLinear")
                or n.op_type.endswith("Integer")
                or any(a.name == "accuracy_level" and a.i > 1 for a in n.attribute)
                for n in self.executable.model.graph.node
            )
        )
