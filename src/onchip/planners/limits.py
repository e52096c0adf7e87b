"""How long a search may work and with how much memory, whom it tells, and who may stop it: one record."""

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
"""Called now and then with one line that says how far a long search is."""

End = Literal["complete", "time", "memory", "stopped", "nodes", "width"]
"""Why a search ended: it is complete, or a limit was hit (`nodes`: of states to look at), or the caller (or
Ctrl-C) stopped it, or only a search of some width was asked for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a search has to stop, and whom it tells. The clock runs from when the limits are made.

    `time_limit` is in seconds of wall clock (None: no limit), `memory_limit` in bytes that a search stores.
    `progress` is told a few times a second; `cancelled` is asked as often, and true ends the search with the
    best so far. `seed` other than 0 breaks ties between equally good states at random.
    """

    time_limit: float | None = None
    memory_limit: int = 2 << 30
    progress: Progress | None = None
    cancelled: Callable[[], bool] | None = None
    seed: int = 0
    began: float = field(default_factory=lambda: time.perf_counter(), repr=False, compare=False)
    """When the clock began to run, of `time.perf_counter`, which is looked up late: tests have their own."""

    @classmethod
    def of(
        cls, options: Any, progress: Progress | None = None, cancelled: Callable[[], bool] | None = None
    ) -> Limits:
        """The limits that stand in a planner's options, as far as it has such; from now on.

        A time limit is that of the whole command where there is one: what reading took is gone.
        """
        known = ("time_limit", "memory_limit", "seed")
        given = {name: getattr(options, name) for name in known if hasattr(options, name)}
        given["time_limit"] = guard.left(given.get("time_limit"))
        return cls(**given, progress=progress, cancelled=cancelled)

    def spent(self) -> float:
        """Seconds since the clock began."""
        return time.perf_counter() - self.began

    def left(self) -> float | None:
        """Seconds that are left, 0 when time is up; None without a time limit."""
        return None if self.time_limit is None else max(0.0, self.time_limit - self.spent())

    def stopped(self) -> bool:
        """Whether somebody wants the best so far."""
        return self.cancelled is not None and self.cancelled()

    def over(self) -> bool:
        """Whether time is up, or somebody wants the best so far."""
        return self.left() == 0.0 or self.stopped()

    def anew(self, seconds: float | None) -> Limits:
        """The same with so many seconds from now."""
        return replace(self, time_limit=seconds, began=time.perf_counter())

    def at_most(self, seconds: float) -> Limits:
        """The same with no more time than this from now."""
        left = self.left()
        return self.anew(seconds if left is None else min(left, seconds))

    def share(self, part: float) -> Limits:
        """The same with this part of the time that is left."""
        left = self.left()
        return self if left is None else self.anew(left * part)

    def until(self, part: float) -> Limits:
        """The same with this part of all the time: it is over when so much of it is spent."""
        return self if self.time_limit is None else replace(self, time_limit=self.time_limit * part)

    def patient(self, seconds: float) -> Limits:
        """The same; without a time limit, with so many seconds from now."""
        return self.anew(seconds) if self.time_limit is None else self

    def core(self, stop: Callable[..., bool]) -> _core.Limits:
        """The same for a compiled search, which tells `stop` how far it is; from now on."""
        return _core.Limits(seconds=self.left(), memory=self.memory_limit, stop=stop)

    def say(self, line: str) -> None:
        """Tell how far the search is."""
        if self.progress is not None:
            self.progress(line)

    @contextmanager
    def interruptible(self) -> Iterator[Limits]:
        """The same, and Ctrl-C is remembered as the wish for the best so far."""
        with until_interrupted() as pressed:
            asked = self.cancelled
            yield replace(self, cancelled=pressed if asked is None else lambda: pressed() or asked())


NO_LIMITS = Limits()
