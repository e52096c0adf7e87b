"""The expected outputs of executions: those of a plain run of the pieces, near the whole network's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onchip.base.errors import Mismatch
from onchip.multi_dnn.local.pieces import Cut
from onchip.multi_dnn.local.plain import Task, plain_runs
from onchip.multi_dnn.schedule import Schedule
from onchip.run.compare import relative_difference

__all__ = ["TOLERANCE", "Comparison", "Expected", "Recorder", "Row", "expect", "rows_of"]

Array = np.ndarray[Any, Any]

TOLERANCE = 1e-4
"""Largest difference of an output from the whole network in unoptimised onnxruntime, over the output's
largest magnitude. Where values are rounded to fewer than 32 bits no figure holds, and none is required."""

_PLAIN = "onnxruntime-plain"

Row = tuple[str, ...]
"""The engine of each group of a run."""


def rows_of(schedule: Schedule, engines: Sequence[str]) -> dict[tuple[int, int], Row]:
    """Return the engines of every run, by (job, run); `engines` are those of the units."""
    return {
        (j, r): tuple(engines[unit] for unit in row)
        for j, runs in enumerate(schedule.units)
        for r, row in enumerate(runs)
    }


@dataclass(frozen=True)
class Expected:
    """Outputs by input set: of pieces, each in its engine, in one process, and of whole networks."""

    pieces: dict[tuple[Cut, Row], list[dict[str, Array]]]
    whole: dict[Cut, list[dict[str, Array]]]


def expect(
    wanted: Iterable[tuple[Cut, Row]],
    inputs: Mapping[Cut, Sequence[Mapping[str, Array]]],
    patience: float,
) -> Expected:
    """Run the pieces of all `wanted` in sequence in one process, and each network whole, unoptimised.

    Raises `ModelError` for a model that an engine refuses, `WorkerLost` when the process dies or hangs.
    """
    pieces = list(dict.fromkeys(wanted))
    whole = list(dict.fromkeys(cut for cut, _ in pieces))
    tasks = [Task(cut, tuple(zip(cut.pieces, row, strict=True)), inputs[cut]) for cut, row in pieces]
    tasks += [Task(cut, ((cut.whole, _PLAIN),), inputs[cut]) for cut in whole]
    found = plain_runs(tasks, patience)
    return Expected(
        dict(zip(pieces, found[: len(pieces)], strict=True)),
        dict(zip(whole, found[len(pieces) :], strict=True)),
    )


@dataclass
class Comparison:
    """Compares the outputs of runs with the expected ones, and counts.

    `differences` are the largest from the whole network, relative; None where rounding decides.
    """

    expected: Expected
    compared: int = 0
    differences: dict[Cut, float | None] = field(init=False)

    def __post_init__(self) -> None:
        self.differences = {cut: 0.0 if _is_smooth(cut) else None for cut in self.expected.whole}
        self._near: set[tuple[Cut, Row, int]] = set()

    def compare(self, cut: Cut, row: Row, chosen: int, outputs: Mapping[str, Array], who: str) -> None:
        """Compare the outputs of one run on input set `chosen`; raises `Mismatch` naming `who` and which."""
        plain, whole = self.expected.pieces[cut, row][chosen], self.expected.whole[cut][chosen]
        for name, value in outputs.items():
            self.compared += 1
            if not _same(value, plain[name]):
                raise Mismatch(f"{who}: output {name} is not bit for bit that of a plain run")
        if (cut, row, chosen) in self._near:
            return  # equal to an output that was already compared with the whole
        self._near.add((cut, row, chosen))
        for name, value in outputs.items():
            if set(row) == {_PLAIN} and not _has_halves(cut):
                if not _same(value, whole[name]):
                    raise Mismatch(f"{who}: output {name} is not bit for bit that of the whole network")
                continue
            worst = self.differences[cut]
            if worst is None:
                continue
            difference = relative_difference(value, whole[name])
            if not difference <= TOLERANCE:
                raise Mismatch(
                    f"{who}: output {name} differs from the whole network, unoptimised, by {difference:.3g},"
                    f" relative; {TOLERANCE:g} is tolerated"
                )
            self.differences[cut] = max(worst, difference)


class Recorder:
    """Keeps the outputs of runs of any number of schedules, each different one once, to compare at the end.

    It is for runs that are not known beforehand: one plain run serves for all of them. Outputs that differ
    between runs of the same pieces in the same engines on the same input raise a `Mismatch` at once.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[Cut, Row, int], dict[str, Array]] = {}
        self._count = 0

    def record(self, cut: Cut, row: Row, chosen: int, outputs: Mapping[str, Array], who: str) -> None:
        """Keep a run's outputs; raises `Mismatch` where they differ from an earlier run's."""
        first = self._made.setdefault((cut, row, chosen), {})
        for name, value in outputs.items():
            self._count += 1
            if name not in first:
                first[name] = value.copy()
            elif not _same(value, first[name]):
                raise Mismatch(f"{who}: output {name} is not bit for bit that of the run before")

    def compare(self, inputs: Mapping[Cut, Sequence[Mapping[str, Array]]], patience: float) -> int:
        """Compare all outputs with a plain run; return how many they were. Raises as `Comparison`."""
        comparison = Comparison(expect([(cut, row) for cut, row, _ in self._made], inputs, patience))
        for (cut, row, chosen), outputs in self._made.items():
            who = f"network {cut.network.name} on {', '.join(row)}"
            comparison.compare(cut, row, chosen, outputs, who)
        return self._count


def _same(found: Array, expected: Array) -> bool:
    return found.shape == expected.shape and found.tobytes() == expected.tobytes()


def _has_halves(cut: Cut) -> bool:
    """Return whether values are in half precision: onnxruntime rounds them only at the ends of pieces."""
    return any(d.kind == "f" and d.itemsize < 4 for d in cut.dtype.values())


def _is_smooth(cut: Cut) -> bool:
    """Return False where rounding is arbitrary: indices and steps, half precision, quantised operators."""
    return (
        all(cut.dtype[name].kind == "f" for name in cut.outputs)
        and not _has_halves(cut)
        and not any(
            "Quantize" in n.op_type or n.op_type.startswith("QLinear") or n.op_type.endswith("Integer")
            for n in cut.executable.model.graph.node
        )
    )
