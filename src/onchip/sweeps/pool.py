"""Workers on this machine: processes that are restarted when they die, and points that kill them.

A point is handed to one worker at a time. When a worker dies, its answers are in the journal, and its other
points are handed out again. A point that was under way when `ATTEMPTS` workers died is answered as failed,
with the reason.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Protocol, Self

import msgspec

from onchip.base.child import environment, interpreter
from onchip.base.errors import InputError
from onchip.sweeps.compute import failed
from onchip.sweeps.points import Done, Task

__all__ = ["ATTEMPTS", "Backend", "Pool", "cores"]

ATTEMPTS = 3
"""The number of workers that a point may kill."""

AHEAD, QUICK = 4, 0.1
"""The points queued at a worker: several where they take less than `QUICK` seconds, so that it never waits
for the next; one where they take longer, so that none waits behind another while a worker is idle."""

MOST_IDLE_DEATHS = 20
"""The number of idle workers that may die in sequence."""

GRACE, TIMES = 60.0, 2.0
"""A worker whose point has a limit of t seconds is killed after TIMES * t + GRACE seconds."""

START = "from onchip.sweeps.worker import main; import sys; main(sys.argv[1], int(sys.argv[2]))"


class Backend(Protocol):
    """Computes points, here or elsewhere. Enter it with the points; leave it when all are done or dropped."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    @property
    def workers(self) -> str:
        """The workers, in words."""

    def wait(self, seconds: float) -> list[Done]:
        """Return the answers that have arrived, after at most so many seconds; each point's comes once."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker:
    """One process, with its queued points, the one under way first."""

    def __init__(self, networks: Path) -> None:
        self.words: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  closed with the process
        self.process = subprocess.Popen(
            [*interpreter(), "-c", START, str(networks), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.words,
            start_new_session=True,
            env=environment(OMP_NUM_THREADS="1"),
        )
        self.at_hand: deque[Task] = deque()
        self.family: tuple[str, str] | None = None
        self.ready = False
        self.ahead = 1
        self.since = time.monotonic()
        self._rest = b""

    @property
    def out(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def send(self, task: Task) -> bool:
        """Hand a point over; return false if the process no longer takes any."""
        assert self.process.stdin is not None
        if not self.at_hand:
            self.since = time.monotonic()
        try:
            self.process.stdin.write(msgspec.json.encode(task) + b"\n")
            self.process.stdin.flush()
        except OSError:
            return False
        self.at_hand.append(task)
        return True

    def lines(self) -> list[bytes] | None:
        """Return the whole lines that have arrived; None at the end."""
        got = os.read(self.out, 1 << 16)
        if not got:
            return None
        *lines, self._rest = (self._rest + got).split(b"\n")
        return lines

    def end(self) -> str:
        """Kill the process if it lives; return how it ended, in words."""
        if self.process.poll() is None:
            self.process.kill()
        code = self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # unwritten data is dropped
                pipe.close()
        with self.words as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 2_000))
            last = file.read().decode("utf-8", "replace").strip().splitlines()[-1:]
        how = f"killed by {_name(-code)}" if code < 0 else f"exit status {code}"
        return ": ".join([how, *last])


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Pool:
    """So many worker processes for these points; networks lie in the folder `networks`."""

    def __init__(self, tasks: Sequence[Task], networks: Path, count: int) -> None:
        self._waiting: dict[tuple[str, str], deque[Task]] = {}
        for task in tasks:
            self._waiting.setdefault(task.family, deque()).append(task)
        self._left = len(tasks)
        self._networks, self._count = networks, max(1, min(count, len(tasks)))
        self._at_work: list[_Worker] = []
        self._deaths: dict[str, int] = {}
        self._idle_deaths = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._at_work:
            self._at_work.pop().end()

    @property
    def workers(self) -> str:
        return f"{len(self._at_work)} {'process' if len(self._at_work) == 1 else 'processes'}"

    def wait(self, seconds: float) -> list[Done]:
        found: list[Done] = []
        while len(self._at_work) < min(self._count, self._left):
            self._at_work.append(_Worker(self._networks))
        for worker in list(self._at_work):
            found += self._feed(worker)
        for worker in self._heard(0 if found else seconds):
            lines = worker.lines()
            if lines is None:
                found += self._lost(worker, worker.end())
            else:
                found += self._answers(worker, lines)
        found += self._overdue()
        self._left -= len(found)
        return found

    def _heard(self, seconds: float) -> list[_Worker]:
        """Return the workers with new output, after at most so many seconds."""
        with selectors.DefaultSelector() as said:
            for worker in self._at_work:
                said.register(worker.out, selectors.EVENT_READ, worker)
            return [key.data for key, _ in said.select(seconds)]

    def _feed(self, worker: _Worker) -> list[Done]:
        """Fill a worker's queue; return the answers of points that failed in it."""
        while (
            worker.ready and len(worker.at_hand) < worker.ahead and (task := self._next(worker)) is not None
        ):
            if not worker.send(task):
                self._waiting[task.family].appendleft(task)
                return self._lost(worker, worker.end())
        return []

    def _next(self, worker: _Worker) -> Task | None:
        """Return the next point: of the worker's family, else of the longest that no other worker is at."""
        for family in [f for f, tasks in self._waiting.items() if not tasks]:
            del self._waiting[family]
        if not self._waiting:
            return None
        if worker.family not in self._waiting:
            others = {w.family for w in self._at_work}
            worker.family = max(self._waiting, key=lambda f: (f not in others, len(self._waiting[f])))
        return self._waiting[worker.family].popleft()

    def _answers(self, worker: _Worker, lines: list[bytes]) -> list[Done]:
        found = []
        for line in lines:
            if not worker.ready:  # its first line says that it has started
                worker.ready, self._idle_deaths = True, 0
                continue
            done = msgspec.json.decode(line, type=Done)
            task = worker.at_hand.popleft()
            assert task.key == done.key
            worker.since = time.monotonic()
            worker.ahead = AHEAD if done.figures.get("seconds", QUICK) < QUICK else 1
            found.append(done)
        return found

    def _lost(self, worker: _Worker, how: str) -> list[Done]:
        """Take the points of a dead worker back; answer as failed one that was under way too often."""
        self._at_work.remove(worker)
        found: list[Done] = []
        if worker.at_hand:
            under_way = worker.at_hand[0]
            self._deaths[under_way.key] = self._deaths.get(under_way.key, 0) + 1
            if self._deaths[under_way.key] >= ATTEMPTS:
                worker.at_hand.popleft()
                found.append(Done(under_way.key, failed(f"{ATTEMPTS} workers died of it, the last {how}")))
        else:
            self._idle_deaths += 1
            if self._idle_deaths > MOST_IDLE_DEATHS:
                raise InputError(f"workers cannot be started: {how}")
        for task in reversed(worker.at_hand):
            self._waiting.setdefault(task.family, deque()).appendleft(task)
        return found

    def _overdue(self) -> list[Done]:
        """Kill workers whose point exceeds its limit."""
        found: list[Done] = []
        now = time.monotonic()
        for worker in list(self._at_work):
            limit = worker.at_hand[0].seconds if worker.at_hand else None
            if limit is not None and now - worker.since > TIMES * limit + GRACE:
                worker.end()
                found += self._lost(worker, f"did not end within {TIMES * limit + GRACE:,.0f} s")
        return found
