"""Networks that change while they run: each frame runs the dynamic scheduler's current schedule.

The search continues in the scheduler's thread while frames run; a better schedule replaces the previous
one at a frame boundary. This is HaX-CoNN's dynamic variant (its 5.3) on the cores of this machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

import numpy as np

from onchip.base.errors import Mismatch, UsageError
from onchip.multi_dnn.local.execute import INPUT_SETS
from onchip.multi_dnn.local.order import violations
from onchip.multi_dnn.local.outputs import Recorder, Row, rows_of
from onchip.multi_dnn.local.pieces import Cut
from onchip.multi_dnn.local.runtime import PATIENCE, Execution, Installed, Round, Runtime
from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.workload import Workload

__all__ = ["Answer", "Live", "LiveFrame", "Scheduler", "at_leisure"]

Array = np.ndarray[Any, Any]


class Answer(Protocol):
    """A schedule of one frame of a set of networks."""

    @property
    def workload(self) -> Workload: ...

    @property
    def schedule(self) -> Schedule: ...


SWITCH_SECONDS = 0.0005
"""The time for which a background search may hold Python's lock against the thread that runs the frames."""

A = TypeVar("A", bound=Answer)
A_co = TypeVar("A_co", bound=Answer, covariant=True)
T = TypeVar("T")
P = ParamSpec("P")


class Scheduler(Protocol[A_co]):
    """Provides the schedule of the next frame: a `DynamicScheduler`."""

    def frame(self) -> A_co:
        """Return the schedule of the next frame; the same object as long as it is the same schedule."""


@dataclass(frozen=True, slots=True)
class LiveFrame(Generic[A]):
    """One frame that ran.

    `seconds` is its start, since the first one's; `milliseconds` its makespan; `answer` the scheduler's
    answer. `swapped` is whether the units had another schedule before, and `swap_ms` the time they took to
    install this one.
    """

    number: int
    seconds: float
    milliseconds: float
    answer: A
    swapped: bool
    swap_ms: float
    round: Round


class Live(Generic[A]):
    """Runs frame after frame on a runtime's units, each by the scheduler's answer.

    `cuts` are the networks, by job name, of every set that may occur. Every frame's order is checked, and
    with `checked` every output is kept, each different one once, for `compare`.
    """

    def __init__(
        self,
        runtime: Runtime,
        scheduler: Scheduler[A],
        cuts: Mapping[str, Cut],
        *,
        input_seed: int = 0,
        checked: bool = True,
    ) -> None:
        self._runtime, self._scheduler, self._cuts = runtime, scheduler, dict(cuts)
        self._inputs = {
            cut: [cut.draw_inputs(input_seed + n) for n in range(INPUT_SETS)]
            for cut in dict.fromkeys(self._cuts.values())
        }
        self._recorder = Recorder() if checked else None
        self._answer: A | None = None
        self._installed: Installed | None = None
        self._rows: dict[tuple[int, int], Row] = {}
        self._began: float | None = None
        self._number = 0

    def load(self, workload: Workload) -> None:
        """Have every unit load all pieces of these networks that it may have to run.

        Calling it before a change of sets avoids waiting for engines between frames. Raises
        `UsageError` for a network without a cut, and the errors of `Runtime.load`.
        """
        for job, cut in zip(workload.jobs, self._cuts_of(workload), strict=True):
            self._runtime.load(cut, job.profile)

    def frame(self) -> LiveFrame[A]:
        """Run the next frame.

        Raises `Mismatch` for a step out of order or an output unlike an earlier one of the same pieces, and
        the errors of the scheduler's `frame` and of `Runtime.run`.
        """
        answer = self._scheduler.frame()
        before = self._answer
        swapped = (
            before is None or answer.workload is not before.workload or answer.schedule is not before.schedule
        )
        began = monotonic()
        if swapped:
            self._take(answer)
        swap_ms = 1e3 * (monotonic() - began) if swapped else 0.0
        if self._began is None:
            self._began = monotonic()
        seconds = monotonic() - self._began
        made = self._run(answer)
        self._number += 1
        return LiveFrame(self._number - 1, seconds, made.makespan_ms, answer, swapped, swap_ms, made)

    def compare(self, patience: float = PATIENCE) -> int:
        """Compare the outputs of all frames with a plain run; return how many outputs that were.

        Raises `Mismatch` naming what differs, `UsageError` where outputs were not kept.
        """
        if self._recorder is None:
            raise UsageError("its outputs were not kept", where="live frames")
        return self._recorder.compare(self._inputs, patience)

    def _cuts_of(self, workload: Workload) -> list[Cut]:
        for job in workload.jobs:
            if job.name not in self._cuts:
                raise UsageError("there is no model to run", where=f"network {job.name}")
        return [self._cuts[job.name] for job in workload.jobs]

    def _take(self, answer: A) -> None:
        cuts = self._cuts_of(answer.workload)
        self._installed = self._runtime.install(answer.workload, answer.schedule, cuts, self._inputs)
        self._answer, self._rows = answer, rows_of(answer.schedule, self._runtime.engines)

    def _run(self, answer: A) -> Round:
        assert self._installed is not None
        cuts, recorder = self._cuts_of(answer.workload), self._recorder

        def seen(job: int, run: int, chosen: int, outputs: Mapping[str, Array]) -> None:
            assert recorder is not None
            who = f"frame {self._number}, network {answer.workload.jobs[job].name}"
            recorder.record(cuts[job], self._rows[job, run], chosen, outputs, who)

        made = self._installed.round(self._number, None if recorder is None else seen)
        times = Execution(answer.workload, answer.schedule, (made,)).times(0)
        wrong = violations(answer.workload, answer.schedule, times)
        if wrong:
            raise Mismatch(f"frame {self._number}: {len(wrong):,} steps out of order; {wrong[0]}")
        return made


def at_leisure(search: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Return the same search at idle priority: `DynamicScheduler(improver=at_leisure(...))`.

    Where the search has no core of its own, frames would have to share one with it. The kernel's idle policy
    for its thread prevents that: it runs while units wait, and hardly at all while they work. While it runs,
    Python's lock changes hands ten times as often, or frames would wait for that.
    """

    def searched(*arguments: P.args, **options: P.kwargs) -> Iterator[T]:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # 0: this thread alone
        before = sys.getswitchinterval()
        sys.setswitchinterval(min(before, SWITCH_SECONDS))
        try:
            yield from search(*arguments, **options)
        finally:
            sys.setswitchinterval(before)

    return searched
