"""The plain run, the reference of executions: the same networks in one process, piece after piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onchip.multi_dnn.local.memory import BumpAllocator, Place
from onchip.multi_dnn.local.pieces import Cut, Piece
from onchip.multi_dnn.local.processes import STATES, UnitProcesses
from onchip.multi_dnn.local.worker import Program, RunStep

__all__ = ["Task", "plain_runs"]

Array = np.ndarray[Any, Any]


class Task(NamedTuple):
    """A network's pieces with the engine of each, and the input sets to run it on."""

    cut: Cut
    pieces: tuple[tuple[Piece, str], ...]
    inputs: Sequence[Mapping[str, Array]]


def plain_runs(tasks: Sequence[Task], patience: float) -> list[list[dict[str, Array]]]:
    """Return the outputs of every task for each of its input sets, by name.

    Raises `ModelError` for a piece that its engine refuses, `WorkerLost` when the process dies or hangs.
    """
    with UnitProcesses(["plain"], [None], patience) as crew:
        crew.labels = lambda unit, number: "the plain run"
        loaded: dict[tuple[Cut, Piece, str], int] = {}
        for cut, pieces, _ in tasks:
            for number, (piece, engine) in enumerate(pieces):
                if (cut, piece, engine) not in loaded:
                    part = "whole" if piece is cut.whole else f"group {number}"
                    what = f"network {cut.network.name}, {part}"
                    crew.load({0: (engine, cut.model(piece, what), what)})
                    loaded[cut, piece, engine] = len(loaded)
        book, bindings, given, made = BumpAllocator(STATES), [], [], []
        for cut, pieces, inputs in tasks:
            for values in inputs:
                names = {*cut.inputs, *(name for piece, _ in pieces for name in piece.outputs)}
                places = {n: book.place(cut.dtype[n], cut.signature[n][1]) for n in sorted(names)}
                given.append((places, values))
                made.append({name: places[name] for name in cut.outputs})
                for piece, engine in pieces:
                    ends = ([places[n] for n in piece.inputs], [places[n] for n in piece.outputs])
                    bindings.append((loaded[cut, piece, engine], *ends))
        times = book.place(np.int64, (len(bindings), 2))
        crew.memory.resize(book.end)
        _lay_out(crew, given)
        steps = [RunStep(n, (), (), 0) for n in range(len(bindings))]
        crew.take([Program(book.end, 0, times, bindings, steps)])
        crew.go()
        results = iter([{n: crew.memory.array(p).copy() for n, p in places.items()} for places in made])
        return [[next(results) for _ in task.inputs] for task in tasks]


def _lay_out(crew: UnitProcesses, given: Sequence[tuple[Mapping[str, Place], Mapping[str, Array]]]) -> None:
    for places, values in given:
        for name, value in values.items():
            crew.memory.array(places[name])[...] = value
