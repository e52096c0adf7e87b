"""`run_schedule`: the whole of a schedule's execution on this machine, from pieces to the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from onchip.corun.schedule import Schedule
from onchip.corun.simulate import simulate
from onchip.corun.workload import Workload
from onchip.errors import Mismatch, UsageError
from onchip.run.compare import relative_difference
from onchip.run.local.order import violations
from onchip.run.local.outcome import LocalReport, NetworkOutcome
from onchip.run.local.pieces import Cut
from onchip.run.local.plain import Task, plain_runs
from onchip.run.local.runtime import PATIENCE, Runtime

__all__ = ["TOLERANCE", "run_schedule"]

Array = np.ndarray[Any, Any]

TOLERANCE = 1e-4
"""Largest difference of an output from the whole network in unoptimised onnxruntime, over the output's
largest magnitude. Where values are rounded to fewer than 32 bits no figure holds, and none is asked for."""

INPUT_SETS = 2
_PLAIN = "onnxruntime-plain"


def run_schedule(
    workload: Workload,
    schedule: Schedule,
    cuts: Mapping[str, Cut],
    *,
    rounds: int = 10,
    input_seed: int = 0,
    patience: float = PATIENCE,
    runtime: Runtime | None = None,
    progress: Callable[[str], None] | None = None,
) -> LocalReport:
    """Execute a schedule `rounds` times on the cores of this machine, and compare every output of every run.

    `cuts` are the networks, by job name (two jobs may share one). The units' names are the engines'. With
    `runtime`, its processes are used and stay. Ctrl-C after the first round ends with the rounds up to then.

    Raises `Mismatch` for an output that differs from the plain run in a bit or from the whole network by more
    than `TOLERANCE`, and for a step out of order; otherwise as `Runtime.run` does.
    """
    for job in workload.jobs:
        if job.name not in cuts:
            raise UsageError("there is no model to run", where=f"network {job.name}")
    predicted = simulate(workload, schedule)
    if runtime is None:
        with Runtime(workload.soc.unit_names, patience=patience) as own:
            return run_schedule(
                workload,
                schedule,
                cuts,
                rounds=rounds,
                input_seed=input_seed,
                patience=patience,
                runtime=own,
                progress=progress,
            )
    say = progress or (lambda _: None)
    of_job = [cuts[job.name] for job in workload.jobs]
    inputs = {
        cut: [cut.draw_inputs(input_seed + n) for n in range(INPUT_SETS)] for cut in dict.fromkeys(of_job)
    }
    say("running the networks in one process")
    expected = _expected(workload, schedule, of_job, inputs, runtime.engines, patience)
    say("running the schedule")
    checker = _Checker(workload, schedule, of_job, expected, runtime.engines)
    execution = runtime.run(workload, schedule, of_job, inputs, rounds=rounds, seen=checker.seen)
    for number in range(len(execution.rounds)):
        wrong = violations(workload, schedule, execution.times(number))
        if wrong:
            raise Mismatch(f"round {number}: {len(wrong):,} steps out of order; {wrong[0]}")
    best = execution.timeline(execution.best)
    spans = execution.makespans_ms()
    return LocalReport(
        soc=workload.soc.name,
        units=tuple(runtime.describe()),
        networks=tuple(
            NetworkOutcome(job.name, predicted.latency_ms[j], best.latency_ms[j], checker.differences[j])
            for j, job in enumerate(workload.jobs)
        ),
        frames=workload.frames,
        rounds=len(execution.rounds),
        steps=sum(map(len, schedule.order)),
        outputs_compared=checker.compared,
        order_violations=0,
        predicted_ms=predicted.makespan_ms,
        measured_ms=min(spans),
        median_ms=median(spans),
        predicted_fps=predicted.fps,
        measured_fps=best.fps,
        tolerance=TOLERANCE,
        notes=runtime.notes,
        interrupted=len(execution.rounds) < rounds,
    )


_Row = tuple[str, ...]
"""The engine of each group of a run."""


@dataclass(frozen=True)
class _Expected:
    """Outputs by input set: of the same pieces in one process, and of whole networks."""

    pieces: dict[tuple[Cut, _Row], list[dict[str, Array]]]
    whole: dict[Cut, list[dict[str, Array]]]


def _rows(workload: Workload, schedule: Schedule, engines: Sequence[str]) -> dict[tuple[int, int], _Row]:
    """The engines of every run of every job."""
    return {
        (j, r): tuple(engines[unit] for unit in row)
        for j in range(len(workload.jobs))
        for r, row in enumerate(schedule.units[j])
    }


def _expected(
    workload: Workload,
    schedule: Schedule,
    cuts: Sequence[Cut],
    inputs: Mapping[Cut, Sequence[Mapping[str, Array]]],
    engines: Sequence[str],
    patience: float,
) -> _Expected:
    runs = _rows(workload, schedule, engines)
    wanted = list(dict.fromkeys((cuts[j], row) for (j, _), row in runs.items()))
    tasks = [Task(cut, tuple(zip(cut.pieces, row, strict=True)), inputs[cut]) for cut, row in wanted] + [
        Task(cut, ((cut.whole, _PLAIN),), inputs[cut]) for cut in inputs
    ]
    found = plain_runs(tasks, patience)
    return _Expected(
        dict(zip(wanted, found[: len(wanted)], strict=True)),
        dict(zip(inputs, found[len(wanted) :], strict=True)),
    )


@dataclass
class _Checker:
    """Compares what runs have made, and counts."""

    workload: Workload
    schedule: Schedule
    cuts: Sequence[Cut]
    expected: _Expected
    engines: Sequence[str]
    compared: int = 0
    differences: list[float | None] = field(init=False)

    def __post_init__(self) -> None:
        self.differences = [0.0 if _is_smooth(cut) else None for cut in self.cuts]
        self._rows = _rows(self.workload, self.schedule, self.engines)
        self._near: set[tuple[int, _Row, int]] = set()

    def seen(self, job: int, run: int, chosen: int, outputs: Mapping[str, Array]) -> None:
        """Compare one run's outputs. Raises `Mismatch` naming network, run and output."""
        cut, row = self.cuts[job], self._rows[job, run]
        plain, whole = self.expected.pieces[cut, row][chosen], self.expected.whole[cut][chosen]
        who = f"network {self.workload.jobs[job].name}, run {run}"
        for name, value in outputs.items():
            self.compared += 1
            if not _same(value, plain[name]):
                raise Mismatch(f"{who}: output {name} is not bit for bit that of a plain run")
        if (job, row, chosen) in self._near:
            return  # equal to what was compared with the whole already
        self._near.add((job, row, chosen))
        for name, value in outputs.items():
            if set(row) == {_PLAIN} and not _has_halves(cut):
                if not _same(value, whole[name]):
                    raise Mismatch(f"{who}: output {name} is not bit for bit that of the whole network")
                continue
            worst = self.differences[job]
            if worst is None:
                continue
            difference = relative_difference(value, whole[name])
            if not difference <= TOLERANCE:
                raise Mismatch(
                    f"{who}: output {name} differs from the whole network, unoptimised, by {difference:.3g},"
                    f" relative; {TOLERANCE:g} is tolerated"
                )
            self.differences[job] = max(worst, difference)


def _same(found: Array, expected: Array) -> bool:
    return found.shape == expected.shape and found.tobytes() == expected.tobytes()


def _has_halves(cut: Cut) -> bool:
    """Whether values are in half precision: onnxruntime rounds them only where pieces begin and end."""
    return any(d.kind == "f" and d.itemsize < 4 for d in cut.dtype.values())


def _is_smooth(cut: Cut) -> bool:
    """False where rounding may go either way: indices and steps, half precision, quantised operators."""
    return (
        all(cut.dtype[name].kind == "f" for name in cut.outputs)
        and not _has_halves(cut)
        and not any(
            "Quantize" in n.op_type or n.op_type.startswith("QLinear") or n.op_type.endswith("Integer")
            for n in cut.executable.model.graph.node
        )
    )
