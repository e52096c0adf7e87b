"""The options of the contest's two commands; each is stated once, here."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.base.errors import UsageError
from onchip.base.options import like, option, options
from onchip.contest.law import law_named

__all__ = ["LawOptions", "SolveOptions"]


@options
@dataclass(frozen=True, slots=True)
class LawOptions:
    """The law under which a schedule is priced."""

    law: str = option("ruled", "The reading of the rules: ruled, permissive, winner or nocap.")

    def __post_init__(self) -> None:
        law_named(self.law)


@options
@dataclass(frozen=True, slots=True)
class SolveOptions:
    """The law of a search, and how long it may take."""

    law: str = like(LawOptions, "law")

    time_limit: float = option(60.0, "Seconds for the search; then the best schedule so far is the answer.")

    def __post_init__(self) -> None:
        law_named(self.law)
        if not 0 <= self.time_limit < float("inf"):
            raise UsageError(f"{self.time_limit!r} is no number of seconds from 0 up", item="time_limit")
