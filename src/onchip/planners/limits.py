"""The limits of a search: its time, its memory, its listeners and its cancellation in one record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from onchip import _core
from onchip.base import guard
from onchip.base.interrupt import until_interrupted

__all__ = ["NO_LIMITS", "End", "Limits", "Progress"]

Progress = Callable[[str], None]
"""Called from time to time with one line about the progress of a long search."""

End = Literal["complete", "time", "memory", "stopped", "nodes", "width"]
"""The reason why a search ended: it is complete, or it hit a limit (`nodes`: of states to look at), or the
caller (or Ctrl-C) stopped it, or only a search of some width was requested."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a search, and its listeners. The clock runs from the creation of the limits.

    `time_limit` is in seconds of wall clock (None: no limit), `memory_limit` in bytes that a search stores.
    `progress` is called a few times a second; `cancelled` is called as often, and true ends the search with
    the best so far. `seed` other than 0 breaks ties between equally good states at random.
    """

    time_limit: float | None = None
    memory_limit: int = 2 << 30
    progress: Progress | None = None
    cancelled: Callable[[], bool] | None = None
    seed: int = 0
    began: float = field(default_factory=lambda: time.perf_counter(), repr=False, compare=False)
    """The start of the clock, of `time.perf_counter`, which is looked up late: tests have their own."""

    @classmethod
    def of(
        cls, options: Any, progress: Progress | None = None, cancelled: Callable[[], bool] | None = None
    ) -> Limits:
        """Return the limits in a planner's options, as far as it has them; from now on.

        A time limit covers the whole command if there is one: the time of reading is gone.
        """
        known = ("time_limit", "memory_limit", "seed")
        given = {name: getattr(options, name) for name in known if hasattr(options, name)}
        given["time_limit"] = guard.left(given.get("time_limit"))
        return cls(**given, progress=progress, cancelled=cancelled)

    def spent(self) -> float:
        """Return the seconds since the clock began."""
        return time.perf_counter() - self.began

    def left(self) -> float | None:
        """Return the seconds left, 0 when time is up; None without a time limit."""
        return None if self.time_limit is None else max(0.0, self.time_limit - self.spent())

    def stopped(self) -> bool:
        """Return whether the caller wants the best so far."""
        return self.cancelled is not None and self.cancelled()

    def over(self) -> bool:
        """Return whether time is up, or the caller wants the best so far."""
        return self.left() == 0.0 or self.stopped()

    def anew(self, seconds: float | None) -> Limits:
        """Return the same limits with `seconds` from now."""
        return replace(self, time_limit=seconds, began=time.perf_counter())

    def at_most(self, seconds: float) -> Limits:
        """Return the same limits with at most `seconds` from now."""
        left = self.left()
        return self.anew(seconds if left is None else min(left, seconds))

    def share(self, part: float) -> Limits:
        """Return the same limits with this share of the time that is left."""
        left = self.left()
        return self if left is None else self.anew(left * part)

    def until(self, part: float) -> Limits:
        """Return the same limits with this share of the whole time, from the same start."""
        return self if self.time_limit is None else replace(self, time_limit=self.time_limit * part)

    def patient(self, seconds: float) -> Limits:
        """Return the same limits; without a time limit, with `seconds` from now."""
        return self.anew(seconds) if self.time_limit is None else self

    def core(self, stop: Callable[..., bool]) -> _core.Limits:
        """Return the same limits for a compiled search, which reports to `stop`; from now on."""
        return _core.Limits(seconds=self.left(), memory=self.memory_limit, stop=stop)

    def say(self, line: str) -> None:
        """Report the progress of the search."""
        if self.progress is not None:
            self.progress(line)

    @contextmanager
    def interruptible(self) -> Iterator[Limits]:
        """Yield the same limits, with Ctrl-C as a request for the best so far."""
        with until_interrupted() as pressed:
            asked = self.cancelled
            yield replace(self, cancelled=pressed if asked is None else lambda: pressed() or asked())


NO_LIMITS = Limits()
