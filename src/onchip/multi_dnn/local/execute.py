"""`run_schedule`: the whole of a schedule's execution on this machine, from pieces to the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np

from onchip.base.errors import Mismatch, UsageError
from onchip.multi_dnn.local.order import violations
from onchip.multi_dnn.local.outcome import LocalReport, NetworkOutcome
from onchip.multi_dnn.local.outputs import TOLERANCE, Comparison, expect, rows_of
from onchip.multi_dnn.local.pieces import Cut
from onchip.multi_dnn.local.runtime import PATIENCE, Runtime
from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Workload

__all__ = ["INPUT_SETS", "TOLERANCE", "run_schedule"]

Array = np.ndarray[Any, Any]

INPUT_SETS = 2


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
    rows = rows_of(schedule, runtime.engines)
    expected = expect([(of_job[j], row) for (j, _), row in rows.items()], inputs, patience)
    comparison = Comparison(expected)

    def seen(job: int, run: int, chosen: int, outputs: Mapping[str, Array]) -> None:
        who = f"network {workload.jobs[job].name}, run {run}"
        comparison.compare(of_job[job], rows[job, run], chosen, outputs, who)

    say("running the schedule")
    execution = runtime.run(workload, schedule, of_job, inputs, rounds=rounds, seen=seen)
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
            NetworkOutcome(
                job.name, predicted.latency_ms[j], best.latency_ms[j], comparison.differences[of_job[j]]
            )
            for j, job in enumerate(workload.jobs)
        ),
        frames=workload.frames,
        rounds=len(execution.rounds),
        steps=sum(map(len, schedule.order)),
        outputs_compared=comparison.compared,
        order_violations=0,
        predicted_ms=predicted.makespan_ms,
        measured_ms=min(spans),
        median_ms=median(spans),
        predicted_fps=predicted.fps,
        measured_fps=best.fps,
        tolerance=TOLERANCE,
        notes=runtime.notes,
        interrupted=len(execution.rounds) < rounds,
        undisturbed=execution.undisturbed,
    )
