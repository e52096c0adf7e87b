"""The net below limits, crashes and signals: what holds when no code that asks a clock is running.

The command line starts it (`start`); in somebody's own process everything here does nothing, and limits are
those of the searches. A thread without the interpreter's lock ends the process, its children and its
temporary files with one line, exit code 1, when most of the permitted overrun of a limit is used up. It
counts a process's own seconds: those in which it waits for a core (`/proc/self/task/*/schedstat`) are left
out.
"""

from __future__ import annotations

import atexit
import os
import signal
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
"""A limit in seconds is over for good after this share of it and these: 10 % and 1 s, less the end itself."""

FULL_SHARE, FULL_BYTES = 1.05, 48 << 20
"""A limit of bytes is over for good above this share of it and these bytes: 10 % and 64 MB less what is
allocated between two looks."""

ANSWER_SECONDS = 10.0
"""Seconds that are left at least to write an answer that is there."""

MOST_BEFORE = 0.5
"""Seconds of processor time that may count from before `start`: the interpreter's own beginning."""

ENDS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
"""Signals that end a command as Ctrl-C does."""


@dataclass
class _Bounds:
    """What holds now; `seconds` count from the beginning of the process, or of a part of its work."""

    seconds: float | None = None
    began: float = 0.0
    phase: str = "starting"
    weighed: bool = False


_now = _Bounds()


def start() -> None:
    """Hear signals and watch limits from here on; the processor time spent so far counts."""
    for number in ENDS:
        if signal.getsignal(number) is signal.SIG_DFL:  # else ignored, as under nohup
            signal.signal(number, _as_interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    wake = _core.guard_start(min(time.process_time(), MOST_BEFORE))
    atexit.register(clean)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)


def started() -> bool:
    """Whether this process is the command line's own."""
    return _core.guard_started()


def _interrupted(number: int, frame: FrameType | None) -> None:
    heard()
    raise KeyboardInterrupt


def _as_interrupt(number: int, frame: FrameType | None) -> None:
    """Do what Ctrl-C would do now."""
    heard()
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)
    else:
        raise KeyboardInterrupt


def heard() -> None:
    """Say that a signal has reached the interpreter; one that has not within seconds ends the process."""
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
    """Say what the process is at, for the line that ends it."""
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
    """Say that an answer is there: a limit that ends now does not keep it from being shown and written."""
    doing("writing the answer")


def left(seconds: float | None) -> float | None:
    """`seconds`, but no more than what is left of the command's limit, or of that of the part at work."""
    if seconds is None or _now.seconds is None:
        return seconds
    return max(0.0, min(seconds, _now.seconds - (_core.guard_own_seconds() - _now.began)))


def room() -> float:
    """Seconds that are `left` of the command's limit; infinite where it has none."""
    seconds = left(inf)
    return inf if seconds is None else seconds


@contextmanager
def part(seconds: float | None) -> Iterator[None]:
    """A limit of its own for a part of the work: one of several plans that a command makes."""
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
    """Say that a search begins: what the process holds now is what its memory limit is counted from."""
    if started():
        if _now.phase == "reading":
            doing("planning")
        if not _now.weighed:
            _now.weighed = True
            _core.guard_weigh(True)


def keep(path: str | os.PathLike[str]) -> None:
    """Remember a temporary file or folder: it is removed with the process, however that ends."""
    if started():
        _core.guard_keep(os.fsencode(os.path.abspath(path)))


def drop(path: str | os.PathLike[str]) -> None:
    """Forget a temporary file or folder: it is gone, or has its own name."""
    if started():
        _core.guard_drop(os.fsencode(os.path.abspath(path)))


def clean() -> None:
    """End what processes are left of this one's, and remove what is still temporary."""
    if started():
        _core.guard_clean()


def dies_with_us() -> Callable[[], None]:
    """For `preexec_fn` of a child process: the system kills it when the thread that starts it is gone."""
    return partial(_core.die_with_parent, os.getpid())
