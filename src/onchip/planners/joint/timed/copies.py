"""The copies of a nest's buffers that make it fastest in some room.

Exact over one or two copies of every buffer, by branch and bound: on one channel a second copy makes no
nest slower (seen on all nests tried, not proved here), so that all that is not decided yet in two copies
bounds the time, and in one the bytes. On several channels it can, and only what the nest takes at least
bounds it. More copies come one by one, as long as one pays.
"""

from __future__ import annotations

from dataclasses import dataclass

from onchip.planners.joint.timed.pricing import Opened, Priced

__all__ = ["MOST_COPIES", "MOST_PRICES", "Chosen", "best_copies"]

MOST_COPIES = 4
"""The most copies that are tried."""

MOST_PRICES = 400
"""The most times of one nest that are looked at; more often, the best so far is taken."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The fastest copies found; `complete` if no one or two copies of every buffer are faster."""

    priced: Priced
    copies: tuple[int, ...]
    complete: bool


def best_copies(
    opened: Opened, room: int, *, below: int | None = None, most_prices: int = MOST_PRICES, more: bool = True
) -> Chosen | None:
    """Return the copies with which a nest is fastest in `room` bytes; None if it is not below some time."""
    search = _Search(opened, room, below, most_prices)
    search.single()
    search.decide([])
    if search.best is None:
        return None
    copies, complete = search.best, search.prices <= most_prices
    if more:
        copies = search.more(copies)
    assert search.below is not None
    scratch = opened.scratch(copies)
    assert scratch is not None
    return Chosen(opened.priced(copies, search.below, scratch), tuple(copies), complete)


class _Search:
    def __init__(self, opened: Opened, room: int, below: int | None, most_prices: int) -> None:
        self.opened, self.room, self.below, self.most = opened, room, below, most_prices
        self.count = len(opened.units)
        self.one_channel = len(opened.group.tiles.channels) == 1
        self.best: list[int] | None = None
        self.prices = 0
        self.order = sorted(range(self.count), key=lambda n: -opened.units[n].more)

    def copies(self, decided: list[int], rest: int) -> list[int]:
        found = [rest] * self.count
        for n, number in zip(self.order, decided, strict=False):
            found[n] = number
        return found

    def single(self) -> None:
        """Begin with one copy of everything: what is found is never slower."""
        copies = [1] * self.count
        if self.fits(copies):
            time = self.opened.time(copies, self.below)
            if time is not None:
                self.best, self.below = copies, time

    def decide(self, decided: list[int]) -> None:
        """Look at all choices that begin so."""
        if self.prices > self.most and self.best is not None:
            return
        if self.opened.need(self.copies(decided, 1)) > self.room:
            return
        done = len(decided) == self.count
        every = self.copies(decided, 2)
        if self.one_channel or done:
            self.prices += 1
            time = self.opened.time(every, self.below)
            if time is None:
                return
            if self.fits(every):
                self.best, self.below = every, time
                return
        elif self.below is not None and self.opened.floor() >= self.below:
            return
        if not done:
            self.decide([*decided, 2])
            self.decide([*decided, 1])

    def fits(self, copies: list[int]) -> bool:
        if self.opened.need(copies) > self.room:
            return False
        scratch = self.opened.scratch(copies)
        return scratch is not None and scratch <= self.room

    def more(self, copies: list[int]) -> list[int]:
        """Return three or four copies, too, where one more makes the nest faster."""
        improved = True
        while improved:
            improved = False
            for n, unit in enumerate(self.opened.units):
                if unit.root or not 2 <= copies[n] < MOST_COPIES:
                    continue
                tried = [*copies[:n], copies[n] + 1, *copies[n + 1 :]]
                if self.opened.need(tried) > self.room:
                    continue
                time = self.opened.time(tried, self.below)
                if time is not None and self.fits(tried):
                    copies, self.below, improved = tried, time, True
        return copies
