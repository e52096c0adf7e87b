"""`run`: the whole of an execution, from a plan to its report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onchip.errors import InputError, Mismatch, ModelError, UsageError
from onchip.network import Network, Operator
from onchip.plan import Plan
from onchip.readers.source import Executable, Source
from onchip.run.compare import Comparison, largest_difference, relative_difference
from onchip.run.machine import Machine
from onchip.run.report import RunReport
from onchip.run.sessions import Subgraphs, runtime
from onchip.run.slots import Slots, make_slots
from onchip.run.source import source_of
from onchip.run.weights import Weights, seeded_inputs, seeded_weights

__all__ = ["run"]

Array = np.ndarray[Any, Any]

OPTIMISED_TOLERANCE = 1e-4


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
    say = progress or (lambda line: None)
    runtime()
    if tolerance is not None and not 0 <= tolerance < 1:
        raise UsageError("must be at least 0 and less than 1", item="tolerance")
    if checked:
        from onchip.check import check

        check(plan)
    executable = source_of(plan, source)
    network = plan.network
    slots = make_slots(network, executable)
    input_seed = seed if input_seed is None else input_seed

    say("filling weights")
    weights = seeded_weights(executable.model, seed, executable.folder)
    inputs = _inputs(network, slots, executable, input_seed)
    parts = Subgraphs(executable.model, weights.values)
    say("running the whole network in onnxruntime, unoptimised")
    reference = _reference(network, slots, executable, parts, inputs)
    say("running the whole network in onnxruntime, optimised")
    second = _second_opinion(network, slots, executable, parts, inputs, reference)

    signature = _signature(slots, executable)

    def kernel(op: Operator, operands: Mapping[int, Array]) -> Mapping[int, Array]:
        given = {slots.value[t]: value for t, value in operands.items()}
        wanted = [slots.value[t] for t in op.outputs]
        values = parts.run(given, signature, wanted, f"operator {op.name}")
        return dict(zip(op.outputs, values, strict=True))

    comparison = Comparison(reference, {t.id: t.name for t in network.tensors}, tolerance)
    try:
        machine = Machine(plan, slots, inputs, kernel, comparison)
        machine.execute(say)
    except MemoryError:
        raise InputError("does not fit in this machine's memory", item=f"budget {plan.budget:,}") from None
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
        optimised_difference=second,
        scale=slots.scale,
        budget_bytes=plan.budget,
        arena_bytes=machine.arena.size,
        moved=moved,
        seed=seed,
        input_seed=input_seed,
        seconds=time.perf_counter() - begin,
        notes=tuple(_notes(plan, slots, weights, machine)),
        digests=comparison.digests(),
    )


def _signature(slots: Slots, executable: Executable) -> dict[str, tuple[int, tuple[int, ...]]]:
    return {
        name: (element, shape)
        for name, element, shape in zip(slots.value, executable.dtype, slots.shape, strict=True)
    }


def _inputs(network: Network, slots: Slots, executable: Executable, seed: int) -> dict[int, Array]:
    ids = {slots.value[t.id]: t.id for t in network.tensors if t.kind == "input"}
    shapes = {name: (executable.dtype[t], slots.shape[t]) for name, t in ids.items()}
    return {ids[name]: value for name, value in seeded_inputs(executable.model, shapes, seed).items()}


def _reference(
    network: Network, slots: Slots, executable: Executable, parts: Subgraphs, inputs: Mapping[int, Array]
) -> dict[int, Array]:
    """Every tensor's value, from one unoptimised session over the whole network."""
    given = {slots.value[t]: value for t, value in inputs.items()}
    rest = [t.id for t in network.tensors if t.id not in inputs]
    names = list(dict.fromkeys(slots.value[t] for t in rest))
    values = parts.run(given, _signature(slots, executable), names, f"network {network.name}")
    found = dict(zip(names, values, strict=True))
    reference = {**inputs, **{t: found[slots.value[t]] for t in rest}}
    for t, value in reference.items():
        if value.shape != slots.shape[t] or value.dtype != slots.dtype[t]:
            raise ModelError(
                f"is {value.dtype}{list(value.shape)} when run, not {slots.dtype[t]}{list(slots.shape[t])}",
                item=f"tensor {network.tensors[t].name}",
            )
    return reference


def _second_opinion(
    network: Network,
    slots: Slots,
    executable: Executable,
    parts: Subgraphs,
    inputs: Mapping[int, Array],
    reference: Mapping[int, Array],
) -> float:
    """The largest relative difference between the outputs of the optimised and the unoptimised session."""
    outputs = [t for t in network.outputs if t not in inputs]
    if not outputs:
        return 0.0
    given = {slots.value[t]: value for t, value in inputs.items()}
    names = [slots.value[t] for t in outputs]
    values = parts.run(
        given, _signature(slots, executable), names, f"network {network.name}, optimised", optimise=True
    )
    worst = 0.0
    for t, value in zip(outputs, values, strict=True):
        difference = relative_difference(value, reference[t])
        worst = max(worst, difference)
        if difference > OPTIMISED_TOLERANCE and not _one_step_apart(value, reference[t]):
            raise Mismatch(
                f"output {network.tensors[t].name}: optimised and unoptimised onnxruntime differ by"
                f" {difference:.3g}, relative"
            )
    return worst


def _one_step_apart(a: Array, b: Array) -> bool:
    """Quantised values that rounding can put on either side of a step; half precision within its own."""
    if a.dtype.kind in "iu":
        return largest_difference(a, b) <= 1
    return a.dtype == np.float16 and relative_difference(a, b) <= 2e-2


def _notes(plan: Plan, slots: Slots, weights: Weights, machine: Machine) -> list[str]:
    notes = []
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
