"""A network's C on the emulated core: linked tightly, compared byte for byte, counted by layer.

The stack is measured in a build with room; then the program is linked with that stack and `STACK_MARGIN`
bytes more, and run again. The reported figures are of this second run, with all memory behind its linked RAM
closed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from onchip.base.errors import DoesNotFitBoard
from onchip.machines.board import MOST_BYTES, Board
from onchip.microcontroller.emulator.build import Image, build
from onchip.microcontroller.emulator.counting import Counts
from onchip.microcontroller.emulator.emulate import SECONDS, Emulation, emulate
from onchip.microcontroller.emulator.program import program_main
from onchip.microcontroller.int8.model import Int8, Int8Model
from onchip.microcontroller.int8.reference import Session
from onchip.microcontroller.int8.shapes import macs
from onchip.microcontroller.project import Sources

__all__ = ["STACK_MARGIN", "Verified", "inputs_of", "link", "reckoned_seconds", "verify"]

STACK_MARGIN = 40
"""Bytes of stack beyond the most that were used, in a program that is linked tightly: what an interrupt puts
there on a Cortex-M, eight words and one of alignment. An interrupt's own function needs its own besides."""

INSTRUCTIONS_A_SECOND = 1_000_000
"""A low estimate of the instructions that an emulator executes and counts in a second."""

_STACK = 8192


@dataclass(frozen=True)
class Verified:
    """A run of `runs` inputs: the bytes that differ, and the instructions of one inference.

    `image` is the program that ran on every one of `machines`; it used `stack_bytes` of its stack.
    `different` counts output bytes that differ from the reference, on all of them. `total` is of one
    inference, `by_layer` the same by layer, with the driver's part of each (measured in a build with marks,
    so that the sum is a little more than `total`).
    """

    image: Image
    runs: int
    output_bytes: int
    different: int
    stack_bytes: int
    total: Counts
    by_layer: Mapping[str, Counts]
    machines: tuple[str, ...] = ()

    @property
    def match(self) -> bool:
        return self.different == 0


def inputs_of(model: Int8Model, runs: int, seed: int = 0) -> list[Int8]:
    """Return random inputs, the same for the same seed; of several, all behind one another."""
    random = np.random.default_rng(seed)
    tensors = [model.tensors[t] for t in model.inputs]
    shape = tensors[0].shape if len(tensors) == 1 else (sum(t.bytes for t in tensors),)
    return [random.integers(-128, 128, shape).astype(np.int8) for _ in range(runs)]


def reckoned_seconds(model: Int8Model, runs: int) -> float:
    """Return an upper estimate of the seconds of so many inferences on the emulated core."""
    instructions = sum(
        8 * macs(layer) + 64 * sum(model.tensors[t].bytes for t in (*layer.inputs, layer.output))
        for layer in model.layers
    )
    return SECONDS + runs * instructions / INSTRUCTIONS_A_SECOND


def link(
    sources: Sources, model: Int8Model, board: Board, folder: Path, *, seconds: float | None = None
) -> Image:
    """Return the program that `verify` runs, linked for the board with no more stack than it needs.

    Raises `DoesNotFitBoard` with the bytes that are missing, `TooLargeToEmulate`, `MissingTool` and
    `BuildFailed`.
    """
    limit = reckoned_seconds(model, 1) if seconds is None else seconds
    files = program_files(sources, model, marks=False)
    used = stack_of(files, board, folder, bytes(sources.input_bytes), limit)
    return tight(files, board, folder, used, runs=1)


def verify(
    sources: Sources,
    model: Int8Model,
    board: Board,
    folder: Path,
    *,
    runs: int = 3,
    seed: int = 0,
    seconds: float | None = None,
    reference: Callable[[Int8Model, Int8], bytes] | None = None,
    given: Sequence[Int8] | None = None,
) -> Verified:
    """Build the network for the board, run it on `runs` random inputs and compare with the reference.

    Inputs that are `given` are run instead. A core that a second machine emulates runs there as well, where
    its memories hold the program. Another
    `reference` returns the output's bytes for an input, for example an interpreter's. No run of the
    emulator takes longer than `seconds`; the default is estimated from the network's work. Raises
    `DoesNotFitBoard`, `EmulationFailed` for a program that touches memory outside its own or does not end in
    time, `TooLargeToEmulate`, `MissingTool`.
    """
    inputs = inputs_of(model, runs, seed) if given is None else given
    runs = len(inputs)
    limit = reckoned_seconds(model, runs) if seconds is None else seconds
    judge = reference or Session(model).bytes_of
    expected = b"".join(judge(model, x) for x in inputs)
    content = b"".join(x.tobytes() for x in inputs)
    files, layers = program_files(sources, model, marks=False), len(model.layers)
    image, ran, different, machines = run_tight(files, board, folder, content, expected, runs, limit)
    marked = build(
        program_files(sources, model, marks=True),
        _roomy(board),
        folder / "marked",
        stack_bytes=_STACK,
        defines=("RUNS=1", "ONCHIP_MARKS"),
    )
    counted = emulate(marked, {"in": content}, outputs=("out",), memory=True, seconds=limit).by_mark
    return Verified(
        image,
        runs,
        len(expected),
        different,
        ran.stack_bytes,
        ran.by_mark[layers] // runs,
        {layer.name: counted.get(i, Counts()) for i, layer in enumerate(model.layers)},
        machines,
    )


def run_tight(
    files: Mapping[str, str],
    board: Board,
    folder: Path,
    content: bytes,
    expected: bytes,
    runs: int,
    seconds: float,
    *,
    count: bool = True,
) -> tuple[Image, Emulation, int, tuple[str, ...]]:
    """Link a program with no more stack than it needs and run it on every machine that emulates the core.

    Return it, its run on the first of them, the output bytes that differ from those `expected` on any, and
    the machines. Without `count` that run has no instructions, and is several times faster.
    """
    used = stack_of(files, board, folder, content, seconds)
    image = tight(files, board, folder, used, runs)
    ran = emulate(image, {"in": content}, outputs=("out",), count=count, memory=count, seconds=seconds)
    different = sum(a != b for a, b in zip(ran.files["out"], expected, strict=True))
    machines = [image.machine.name]
    also = board.core_type.also
    if also is not None and not image.beyond(also.usable_ram, also.flash.bytes):
        again = emulate(image, {"in": content}, outputs=("out",), count=False, seconds=seconds, machine=also)
        different += sum(a != b for a, b in zip(again.files["out"], expected, strict=True))
        machines.append(also.name)
    return image, ran, different, tuple(machines)


def _roomy(board: Board) -> Board:
    return replace(board, ram_bytes=MOST_BYTES, flash_bytes=MOST_BYTES)


def stack_of(files: Mapping[str, str], board: Board, folder: Path, content: bytes, seconds: float) -> int:
    """Return the bytes of stack that a program takes, measured in a build with room."""
    roomy = build(files, _roomy(board), folder, stack_bytes=_STACK, defines=("RUNS=1",))
    machine = roomy.machine
    if roomy.beyond(machine.usable_ram, machine.flash.bytes):
        least = replace(roomy, stack_bytes=0)
        if short := least.beyond(board.ram_bytes, board.flash_bytes):
            raise DoesNotFitBoard(board.name, short)
    return emulate(roomy, {"in": content}, outputs=("out",), count=False, seconds=seconds).stack_bytes


def tight(files: Mapping[str, str], board: Board, folder: Path, used: int, runs: int) -> Image:
    """Link a program with the stack that it has used, and the margin."""
    return build(
        files,
        board,
        folder,
        stack_bytes=-(-max(used + STACK_MARGIN, 64) // 8) * 8,
        defines=(f"RUNS={runs}",),
    )


def program_files(sources: Sources, model: Int8Model, *, marks: bool) -> dict[str, str]:
    """Return the sources of the program that runs a network on files of inputs; with `marks` by layer."""
    main = program_main([sources], "model.h", layers=len(model.layers), marks=marks)
    return {**sources.files, "main.c": main}
