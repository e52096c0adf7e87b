"""The process of one unit: loads pieces, then runs its steps in order, waiting where it must.

`crew` starts it. Messages are small, so that neither side can block in sending one: large data lies in
shared memory. The process dies with its parent: the kernel kills it when the lifeline closes.
"""

from __future__ import annotations

import fcntl
import gc
import os
import pickle
import resource
import select
import signal
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from onchip.multi_dnn.local.engines import Engine, Loaded, load_engine
from onchip.multi_dnn.local.memory import Place, Segment

__all__ = ["BUSY", "WAITING", "Program", "RunStep", "main", "state_place"]

WAITING, BUSY = 0, 1
_F_SETSIG = 10
SPIN_NS = 300_000
"""The most by which a sleep may be late; the rest of a wait polls the clock."""
LISTEN_NS = 200_000
"""The time for which a unit polls for a message before it sleeps: waking a core up takes tens of us."""


class RunStep(NamedTuple):
    """One step: the binding to call, (bell, how often it must have rung), bells to ring, a wait before."""

    binding: int
    waits: tuple[tuple[int, int], ...]
    rings: tuple[int, ...]
    idle_ns: int


class Program(NamedTuple):
    """The program of a unit: bindings are (piece, places of inputs, places of outputs)."""

    size: int
    unit: int
    times: Place
    bindings: Sequence[tuple[int, Sequence[Place], Sequence[Place]]]
    steps: Sequence[RunStep]


def state_place(unit: int) -> Place:
    """Return the place of a unit's state: its current step, waiting or busy, how often it lost its core."""
    return Place(unit * 64, "<i8", (3,))


def main(control: int, lifeline: int, memory: int, parcel: int, core: int) -> None:
    """Serve until the parent is gone. `core` below 0 pins nothing."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _die_with(lifeline)
    connection = Connection(control)
    try:
        if core >= 0:
            os.sched_setaffinity(0, {core})
    except OSError as problem:
        connection.send(("unpinned", problem.strerror or "refused"))
        return
    connection.send(("here", os.getpid()))
    _Worker(connection, Segment(memory), Segment(parcel)).serve()


def _die_with(lifeline: int) -> None:
    """Have the kernel kill this process when the other end of the pipe closes, even amid native code."""
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, _F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # it had closed before that
        os._exit(1)


class _Worker:
    def __init__(self, connection: Connection, memory: Segment, parcel: Segment) -> None:
        self.connection, self.memory, self.parcel = connection, memory, parcel
        self.engines: dict[str, Engine] = {}
        self.pieces: list[Loaded] = []
        self.program: Program | None = None
        self.calls: list[Callable[[], None]] = []

    def serve(self) -> None:
        handlers: dict[str, Callable[..., None]] = {"load": self.load, "take": self.take, "go": self.go}
        while True:
            try:
                kind, *rest = self.connection.recv()
            except (EOFError, OSError):
                return
            try:
                handlers[kind](*rest)
                reply = ("done", "")
            except MemoryError:
                reply = ("refused", "does not fit in this machine's memory")
            except Exception as problem:  # engines' errors have no common class
                text = " ".join(str(problem).split()) or type(problem).__name__
                reply = ("refused", text[:500])
            try:
                self.connection.send(reply)
            except OSError:
                return

    def _unpack(self, size: int) -> bytes:
        self.parcel.map(size)
        data = self.parcel.array(Place(0, "|u1", (size,))).tobytes()
        self.parcel.map(0)
        return data

    def load(self, engine: str, size: int) -> None:
        """Load a piece; it gets the next number."""
        if engine not in self.engines:
            self.engines[engine] = load_engine(engine)
        self.pieces.append(self.engines[engine].load(self._unpack(size)))

    def take(self, size: int) -> None:
        """Load a program, and bind its arrays."""
        program: Program = pickle.loads(self._unpack(size))
        self.memory.map(program.size)
        array = self.memory.array
        self.calls = [
            self.pieces[piece].bind([array(p) for p in inputs], [array(p) for p in outputs])
            for piece, inputs, outputs in program.bindings
        ]
        self.program = program
        gc.collect()
        gc.freeze()  # permanent objects need not be examined between rounds

    def go(self, start_ns: int) -> None:
        """Run the program once, from `start_ns` on."""
        assert self.program is not None
        program, clock = self.program, time.monotonic_ns
        state = self.memory.array(state_place(program.unit))
        times = self.memory.array(program.times)
        heard: dict[int, int] = {}
        gc.disable()
        _wait_until(start_ns)
        switches = _switches()
        for number, (binding, waits, rings, idle_ns) in enumerate(program.steps):
            state[:2] = number, BUSY
            for bell, count in waits:
                while heard.get(bell, 0) < count:
                    state[1] = WAITING
                    heard[bell] = heard.get(bell, 0) + _listen(bell)
                    state[1] = BUSY
            if idle_ns:
                _wait_until(clock() + idle_ns)
            begin = clock()
            self.calls[binding]()
            times[number] = begin, clock()
            for bell in rings:
                os.eventfd_write(bell, 1)
        state[:] = len(program.steps), WAITING, _switches() - switches
        gc.enable()
        gc.collect()  # now, not when the next round is to begin


def _switches() -> int:
    """Return how often the kernel has taken the core away from this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def _listen(bell: int) -> int:
    """Return how often a bell has rung since the last call, at least once. Bells do not block."""
    until = time.monotonic_ns() + LISTEN_NS
    while True:
        try:
            return os.eventfd_read(bell)
        except BlockingIOError:
            if time.monotonic_ns() > until:
                select.select([bell], [], [])


def _wait_until(moment_ns: int) -> None:
    """Sleep most of the time, poll the clock for the rest."""
    left: Any = moment_ns - time.monotonic_ns()
    if left > 2 * SPIN_NS:
        time.sleep((left - SPIN_NS) / 1e9)
    while time.monotonic_ns() < moment_ns:
        pass
