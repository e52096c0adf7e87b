"""The allowance of reading one file: processor time and memory, watched from inside the loops that read.

Readers refuse oversized content early (dimensions, nodes, elements). This module is the safety net below:
loops over a file's content call `spend`, which compares from time to time the cost of the reading so far with
the allowance for a file of that size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from onchip.base.errors import InputError
from onchip.base.limits import VARIABLE, limits

__all__ = ["reading", "spend"]

SMALL_FILE = 10_000_000
"""Bytes; larger files may take more: eight times the excess in memory, and time in proportion."""

EVERY = 64
"""Calls of `spend` between two checks of the clock."""

LOOKS = 16
"""Checks of the clock between two of the memory."""


@dataclass(slots=True)
class _Reading:
    where: str
    error: type[InputError]
    soonest: float
    until: float
    seconds: float
    most: int
    resident: int
    calls: int = 0
    looks: int = 0


_now: ContextVar[_Reading | None] = ContextVar("reading", default=None)


def _resident() -> int:
    """Return the resident bytes of this process; 0 if the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0


@contextmanager
def reading(where: str, size: int, *, error: type[InputError] = InputError) -> Iterator[None]:
    """Hold the reading of a file of `size` bytes to its allowance: `spend` refuses with `error`, naming
    `where`, if it takes too long (seconds of this thread) or too much memory. A nested reading is part of
    the outer one."""
    if _now.get() is not None:
        yield
        return
    limit = limits()
    beyond = max(0, size - SMALL_FILE)
    seconds = limit.reading_seconds * (1 + beyond / SMALL_FILE)
    most = limit.reading_bytes + 8 * beyond
    soonest = time.monotonic() + seconds
    until = time.thread_time() + seconds
    token = _now.set(_Reading(where, error, soonest, until, seconds, most, _resident()))
    try:
        yield
    except MemoryError:
        raise error(_too_much(most), where=where) from None
    finally:
        _now.reset(token)


def spend(item: str | Callable[[], str] | None = None) -> None:
    """Count one step of the reading in progress, if there is one; `item` is what is being read.

    Raises the reading's error if it has exceeded its allowance.
    """
    now = _now.get()
    if now is None:
        return
    now.calls += 1
    if now.calls % EVERY:
        return
    now.looks += 1
    reason = ""
    # The thread's own clock is expensive, and never runs faster than the wall clock.
    if time.monotonic() > now.soonest and time.thread_time() > now.until:
        reason = f"takes more than {now.seconds:.0f} s of processor time to read ({VARIABLE}READING_SECONDS)"
    elif now.looks % LOOKS == 0 and _resident() - now.resident > now.most:
        reason = _too_much(now.most)
    if reason:
        raise now.error(reason, where=now.where, item=item() if callable(item) else item)


def _too_much(most: int) -> str:
    return f"takes more than {most:,} bytes of memory to read ({VARIABLE}READING_BYTES)"
