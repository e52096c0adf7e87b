"""A sweep from end to end: read the spec and the journal, compute the rest, write the answer."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from onchip.base import guard
from onchip.base.errors import UsageError
from onchip.sweeps.journal import Journal
from onchip.sweeps.options import SweepOptions
from onchip.sweeps.points import Task, labels, points, row_of, task_of
from onchip.sweeps.pool import Backend, Pool, cores
from onchip.sweeps.sources import Sources
from onchip.sweeps.spec import Spec
from onchip.sweeps.sram_columns import priced

__all__ = ["Outcome", "SweepOptions", "sweep"]

REWRITTEN = 60.0
"""Seconds between two updates of a running sweep's table and page."""


@dataclass(frozen=True)
class Outcome:
    """The state of a sweep: `rows` of the points that have an answer, in the spec's order.

    `computed` points were answered in this run, `reused` in earlier ones; `end` is the reason for its end.
    """

    spec: Spec
    labels: tuple[str, ...]
    points: int
    computed: int
    reused: int
    end: Literal["complete", "time", "stopped"]
    seconds: float
    workers: str
    rows: tuple[dict[str, Any], ...] = field(repr=False)

    @property
    def failed(self) -> int:
        """The number of points that failed."""
        return sum(row["status"] == "failed" for row in self.rows)

    @property
    def complete(self) -> bool:
        """True if every point has an answer."""
        return len(self.rows) == self.points


def sweep(
    spec: Spec,
    folder: Path,
    options: SweepOptions,
    progress: Callable[[str], None] | None = None,
    write: Callable[[Outcome], None] | None = None,
) -> Outcome:
    """Compute the points of `spec` that the journal in `folder` lacks; call `write` with the state at times.

    Raises `InputError` for a spec, network or folder that cannot be used, `WorkerLost` when the cluster is
    gone. After Ctrl-C or the time limit, the outcome has the points finished by then.
    """
    say = progress or (lambda line: None)
    began = time.monotonic()
    _make(folder)
    with Journal(folder / "journal.sqlite") as journal, _asked_to_stop() as stopped:
        if options.retry:
            journal.forget_failures()
        given = points(spec)
        sources = Sources(folder / "networks", spec.path, options.trust)
        tasks: list[Task] = []
        for point in given:
            if stopped():
                raise KeyboardInterrupt
            tasks.append(task_of(point, sources.key(point, say), spec.seconds))
        names = labels(given)
        answers = journal.answers(spec.seconds)
        todo = {task.key: task for task in tasks if task.key not in answers}
        count = sum(task.key in answers for task in tasks)
        done, workers = 0, ""

        def outcome(end: Literal["complete", "time", "stopped"]) -> Outcome:
            rows = tuple(
                priced(spec.sram, row_of(point, names, answers[task.key]))
                for point, task in zip(given, tasks, strict=True)
                if task.key in answers
            )
            took = time.monotonic() - began
            return Outcome(spec, names, len(given), len(rows) - count, count, end, took, workers, rows)

        end: Literal["complete", "time", "stopped"] = "complete"
        if todo:
            with _backend(list(todo.values()), sources, options) as at_work:
                started = written = time.monotonic()
                while done < len(todo):
                    now = time.monotonic()
                    if stopped():
                        end = "stopped"
                        break
                    if options.time_limit is not None and now - began > options.time_limit:
                        end = "time"
                        break
                    found = at_work.wait(0.2)
                    workers = at_work.workers
                    if found:
                        journal.add(found, spec.seconds)
                        answers.update((d.key, d.figures) for d in found)
                        done += len(found)
                    say(_words(len(todo), done, len(given), count, now - started, workers))
                    if write is not None and now - written > REWRITTEN:
                        write(outcome("stopped"))
                        written = time.monotonic()
        made = outcome(end)
        if write is not None:
            write(made)
        return made


def _make(folder: Path) -> None:
    try:
        (folder / "networks").mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(problem.strerror or "cannot be made", where=str(folder)) from None
    if not os.access(folder, os.W_OK):
        raise UsageError("cannot be written", where=str(folder))


def _backend(tasks: list[Task], sources: Sources, options: SweepOptions) -> Backend:
    if options.dask is not None:
        from onchip.sweeps.cluster import Cluster

        return Cluster(tasks, options.dask, sources.content, options.dask_tls)
    return Pool(tasks, sources.folder, options.jobs or cores())


def _words(todo: int, done: int, points: int, reused: int, seconds: float, workers: str) -> str:
    """Return the progress, the rate and the remaining time, in words."""
    text = f"{reused + done:,} of {points:,} points"
    if reused:
        text += f" ({reused:,} were there)"
    if done and seconds > 0:
        rate = done / seconds
        text += f", {rate:,.3g} a second, {_time((todo - done) / rate)} left"
    return f"{text}, {workers}"


def _time(seconds: float) -> str:
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5_970 else f"{seconds / 3600:.1f} h"


@contextmanager
def _asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed: the first is noted, a second interrupts."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return

    def note(number: int, frame: FrameType | None) -> None:
        guard.heard()
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)
