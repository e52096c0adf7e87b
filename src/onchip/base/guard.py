"""The net below limits, crashes and signals: it holds while no code that checks a clock is running.

The command line starts it (`start`); in another program's process everything here does nothing, and the
searches keep their own limits. A thread without the interpreter's lock ends the process, its children and its
temporary files with one line, exit code 1, when most of the permitted overrun of a limit is used up. It
counts a process's own seconds: those spent waiting for a core (`/proc/self/task/*/schedstat`) are left out.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import inf
from types import FrameType

from onchip import _core
from onchip.base.errors import one_line

__all__ = [
    "bounded",
    "clean",
    "dies_with_us",
    "doing",
    "drop",
    "found",
    "heard",
    "keep",
    "left",
    "part",
    "room",
    "searching",
    "start",
    "started",
]

OVER_SHARE, OVER_SECONDS = 1.08, 0.85
"""A limit in seconds is finally over after this share of it plus these: 10 % and 1 s, less the end itself."""

FULL_SHARE, FULL_BYTES = 1.05, 48 << 20
"""A limit of bytes is finally over above this share of it plus these bytes: 10 % and 64 MB less the bytes
allocated between two checks."""

ANSWER_SECONDS = 10.0
"""Seconds that remain at least for writing a finished answer."""

MOST_BEFORE = 0.5
"""The most seconds of processor time before `start` that count: the interpreter's own beginning."""

AGAIN_SECONDS = 0.01
"""Seconds after which Ctrl-C that was swallowed comes again."""

ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
"""Signals that end a command as Ctrl-C does."""


@dataclass
class _Bounds:
    """The limit in force; `seconds` count from the beginning of the process, or of a part of its work."""

    seconds: float | None = None
    began: float = 0.0
    phase: str = "starting"
    weighed: bool = False


_now = _Bounds()


def start(ends: Callable[[int, FrameType | None], None]) -> None:
    """Handle signals and watch limits from now on; the processor time spent so far counts.

    `ends` is the handler of Ctrl-C until now.
    """
    for number in ENDS:
        if signal.getsignal(number) is signal.SIG_DFL:  # otherwise ignored, as under nohup
            signal.signal(number, _as_interrupt)
    if signal.getsignal(signal.SIGINT) is ends:
        signal.signal(signal.SIGINT, _interrupted)
    sys.unraisablehook = _unraisable
    wake = _core.guard_start(min(time.process_time(), MOST_BEFORE))
    atexit.register(clean)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)


def started() -> bool:
    """Return whether this process is the command line's own."""
    return _core.guard_started()


def _interrupted(number: int, frame: FrameType | None) -> None:
    heard()
    raise KeyboardInterrupt


def _unraisable(problem: sys.UnraisableHookArgs) -> None:
    """Press Ctrl-C again where it was raised and swallowed, as in what an import or a collection runs."""
    if problem.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(problem)
        return
    again = threading.Timer(AGAIN_SECONDS, os.kill, [os.getpid(), signal.SIGINT])
    again.daemon = True
    again.start()


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C would do now."""
    heard()
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)
    else:
        raise KeyboardInterrupt


def heard() -> None:
    """Report that a signal has reached the interpreter; one that has not within seconds ends the process."""
    _core.guard_heard()


def bounded(seconds: float | None, memory: int | None) -> None:
    """Hold this command to its limits, from the beginning of the process."""
    if not started():
        return
    _now.seconds, _now.began = seconds, 0.0
    if memory is not None:
        line = f"onchip: the memory limit of {memory:,} bytes was reached before there was a plan"
        _core.guard_memory(memory, int(memory * FULL_SHARE) + FULL_BYTES, line.encode())
    doing("reading")


def doing(phase: str) -> None:
    """Record the phase of the process, for the line that ends it."""
    if not started():
        return
    _now.phase = phase
    if _now.seconds is None:
        _core.guard_time(None, b"")
        return
    line = f"onchip: the time limit of {_now.seconds:g} s ended while {_now.phase}"
    line += "; no plan was found in that time" if phase in ("reading", "planning") else ""
    over = _now.began + _now.seconds * OVER_SHARE + OVER_SECONDS
    if phase.startswith("writing"):
        over = max(over, _core.guard_own_seconds() + ANSWER_SECONDS)
    _core.guard_time(over, one_line(line).encode())


def found() -> None:
    """Record that an answer exists: a limit that ends now does not stop its output."""
    doing("writing the answer")


def left(seconds: float | None) -> float | None:
    """Return `seconds`, but at most the rest of the command's limit, or of the limit of the part at work."""
    if seconds is None or _now.seconds is None:
        return seconds
    return max(0.0, min(seconds, _now.seconds - (_core.guard_own_seconds() - _now.began)))


def room() -> float:
    """Return the seconds left of the command's limit; infinite without one."""
    seconds = left(inf)
    return inf if seconds is None else seconds


@contextmanager
def part(seconds: float | None) -> Iterator[None]:
    """Give a part of the work its own limit: one of several plans that a command makes."""
    if not started() or seconds is None:
        yield
        return
    before = (_now.seconds, _now.began, _now.phase)
    _now.seconds, _now.began = seconds, _core.guard_own_seconds()
    doing("planning")
    try:
        yield
    finally:
        _now.seconds, _now.began = before[:2]
        doing(before[2])


def searching() -> None:
    """Record that a search begins: its memory limit counts from what the process holds now."""
    if started():
        if _now.phase == "reading":
            doing("planning")
        if not _now.weighed:
            _now.weighed = True
            _core.guard_weigh(True)


def keep(path: str | os.PathLike[str]) -> None:
    """Remember a temporary file or folder: it is removed when the process ends, however that happens."""
    if started():
        _core.guard_keep(os.fsencode(os.path.abspath(path)))


def drop(path: str | os.PathLike[str]) -> None:
    """Forget a temporary file or folder: it is gone, or has its final name."""
    if started():
        _core.guard_drop(os.fsencode(os.path.abspath(path)))


def clean() -> None:
    """End the remaining children of this process, and remove its temporary files."""
    if started():
        _core.guard_clean()


def dies_with_us() -> Callable[[], None]:
    """Return a `preexec_fn` for a child process: the system kills it when the thread that starts it ends."""
    return partial(_core.die_with_parent, os.getpid())
