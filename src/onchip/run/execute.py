"""`run`: the whole of an execution, from a plan to its report.

`machine.Machine` steps through the program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from onchip.base.errors import InputError, Mismatch, UsageError
from onchip.plans import Plan, Rings, Rows
from onchip.readers.source import Executable, Source, TfliteExecutable
from onchip.run.compare import Comparison
from onchip.run.engine import Engine, engine_of
from onchip.run.machine import Machine
from onchip.run.moved import BytesMoved
from onchip.run.report import RunReport
from onchip.run.slots import Slots, make_slots
from onchip.run.source import source_of
from onchip.run.tiled import Tiles
from onchip.run.told import Told, told_of

__all__ = ["refuse_other_bytes", "run"]

Array = np.ndarray[Any, Any]


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
    """Execute a plan in bytes and compare every tensor with the whole network, run as one.

    An ONNX model runs in onnxruntime, a `.tflite` one in LiteRT with its reference kernels.

    `source` is the model that the plan was made from: a `Source`, the path of the file if it moved, or None
    for the model that the plan names. Missing weights are drawn from `seed`, the input from `input_seed`
    (None: the same). With `checked`, the plan goes through the checker first. `progress` is called with a
    line now and then. Every tensor must equal the reference bit for bit, or within `tolerance` times its
    largest magnitude; the network's outputs must also be within 1e-4 of the runtime's optimised kernels.

    Raises `Mismatch` naming tensor, operator and instruction when they differ, when a tensor's bytes were
    overwritten, or when the bytes moved are not those the plan states; `IllegalPlan` for an instruction that
    cannot be executed; `InputError` when the model is not the one planned; `MissingExtra` without
    the runtime.
    """
    begin = time.perf_counter()
    if tolerance is not None and not 0 <= tolerance < 1:
        raise UsageError("must be at least 0 and less than 1", item="tolerance")
    if any(isinstance(group.tiling, Rings | Rows) for group in plan.groups):
        raise UsageError(
            "is for a microcontroller: `onchip run`, or `onchip.mcu(model, plan=plan, run=True)`, runs it",
            where=plan.network.name,
        )
    if checked:
        from onchip.check import check

        check(plan)
    told = told_of(plan)
    executable = source_of(plan, source)
    try:
        report = _run(
            told,
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
    told: Told,
    executable: Executable | TfliteExecutable,
    seed: int,
    input_seed: int,
    say: Callable[[str], None],
    tolerance: float | None,
) -> RunReport:
    plan = told.plan
    network, slots = plan.network, make_slots(plan.network, executable)
    say("filling weights")
    engine = engine_of(network, slots, executable, seed)
    inputs = engine.seeded_inputs(input_seed)
    say(f"running the whole network in {engine.name}")
    reference = engine.reference(inputs)
    names = {t.id: t.name for t in network.tensors}
    comparison = Comparison(reference, names, tolerance, engine.name, roots=network.root)
    tiles = Tiles(engine)
    machine = Machine(plan, slots, inputs, engine.kernel, comparison, tiles)
    with ThreadPoolExecutor(1) as other_core:
        second = other_core.submit(engine.second_opinion, inputs, reference)
        machine.execute(say)
        if plan.state:
            machine = _next_inference(plan, slots, engine, inputs, machine, tolerance, say)
        say(f"comparing with {engine.optimised}")
        optimised_difference = second.result()
    moved = machine.bytes_moved()
    refuse_other_bytes(moved, plan)
    return RunReport(
        network=network.name,
        operators=len(machine.ran),
        tensors=len(comparison.compared),
        comparisons=comparison.comparisons,
        bit_exact=comparison.bit_exact,
        max_difference=comparison.max_difference,
        optimised_difference=optimised_difference,
        scale=slots.scale,
        budget_bytes=told.budget,
        arena_bytes=machine.arena.size,
        moved=moved,
        seed=seed,
        input_seed=input_seed,
        seconds=0.0,
        notes=(*engine.notes, *told.notes, *_notes(told, slots, machine)),
        digests=comparison.digests(),
        engine=engine.name,
        optimised=engine.optimised,
        tiled=told.stated(tiles.moved),
        relative_difference=comparison.relative_difference,
        in_place_bytes=machine.in_place // slots.scale,
        joined=machine.joined,
        in_parts=tuple(machine.in_parts),
        streamed_whole=dict(machine.whole),
    )


def refuse_other_bytes(moved: BytesMoved, plan: Plan) -> None:
    """Raise `Mismatch` unless the copies moved the bytes that the plan states."""
    for key, counted, planned in (
        ("compulsory_bytes", moved.compulsory, plan.result.compulsory_bytes),
        ("reload_bytes", moved.reload, plan.result.reload_bytes),
        ("spill_bytes", moved.spill, plan.result.spill_bytes),
        ("weight_bytes", moved.weights, plan.result.weight_bytes),
    ):
        if counted != planned:
            raise Mismatch(f"{key}: the copies moved {counted:,} bytes, the plan states {planned:,}")
    if set(moved.between) != set(plan.result.moves) and plan.result.move_bytes is not None:
        raise Mismatch(f"the moves copied {moved.between}, the plan states {plan.result.moves}")


def _next_inference(
    plan: Plan,
    slots: Slots,
    engine: Engine,
    inputs: Mapping[int, Array],
    before: Machine,
    tolerance: float | None,
    say: Callable[[str], None],
) -> Machine:
    """Run the program again, on the state that its first execution left in the scratchpad."""
    network = plan.network
    after = dict(inputs)
    for pair in plan.state:
        first, last = network.tensor_id[pair.input], network.tensor_id[pair.output]
        value = before.comparison.reference[last]
        after[first] = value.reshape(inputs[first].shape).astype(inputs[first].dtype, copy=False)
    say("running the whole network on the state that was handed over")
    names = {t.id: t.name for t in network.tensors}
    comparison = Comparison(engine.reference(after), names, tolerance, engine.name, roots=network.root)
    machine = Machine(plan, slots, after, engine.kernel, comparison, Tiles(engine), before)
    machine.execute(say)
    return machine


def _notes(told: Told, slots: Slots, machine: Machine) -> list[str]:
    notes = []
    if told.plan.state:
        notes.append("executed twice: the second inference began with the state that the first one left")
    if machine.arena.size < told.budget * slots.scale:
        notes.append(
            f"the program reaches {machine.arena.size // slots.scale:,} of the budget's"
            f" {told.budget:,} bytes; only those were allocated"
        )
    return notes
