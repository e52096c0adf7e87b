"""`run`: the whole of an execution, from a plan to its report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from onchip.errors import InputError, Mismatch, ModelError, UsageError
from onchip.network import Network, Operator
from onchip.plan import Plan
from onchip.readers.source import Executable, Source
from onchip.run.compare import Comparison, relative_difference
from onchip.run.machine import Machine
from onchip.run.report import RunReport
from onchip.run.sessions import Signature, Subgraphs, runtime
from onchip.run.slots import Slots, make_slots
from onchip.run.source import source_of
from onchip.run.weights import Weights, seeded_inputs, seeded_weights

__all__ = ["run"]

Array = np.ndarray[Any, Any]

OPTIMISED_TOLERANCE = 1e-4
"""Largest difference of a network output between the two sessions, over that output's largest magnitude."""


def run(
    plan: Plan,
    source: Source | str | Path | None = None,
    *,
    seed: int = 0,
    input_seed: int | None = None,
    checked: bool = True,
    progress: Callable[[str], None] | None = None,
    tolerance: float | None = None,
) -> RunReport:
    """Execute a plan in bytes and compare every tensor with the whole network in onnxruntime.

    `source` is the model that the plan was made from: a `Source`, the path of the file if it moved, or None
    to read what the plan names. Missing weights are drawn from `seed`, the input from `input_seed` (None: the
    same). With `checked`, the plan goes through the checker first. `progress` is called with a line now and
    then. Every tensor must equal unoptimised onnxruntime bit for bit, or within `tolerance` times its largest
    magnitude; the network's outputs must also be within 1e-4 of the optimised one.

    Raises `Mismatch` naming tensor, operator and instruction when they differ, when a tensor's bytes were
    overwritten, or when the bytes moved are not those the plan states; `IllegalPlan` for an instruction that
    cannot be executed; `InputError` when the model is not the one planned; `MissingExtra` without
    onnxruntime.
    """
    begin = time.perf_counter()
    runtime()
    if tolerance is not None and not 0 <= tolerance < 1:
        raise UsageError("must be at least 0 and less than 1", item="tolerance")
    if checked:
        from onchip.check import check

        check(plan)
    executable = source_of(plan, source)
    try:
        report = _run(
            plan,
            executable,
            seed,
            seed if input_seed is None else input_seed,
            progress or (lambda line: None),
            tolerance,
        )
    except MemoryError:
        raise InputError("does not fit in this machine's memory", where=plan.network.name) from None
    return replace(report, seconds=time.perf_counter() - begin)


def _run(
    plan: Plan,
    executable: Executable,
    seed: int,
    input_seed: int,
    say: Callable[[str], None],
    tolerance: float | None,
) -> RunReport:
    network, slots = plan.network, make_slots(plan.network, executable)
    say("filling weights")
    weights = seeded_weights(executable.model, seed, executable.folder, executable.weights)
    whole = _Whole(network, slots, executable, Subgraphs(executable.model, weights.values))
    inputs = whole.seeded_inputs(input_seed)
    say("running the whole network in unoptimised onnxruntime")
    reference = whole.reference(inputs)
    comparison = Comparison(reference, {t.id: t.name for t in network.tensors}, tolerance)
    machine = Machine(plan, slots, inputs, whole.kernel, comparison)
    with ThreadPoolExecutor(1) as other_core:
        second = other_core.submit(whole.second_opinion, inputs, reference)
        machine.execute(say)
        if plan.state:
            machine = _next_inference(plan, slots, whole, inputs, machine, tolerance, say)
        say("comparing with optimised onnxruntime")
        optimised_difference = second.result()
    moved = machine.bytes_moved()
    for key, counted, planned in (
        ("compulsory_bytes", moved.compulsory, plan.result.compulsory_bytes),
        ("reload_bytes", moved.reload, plan.result.reload_bytes),
        ("spill_bytes", moved.spill, plan.result.spill_bytes),
    ):
        if counted != planned:
            raise Mismatch(f"{key}: the copies moved {counted:,} bytes, the plan states {planned:,}")
    return RunReport(
        network=network.name,
        operators=len(machine.ran),
        tensors=len(comparison.compared),
        comparisons=comparison.comparisons,
        bit_exact=comparison.bit_exact,
        max_difference=comparison.max_difference,
        optimised_difference=optimised_difference,
        scale=slots.scale,
        budget_bytes=plan.budget,
        arena_bytes=machine.arena.size,
        moved=moved,
        seed=seed,
        input_seed=input_seed,
        seconds=0.0,
        notes=tuple(_notes(plan, slots, weights, machine)),
        digests=comparison.digests(),
    )


def _next_inference(
    plan: Plan,
    slots: Slots,
    whole: _Whole,
    inputs: Mapping[int, Array],
    before: Machine,
    tolerance: float | None,
    say: Callable[[str], None],
) -> Machine:
    """The program once more, on the state that its first execution left in the scratchpad."""
    network = plan.network
    after = dict(inputs)
    for pair in plan.state:
        first, last = network.tensor_id[pair.input], network.tensor_id[pair.output]
        value = before.comparison.reference[last]
        after[first] = value.reshape(inputs[first].shape).astype(inputs[first].dtype, copy=False)
    say("running the whole network on the state that was handed over")
    names = {t.id: t.name for t in network.tensors}
    comparison = Comparison(whole.reference(after), names, tolerance)
    machine = Machine(plan, slots, after, whole.kernel, comparison, before)
    machine.execute(say)
    return machine


@dataclass(frozen=True)
class _Whole:
    """The model as a whole, run in onnxruntime: what the plan's execution is compared with."""

    network: Network
    slots: Slots
    executable: Executable
    parts: Subgraphs

    @cached_property
    def signature(self) -> Signature:
        return {
            name: (element, shape)
            for name, element, shape in zip(
                self.slots.value, self.executable.dtype, self.slots.shape, strict=True
            )
        }

    def by_value(self, values: Mapping[int, Array]) -> dict[str, Array]:
        """The same by ONNX name."""
        return {self.slots.value[t]: value for t, value in values.items()}

    def kernel(self, op: Operator, operands: Mapping[int, Array]) -> Mapping[int, Array]:
        """One operator on the original nodes."""
        wanted = [self.slots.value[t] for t in op.outputs]
        results = self.parts.run(self.by_value(operands), self.signature, wanted, f"operator {op.name}")
        return dict(zip(op.outputs, results, strict=True))

    def seeded_inputs(self, seed: int) -> dict[int, Array]:
        """A value for each graph input."""
        ids = {self.slots.value[t.id]: t.id for t in self.network.tensors if t.kind == "input"}
        shapes = {name: self.signature[name] for name in ids}
        return {
            ids[name]: value for name, value in seeded_inputs(self.executable.model, shapes, seed).items()
        }

    def reference(self, inputs: Mapping[int, Array]) -> dict[int, Array]:
        """Every tensor's value, from one unoptimised session over the whole network."""
        rest = [t.id for t in self.network.tensors if t.id not in inputs]
        names = list(dict.fromkeys(self.slots.value[t] for t in rest))
        what = f"network {self.network.name}"
        found = dict(
            zip(names, self.parts.run(self.by_value(inputs), self.signature, names, what), strict=True)
        )
        reference = {**inputs, **{t: found[self.slots.value[t]] for t in rest}}
        for t, value in reference.items():
            dtype, shape = self.slots.dtype[t], self.slots.shape[t]
            if value.shape != shape or value.dtype != dtype:
                raise ModelError(
                    f"is {value.dtype}{list(value.shape)} when run, not {dtype}{list(shape)}",
                    item=f"tensor {self.network.tensors[t].name}",
                )
        return reference

    def second_opinion(self, inputs: Mapping[int, Array], reference: Mapping[int, Array]) -> float:
        """The largest relative difference of the outputs between optimised and unoptimised onnxruntime."""
        outputs = [t for t in self.network.outputs if t not in inputs]
        names = list(dict.fromkeys(self.slots.value[t] for t in outputs))
        if not names:
            return 0.0
        what = f"network {self.network.name}, optimised"
        values = self.parts.run(self.by_value(inputs), self.signature, names, what, optimise=True)
        found, worst = dict(zip(names, values, strict=True)), 0.0
        for t in outputs:
            difference = relative_difference(found[self.slots.value[t]], reference[t])
            worst = max(worst, difference)
            if difference > OPTIMISED_TOLERANCE and self.is_smooth(t):
                raise Mismatch(
                    f"output {self.network.tensors[t].name}: optimised and unoptimised onnxruntime differ by"
                    f" {difference:.3g}, relative"
                )
        return worst

    def is_smooth(self, output: int) -> bool:
        """False where rounding may go either way: indices and steps, half precision, quantised operators."""
        return (
            self.slots.dtype[output].kind == "f"
            and all(d.kind != "f" or d.itemsize >= 4 for d in self.slots.dtype)
            and not any(
                "Quantize" in n.op_type or n.op_type.startswith("QLinear") or n.op_type.endswith("Integer")
                for n in self.executable.model.graph.node
            )
        )


def _notes(plan: Plan, slots: Slots, weights: Weights, machine: Machine) -> list[str]:
    notes = []
    if plan.state:
        notes.append("executed twice: the second inference began with the state that the first one left")
    if weights.seeded:
        notes.append(f"{len(weights.seeded):,} weights without data were filled from the seed")
    if weights.replaced:
        notes.append(
            f"{len(weights.replaced):,} weights that are one constant in the file were replaced from the seed"
        )
    if machine.arena.size < plan.budget * slots.scale:
        notes.append(
            f"the program reaches {machine.arena.size // slots.scale:,} of the budget's"
            f" {plan.budget:,} bytes; only those were allocated"
        )
    return notes
