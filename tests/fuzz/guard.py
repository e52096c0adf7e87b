"""One input's bounds: processor seconds, and memory of the whole process."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["TooSlow", "bounded", "limit_memory"]


class TooSlow(BaseException):
    """An input took more processor time than it may; no `except Exception` on the way keeps it."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` after that much processor time, whatever else the machine does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limit_memory(beyond: int) -> None:
    """Let the process have that many bytes beyond what it has: more is a `MemoryError`."""
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + beyond, resource.getrlimit(resource.RLIMIT_AS)[1]))
