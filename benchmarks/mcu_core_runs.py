"""What one file does on one emulated core: our program, and TensorFlow Lite Micro beside it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from mcu_judges import ARENA, Judge
from mcu_tflm import BOARD, Peer, program

from onchip.base.errors import OnchipError, TooLargeToEmulate
from onchip.machines.board import Board
from onchip.machines.cores import CORES, Core
from onchip.microcontroller.emulator import emulate
from onchip.microcontroller.emulator.verify import (
    inputs_of,
    program_files,
    reckoned_seconds,
    run_tight,
    verify,
)
from onchip.microcontroller.int8.model import Int8, Int8Model
from onchip.microcontroller.int8.onnx_qdq.read import onnx_model_of
from onchip.microcontroller.int8.read import model_of
from onchip.microcontroller.int8.reference import Session
from onchip.microcontroller.int8.shapes import macs
from onchip.microcontroller.network import network_of, states_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.result.row_choice import RowPlans, planned_by_method
from onchip.microcontroller.segments import SegmentOptions
from onchip.plans import Plan

RUNS = 3
ARENA_LEAST = 3 << 20
BESIDE_ARENA = 1 << 19
"""Bytes of RAM for all that TensorFlow Lite Micro has beside its arena."""

Result = dict[str, Any]


@dataclass(frozen=True)
class File:
    """A file of the list, read: its entry, and the network; planned and computed when that is asked for."""

    entry: dict[str, str]
    content: bytes
    model: Int8Model

    @property
    def work(self) -> int:
        return sum(macs(layer) for layer in self.model.layers)

    @property
    def widest(self) -> int:
        """The bytes of the tensors of one layer, of that which has the most."""
        sizes = self.model.tensors
        return max(sum(sizes[t].bytes for t in {*layer.inputs, layer.output}) for layer in self.model.layers)

    @property
    def key(self) -> str:
        return f"{self.entry['repository']}/{self.entry['path']}"

    @cached_property
    def plan(self) -> Plan:
        """The plan that `onchip mcu` takes where there is room."""
        model, states = self.model, states_of(self.model)
        options, network = SegmentOptions(), network_of(model)
        return planned_by_method(model, network, BOARD.ram_bytes, options, states, (), RowPlans()).plan

    @cached_property
    def expected(self) -> tuple[bytes, ...]:
        """What the reference makes of the inputs, one after the other."""
        session = Session(self.model)
        return tuple(session.bytes_of(self.model, x) for x in inputs_of(self.model, RUNS, seed=1))


def files_of(entries: list[dict[str, str]], folder: Path) -> Iterator[File]:
    for entry in entries:
        path = folder / entry["repository"].replace("/", "+") / entry["path"]
        content = path.read_bytes()
        try:
            read = onnx_model_of if path.suffix == ".onnx" else model_of
            yield File(entry, content, read(content, name=path.stem, where=path.name))
        except OnchipError as problem:
            print(f"{path}: {problem}", file=sys.stderr)


def ours(file: File, core: Core, folder: Path) -> Result:
    """What the program of the file does on a core."""
    board = Board("bench", core, 1 << 26, 1 << 26)
    model, answers = file.model, iter(file.expected)
    sources = sources_of(file.plan, model, forms=board.core_type.forms)
    try:
        made = verify(sources, model, board, folder, runs=RUNS, seed=1, reference=lambda *_: next(answers))
    except TooLargeToEmulate as problem:
        return {"left": str(problem)}
    image = made.image
    found = {"ram": image.ram_bytes, "stack": image.stack_bytes, "flash": image.flash_bytes}
    found |= {"instructions": made.total.instructions, "runs": made.runs, "bytes": made.output_bytes}
    kinds = {layer.name: type(layer).__name__ for layer in model.layers}
    name, most = max(made.by_layer.items(), key=lambda item: item[1].instructions)
    share = most.instructions / max(made.total.instructions, 1)
    found["layer"] = {"name": name, "kind": kinds[name], "share": share}
    return {**found, "different": made.different, "machines": list(made.machines)}


def only_bytes(file: File, core: Core, folder: Path) -> Result:
    """What the program of the file makes on a core, with no instructions counted."""
    board = Board("bench", core, 1 << 26, 1 << 26)
    model, expected = file.model, b"".join(file.expected)
    sources = sources_of(file.plan, model, forms=board.core_type.forms)
    given = b"".join(x.tobytes() for x in inputs_of(model, RUNS, seed=1))
    files, seconds = program_files(sources, model, marks=False), reckoned_seconds(model, RUNS)
    try:
        image, ran, different, machines = run_tight(
            files, board, folder, given, expected, RUNS, seconds, count=False
        )
    except TooLargeToEmulate as problem:
        return {"left": str(problem)}
    found = {"ram": image.ram_bytes, "stack": ran.stack_bytes, "flash": image.flash_bytes, "runs": RUNS}
    return {**found, "bytes": len(expected), "different": different, "machines": list(machines)}


def theirs(file: File, peer: Peer, folder: Path) -> Result:
    """What TensorFlow Lite Micro does on the core: its arena, stack and instructions."""
    from tflite_micro.python.tflite_micro import runtime

    if file.key.endswith(".onnx"):
        return {"left": "TensorFlow Lite Micro reads no ONNX files"}
    judge = Judge(file.content, file.model)
    if judge.name != "TFLM":
        return {"left": "TensorFlow Lite Micro does not run it"}
    interpreter = runtime.Interpreter.from_bytes(judge.content, arena_size=ARENA)
    x = inputs_of(file.model, 1, seed=1)[0].reshape(-1)
    ends = np.cumsum([file.model.tensors[t].bytes for t in file.model.inputs])[:-1]
    wanted = [interpreter.get_input_details(i) for i in range(len(judge.graph.inputs))]
    given = b"".join(part.tobytes() for part in judge.given(np.split(x, ends), wanted))
    try:
        room = CORES[peer.core].large.usable_ram - BESIDE_ARENA
        image = program(peer, judge.content, folder, min(max(ARENA_LEAST, 2 * file.widest), room))
        seconds = 4 * reckoned_seconds(file.model, 1)
        ran = emulate(image, {"in": given}, outputs=("out",), seconds=seconds)
    except OnchipError as problem:
        return {"left": f"{type(problem).__name__}: {problem}"}
    return {
        "arena": ran.report["arena"],
        "stack": ran.stack_bytes,
        "instructions": ran.by_mark[0].instructions,
        "different": _different(file, judge, interpreter, ran.files["out"]),
    }


def arena_of(file: File, peer: Peer, folder: Path) -> Result:
    """The arena of TensorFlow Lite Micro on the core once its tensors are allocated, or why there is none."""
    if file.key.endswith(".onnx"):
        return {"left": "TensorFlow Lite Micro reads no ONNX files"}
    room = CORES[peer.core].large.usable_ram - BESIDE_ARENA
    try:
        image = program(peer, Judge(file.content, file.model).content, folder, room, invoke=False)
        return {"bytes": emulate(image, count=False).report["arena"]}
    except OnchipError as problem:
        return {"left": f"{type(problem).__name__}: {problem}"}


def skips_scales(model: Int8Model) -> bool:
    """Tell whether a map is read at its own height after smaller ones were made, as in a U-Net.

    Networks with states are none: what they keep is read late at any height.
    """
    made = {layer.output: i for i, layer in enumerate(model.layers)}
    rows = [layer.output_shape[1] for layer in model.layers]
    return not model.states and any(
        1 < least < shape[1] <= rows[j]
        for j, layer in enumerate(model.layers)
        for t, shape in zip(layer.inputs, layer.input_shapes, strict=True)
        if t in made and (least := min((r for r in rows[made[t] + 1 : j] if r > 1), default=0))
    )


def _different(file: File, judge: Judge, interpreter: Any, made: bytes) -> int:
    """The elements of TensorFlow Lite Micro's outputs on the core that are not the reference's."""
    model, wrong, at, start = file.model, 0, 0, 0
    expected = np.frombuffer(file.expected[0], np.int8)
    places: dict[int, Int8] = {}
    for t in dict.fromkeys(model.outputs):
        places[t] = expected[start : start + model.tensors[t].bytes]
        start += model.tensors[t].bytes
    for i, t in enumerate(model.outputs):
        kind = np.dtype(interpreter.get_output_details(i)["dtype"])
        size = model.tensors[t].bytes * kind.itemsize
        wrong += judge.expected(t, places[t], np.frombuffer(made[at : at + size], kind))
        at += size
    return wrong
