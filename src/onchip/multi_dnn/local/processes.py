"""The units' processes, as their parent sees them: started, watched, and always ended.

Whatever happens (one of them is killed, hangs, refuses a piece; Ctrl-C; an error here), leaving the `with`
block kills them all and waits for them. They have nothing to save.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from onchip.base.child import environment, interpreter, own_path
from onchip.base.errors import ModelError, UsageError, WorkerLost
from onchip.multi_dnn.local.memory import Place, Segment
from onchip.multi_dnn.local.worker import BUSY, Program, state_place

__all__ = ["START_NS", "STATES", "UnitProcesses"]

START_NS = 1_000_000
"""The delay of a common start: every process must have received it by then."""

STARTING = 60.0
"""The least seconds allowed for a process to start: a busy disk is no hang."""

STATES = 4096
"""Bytes at the front of the shared memory, for the units' states."""

_BOOT = """
import sys, types
numbers, root, sys.path[:] = sys.argv[1:6], sys.argv[6], sys.argv[7:]
for name in ("onchip", "onchip.run", "onchip.multi_dnn.local"):
    package = types.ModuleType(name)
    package.__path__ = ["/".join((root, *name.split(".")[1:]))]
    sys.modules[name] = package
from onchip.multi_dnn.local.worker import main
main(*map(int, numbers))
"""
"""The start of a process: the packages without their `__init__`, which import planners and readers that
no worker needs; and the parent's own paths, never the working directory by itself."""

_ROOT = str(Path(__file__).parents[2])


class UnitProcesses:
    """One process for each of `names`, pinned to its core (None: to no core), and their shared memory.

    `patience` is the seconds that may pass without progress of any of them. `labels`, set by the author of
    programs, names step `n` of unit `u` for errors.
    """

    def __init__(self, names: Sequence[str], cores: Sequence[int | None], patience: float) -> None:
        if not 0 < patience < 1e9:
            raise UsageError(f"{patience} is no number of seconds to wait", item="patience")
        self.names, self.cores, self.patience = tuple(names), tuple(cores), patience
        self.memory = Segment()
        self.labels: Callable[[int, int], str] = lambda unit, number: f"step {number}"
        self.bells: dict[tuple[int, int], int] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._connections: list[Connection] = []
        self._parcels: list[Segment] = []
        self._errors: list[IO[bytes]] = []
        self._lifeline: tuple[int, int] | None = None

    # -- beginning and end --------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self) -> None:
        if not sys.executable:
            raise UsageError(
                "this Python does not know its own program, so it cannot start another", item="local"
            )
        self.memory.resize(STATES)
        units = range(len(self.names))
        self.bells = {(a, b): os.eventfd(0, os.EFD_NONBLOCK) for a in units for b in units if a != b}
        self._lifeline = os.pipe()
        alone = environment(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        for core in self.cores:
            ours, theirs = socket.socketpair()
            parcel, errors = Segment(), tempfile.TemporaryFile()  # noqa: SIM115
            self._connections.append(Connection(ours.detach()))
            self._parcels.append(parcel)
            self._errors.append(errors)
            inherited = (theirs.fileno(), self._lifeline[0], self.memory.descriptor, parcel.descriptor)
            numbers = (*inherited, -1 if core is None else core)
            try:
                process = subprocess.Popen(
                    [*interpreter(), "-c", _BOOT, *map(str, numbers), _ROOT, *own_path()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env=alone,
                    pass_fds=(*inherited, *self.bells.values()),
                    process_group=0,  # Ctrl-C is for the parent alone
                )
            except OSError as problem:
                raise UsageError(f"cannot start a process: {problem.strerror}", item="local") from None
            finally:
                theirs.close()
            self._processes.append(process)
        replies = self._replies(set(units), lambda unit: "starting", patience=max(self.patience, STARTING))
        for unit, (kind, text) in replies.items():
            if kind == "unpinned":
                raise UsageError(
                    f"needs the right to pin processes to cores ({self.names[unit]}: {text})", item="local"
                )

    def close(self) -> None:
        """Kill and reap every process, release the memory."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
        for process in self._processes:
            process.wait()
        for connection in self._connections:
            connection.close()
        for segment in (self.memory, *self._parcels):
            segment.close()
        for errors in self._errors:
            errors.close()
        for descriptor in (*self.bells.values(), *(self._lifeline or ())):
            os.close(descriptor)
        self._processes, self._connections, self._parcels, self._errors = [], [], [], []
        self.bells, self._lifeline = {}, None

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes' ids."""
        return tuple(process.pid for process in self._processes)

    # -- messages -----------------------------------------------------------------------------------------

    def load(self, models: Mapping[int, tuple[str, bytes, str]]) -> None:
        """Have units load a piece: (engine, model, its name for errors).

        Raises `ModelError` naming it when the engine refuses it.
        """
        for unit, (engine, model, _) in models.items():
            self._pack(unit, model)
            self._send(unit, ("load", engine, len(model)), lambda unit: f"loading {models[unit][2]}")
        replies = self._replies(set(models), lambda unit: f"loading {models[unit][2]}")
        for unit in models:
            self._parcels[unit].resize(0)
        for unit, (kind, text) in replies.items():
            if kind == "refused":
                engine, _, what = models[unit]
                raise ModelError(f"{engine} cannot run it ({text})", item=what)

    def take(self, programs: Sequence[Program]) -> None:
        """Give every unit its program; the shared memory must have its size already."""
        for unit, program in enumerate(programs):
            data = pickle.dumps(program)
            self._pack(unit, data)
            self._send(unit, ("take", len(data)), lambda unit: "taking its program in")
        self._accept(self._replies(set(range(len(programs))), lambda unit: "taking its program in"))

    def go(self) -> int:
        """Run the programs once; return the common start, in ns."""
        for bell in self.bells.values():
            self._silence(bell)
        for unit in range(len(self.names)):
            self.memory.array(state_place(unit))[:] = 0
        start = time.monotonic_ns() + START_NS
        for unit in range(len(self.names)):
            self._send(unit, ("go", start), self._doing)
        self._accept(self._replies(set(range(len(self.names))), self._doing, together=True))
        return start

    @property
    def preempted(self) -> tuple[int, ...]:
        """The number of times in the last round that each unit lost its core."""
        return tuple(int(self.memory.array(state_place(unit))[2]) for unit in range(len(self.names)))

    @staticmethod
    def _silence(bell: int) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(bell)

    def _accept(self, replies: Mapping[int, tuple[str, str]]) -> None:
        for unit, (kind, text) in replies.items():
            if kind == "refused":
                raise ModelError(
                    f"cannot be run ({text})", item=f"unit {self.names[unit]}, {self._doing(unit)}"
                )

    def _pack(self, unit: int, data: bytes) -> None:
        parcel = self._parcels[unit]
        parcel.resize(len(data))
        parcel.array(Place(0, "|u1", (len(data),)))[:] = memoryview(data)

    def _send(self, unit: int, message: tuple[object, ...], doing: Callable[[int], str]) -> None:
        try:
            self._connections[unit].send(message)
        except OSError:
            raise self._lost(unit, doing(unit)) from None

    def _replies(
        self,
        waiting: set[int],
        doing: Callable[[int], str],
        *,
        together: bool = False,
        patience: float | None = None,
    ) -> dict[int, tuple[str, str]]:
        """Return each unit's answer. Raises `WorkerLost` when one is gone, or none makes progress for too
        long.

        Units that run `together` may wait for ever for one that has refused: only that one's answer is
        returned.
        """
        replies: dict[int, tuple[str, str]] = {}
        patience = patience or self.patience
        known, since = self._states(), time.monotonic()
        while waiting:
            by_connection: dict[Any, int] = {self._connections[unit]: unit for unit in waiting}
            for connection in wait(list(by_connection), timeout=min(patience, 0.5)):
                unit = by_connection[connection]
                try:
                    replies[unit] = self._connections[unit].recv()
                except (EOFError, OSError):
                    raise self._lost(unit, doing(unit)) from None
                waiting.discard(unit)
                since = time.monotonic()
                if together and replies[unit][0] == "refused":
                    return {unit: replies[unit]}
            states = self._states()
            if states != known:
                known, since = states, time.monotonic()
            elif waiting and time.monotonic() - since > patience:
                # A unit that waits for another's message is not to blame, unless all do.
                stuck = [u for u in sorted(waiting) if states[u][1] == BUSY] or sorted(waiting)
                named = ", ".join(
                    f"unit {self.names[u]} (process {self._processes[u].pid}) {doing(u)}" for u in stuck
                )
                raise WorkerLost(f"nothing moved for {patience:g} s: {named}; every unit was ended")
        return replies

    # -- errors -------------------------------------------------------------------------------------------

    def _states(self) -> list[tuple[int, int]]:
        rows = [self.memory.array(state_place(unit)) for unit in range(len(self.names))]
        return [(int(row[0]), int(row[1])) for row in rows]

    def _doing(self, unit: int) -> str:
        number, state = self._states()[unit]
        return f"{'running' if state == BUSY else 'waiting to run'} {self.labels(unit, number)}"

    def _lost(self, unit: int, doing: str) -> WorkerLost:
        process = self._processes[unit]
        try:
            code = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            how = "closed its connection"
        else:
            how = f"ended with exit code {code}"
            if code < 0:
                try:
                    how = f"was killed by {signal.Signals(-code).name}"
                except ValueError:
                    how = f"was killed by signal {-code}"
        errors = self._errors[unit]
        errors.seek(0)
        said = errors.read()[-2000:].decode("utf-8", "replace").strip().splitlines()
        because = f": {said[-1]}" if said else ""
        return WorkerLost(f"unit {self.names[unit]} (process {process.pid}) {how} while {doing}{because}")
