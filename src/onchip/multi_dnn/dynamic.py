"""Schedules while the set of networks changes: HaX-CoNN's dynamic variant (its 3.5 and 5.3), and static sets.

`DynamicScheduler` answers a changed set at once with the best schedule it knows, continues to search in one
background thread, and hands out its results at frame boundaries. `StaticScheduler` has one schedule for each
known set, made beforehand, and only switches.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from onchip.base.errors import ProfileError, UsageError, WorkerLost
from onchip.multi_dnn.improvements import Stopped, improvements, naive
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.schedule import Schedule
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solution import Solution
from onchip.multi_dnn.solve import CorunResult, SolveOptions, solve
from onchip.multi_dnn.workload import Workload

__all__ = ["Answer", "DynamicScheduler", "Frame", "StaticScheduler", "frames_of"]

Improver = Callable[[Workload, Objective, Schedule, Stopped], Iterator[Solution]]
"""The type of `improvements`: better and better solutions until it ends or is told to stop."""

_OPTIONS = SolveOptions()
NAIVE, REMEMBERED = "naive", "known"
"""The solver of the first answer to a change."""
HISTORY = 4096
"""The number of answers in `DynamicScheduler.history`."""
PATIENCE = 30.0
"""Seconds within which a search must return once it was told to stop; one that does not is lost."""
KNOWN = 64
"""The number of sets of networks whose best schedule is kept; the least recently used are forgotten."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A schedule for one frame of a set of networks, and its origin.

    `seconds` is the time from the change to this set until it was available; `solver` who found it (`naive`
    and `known` are available at once); `proved` whether its search proved it the best of its space.
    """

    workload: Workload
    schedule: Schedule
    solver: str
    seconds: float
    proved: bool = False

    def cost_ms(self, objective: Objective | str = Objective.LATENCY) -> float:
        """Return the judge's cost of a frame of it, as a time in ms."""
        return Objective.parse(objective).cost_ms(simulate(self.workload, self.schedule))


class DynamicScheduler:
    """Keeps the best known schedule for a set of networks that changes while they run.

    The runtime calls `frame` before each frame and runs what it returns; the caller that decides what runs
    calls `change`. Both return at once, from any thread. At most one thread searches in the background; it
    ends when nothing is left to find or `close` is called (a context manager closes by itself), and abandons
    its search when the set changes. The next `frame`, `settle` or `close` raises what the search raised.

    `improver` must check whether it is to stop: `settle` and `close` raise `WorkerLost` for one that does not
    return within `patience` seconds of being told to. Frames go on with what was known.
    """

    def __init__(
        self,
        objective: Objective | str = Objective.LATENCY,
        *,
        improver: Improver = improvements,
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE,
    ) -> None:
        self.objective, self.patience = Objective.parse(objective), patience
        self._improver, self._clock = improver, clock
        self._lock = threading.Condition()
        self._known: list[Answer] = []  # the best of each set, the last used last
        self._history: deque[Answer] = deque(maxlen=HISTORY)
        self._current: Answer | None = None
        self._pending: Answer | None = None
        self._changed_at = 0.0
        self._generation = 0  # counts changes, so that a search knows that it is outdated
        self._searched = 0  # the generation that has been searched to its end
        self._searching = 0  # the generation of the thread's search
        self._told = 0.0  # when a search was last told to stop, by the machine's clock
        self._closed = False
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None

    def change(self, workload: Workload) -> Answer:
        """Run these networks from the next frame on; return the schedule to begin with.

        It is the best known of this set if the set occurred before, else the best of whole networks on units.
        Raises `ProfileError` for a workload of several frames, `UsageError` once closed.
        """
        if workload.frames > 1:
            raise ProfileError(
                "the dynamic scheduler plans one frame at a time", where="workload", item="frames"
            )
        began = self._clock()
        with self._lock:
            before = self._recall(workload)
        schedule = naive(workload) if before is None else before.schedule
        with self._lock:
            if self._closed:
                raise UsageError("is closed", where="dynamic scheduler")
            solver, proved = (NAIVE, False) if before is None else (REMEMBERED, before.proved)
            answer = Answer(workload, schedule, solver, self._clock() - began, proved)
            self._changed_at, self._told = began, time.monotonic()
            self._generation += 1
            self._pending = answer
            self._history.append(answer)
            if proved:
                self._searched = self._generation
            elif self._thread is None:
                # A search that never ends must not prevent the process from ending.
                self._thread = threading.Thread(target=self._work, name="onchip-corun", daemon=True)
                self._thread.start()
            self._lock.notify_all()
            return answer

    def frame(self) -> Answer:
        """Return the schedule of the next frame; results since the last call take effect here.

        Raises `UsageError` before the first change.
        """
        with self._lock:
            self._raise()
            if self._pending is not None:
                self._current, self._pending = self._pending, None
            if self._current is None:
                raise UsageError("has no networks yet", where="dynamic scheduler")
            return self._current

    def settle(self, timeout: float | None = None) -> bool:
        """Wait until the search for the present set is over, or for `timeout` seconds; return whether it is
        over.

        Raises `WorkerLost` when the search for an earlier set never returns.
        """

        def ready() -> bool:
            return self._idle() or self._error is not None

        until = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while not ready():
                now = time.monotonic()
                if until is not None and now >= until:
                    break
                if self._stuck() and now - self._told >= self.patience:
                    raise self._lost()
                waits = [] if until is None else [until - now]
                if self._stuck():
                    waits.append(self._told + self.patience - now)
                self._lock.wait(max(0.0, min(waits)) if waits else None)
            self._raise()
            return ready()

    @property
    def history(self) -> tuple[Answer, ...]:
        """Every answer so far, in order: the first one to each change, then each better one."""
        with self._lock:
            return tuple(self._history)

    def close(self) -> None:
        """End the search and its thread. May be called twice.

        Raises `WorkerLost` when the search does not return; the process can still end.
        """
        with self._lock:
            self._closed = True
            self._lock.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join(self.patience)
            if thread.is_alive():
                raise self._lost()
        with self._lock:
            self._raise()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- the background ----------------------------------------------------------------------------------

    def _idle(self) -> bool:
        return self._closed or self._searched == self._generation

    def _work(self) -> None:
        while True:
            with self._lock:
                if self._idle():
                    self._thread = None
                    return
                generation, start = self._generation, self._history[-1]
                self._searching = generation
            try:
                self._search(generation, start)
            except Exception as error:  # the next caller raises it
                with self._lock:
                    self._error = error
                    self._searched = generation
                    self._lock.notify_all()

    def _search(self, generation: int, start: Answer) -> None:
        def stopped() -> bool:
            return self._closed or self._generation != generation

        best = start
        least = start.cost_ms(self.objective)
        for found in self._improver(start.workload, self.objective, start.schedule, stopped):
            better = found.cost_ms < least * (1 - 1e-9)
            proved = found.claim.proved
            if not better and proved == best.proved:
                continue
            with self._lock:
                schedule = found.schedule if better else best.schedule
                seconds = self._clock() - self._changed_at
                best = Answer(start.workload, schedule, found.solver, seconds, proved)
                least = min(least, found.cost_ms)
                self._remember(best)
                if not stopped():
                    self._pending = best
                    self._history.append(best)
        with self._lock:
            self._remember(best)
            if not stopped():
                self._searched = generation
            self._lock.notify_all()

    def _stuck(self) -> bool:
        """Return whether the thread still searches for an earlier set."""
        return self._thread is not None and self._searching not in (0, self._generation)

    def _lost(self) -> WorkerLost:
        return WorkerLost(
            f"the search for a schedule did not come back within {self.patience:g} s of being told to stop"
        )

    def _recall(self, workload: Workload) -> Answer | None:
        return next((answer for answer in self._known if answer.workload == workload), None)

    def _remember(self, answer: Answer) -> None:
        self._known = [one for one in self._known if one.workload != answer.workload][1 - KNOWN :]
        self._known.append(answer)

    def _raise(self) -> None:
        if self._error is not None:
            error, self._error = self._error, None
            raise error


class StaticScheduler:
    """One schedule for each known set of networks, found beforehand; at run time they are only switched.

    It is for control flow that goes from one known set to another (HaX-CoNN, 3.5). `results` are by the sets'
    names.
    """

    def __init__(
        self,
        sets: Mapping[str, Workload],
        objective: Objective | str = Objective.LATENCY,
        options: SolveOptions = _OPTIONS,
    ) -> None:
        """Solve every set. Raises `UsageError` when there is none."""
        if not sets:
            raise UsageError("has no sets of networks", where="static scheduler")
        self.results: dict[str, CorunResult] = {
            name: solve(workload, objective, options) for name, workload in sets.items()
        }
        self._selected = self._current = next(iter(self.results))

    def select(self, name: str) -> None:
        """Run this set from the next frame on. Raises `UsageError` listing the sets for an unknown name."""
        if name not in self.results:
            raise UsageError(
                f"has no set {name!r}; there are {', '.join(self.results)}", where="static scheduler"
            )
        self._selected = name

    @property
    def running(self) -> str:
        """The name of the last frame's set."""
        return self._current

    def frame(self) -> Schedule:
        """Return the schedule of the next frame."""
        self._current = self._selected
        return self.results[self._current].solution.schedule


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a trace: its start in seconds since the first change, its time, and its schedule."""

    seconds: float
    milliseconds: float
    answer: Answer


def frames_of(
    history: tuple[Answer, ...], each: float, objective: Objective | str = Objective.LATENCY
) -> list[Frame]:
    """Return latency over time (Fig. 7): the frames run in sequence, every set for `each` seconds.

    A frame runs the newest schedule available at its start; a set's first frame begins when the last
    of the set before has ended.
    """
    sets: list[list[tuple[Answer, float]]] = []
    for answer in history:
        if not sets or answer.solver in (NAIVE, REMEMBERED):
            sets.append([])
        sets[-1].append((answer, answer.cost_ms(objective)))
    frames: list[Frame] = []
    now = 0.0
    for n, answers in enumerate(sets):
        began = now
        first = replace(answers[0][0], seconds=0.0)
        while now < (n + 1) * each:
            there = [(a, ms) for a, ms in answers if began + a.seconds <= now]
            answer, ms = there[-1] if there else (first, answers[0][1])
            frames.append(Frame(now, ms, answer))
            now += ms / 1000.0
    return frames
