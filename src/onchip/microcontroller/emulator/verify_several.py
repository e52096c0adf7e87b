"""Several networks in one program on the emulated core: in turns, in one array, compared byte for byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onchip.machines.board import Board
from onchip.microcontroller.emulator.build import Image
from onchip.microcontroller.emulator.counting import Counts
from onchip.microcontroller.emulator.program import program_main
from onchip.microcontroller.emulator.verify import (
    inputs_of,
    reckoned_seconds,
    run_tight,
    stack_of,
    tight,
)
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.int8.reference import Session
from onchip.microcontroller.project.several import SeveralSources

__all__ = ["VerifiedSeveral", "link_several", "verify_several"]


@dataclass(frozen=True)
class VerifiedSeveral:
    """A run of `runs` rounds, in each of which every network runs once, behind the one before it.

    `different` counts the output bytes that differ from the references', which keep each network's states
    from round to round. `by_network` are the instructions of one inference, by the network's name in C.
    """

    image: Image
    runs: int
    output_bytes: int
    different: int
    stack_bytes: int
    by_network: Mapping[str, Counts]
    machines: tuple[str, ...] = ()

    @property
    def match(self) -> bool:
        return self.different == 0


def link_several(
    sources: SeveralSources,
    models: Sequence[Int8Model],
    board: Board,
    folder: Path,
    *,
    seconds: float | None = None,
) -> Image:
    """Return the program that `verify_several` runs, linked with no more stack than it needs."""
    files, limit = _files(sources), _seconds(models, 1, seconds)
    content = bytes(sum(one.input_bytes for one in sources.networks))
    return tight(files, board, folder, stack_of(files, board, folder, content, limit), runs=1)


def verify_several(
    sources: SeveralSources,
    models: Sequence[Int8Model],
    board: Board,
    folder: Path,
    *,
    runs: int = 3,
    seed: int = 0,
    seconds: float | None = None,
) -> VerifiedSeveral:
    """Build one program of all networks, run them in turns on random inputs, compare with their references.

    Raises as `verify` does.
    """
    given = [inputs_of(model, runs, seed + i) for i, model in enumerate(models)]
    sessions = [Session(model) for model in models]
    content = b"".join(x.tobytes() for turn in zip(*given, strict=True) for x in turn)
    expected = b"".join(
        session.bytes_of(model, x)
        for turn in zip(*given, strict=True)
        for session, model, x in zip(sessions, models, turn, strict=True)
    )
    limit = _seconds(models, runs, seconds)
    image, ran, different, machines = run_tight(
        _files(sources), board, folder, content, expected, runs, limit
    )
    counts = {one.name: ran.by_mark[i] // runs for i, one in enumerate(sources.networks)}
    return VerifiedSeveral(image, runs, len(expected), different, ran.stack_bytes, counts, machines)


def _files(sources: SeveralSources) -> dict[str, str]:
    main = program_main(sources.networks, sources.header, layers=0, marks=False, arena=sources.arena)
    return {**sources.files, "main.c": main}


def _seconds(models: Sequence[Int8Model], runs: int, seconds: float | None) -> float:
    return sum(reckoned_seconds(model, runs) for model in models) if seconds is None else seconds
