"""The reasons why the law of nests cannot say how a group in tiles runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

__all__ = ["REASONS", "NoNest", "Unsaid", "no_nest"]

REASONS: dict[str, str] = {
    "no-axes": "nothing says which axes an operator has",
    "across-axes": "a piece ends inside an axis that other uses cut, or goes along several at once",
    "rows": "an operator makes its rows along no axis, or along several",
    "together": "pieces, or slices of channels, cut what stays together",
    "two-passes": "slices that wait for one another would have to pass together",
    "law": "the law of nests refuses the loops",
}
"""Each by the name that an answer carries."""


@dataclass(frozen=True, slots=True)
class Unsaid:
    """A group in tiles that is no nest: the name of the reason (of `REASONS`), and what it is about."""

    why: str
    detail: str


class NoNest(Exception):
    """Raised inside this package with an `Unsaid`."""

    def __init__(self, unsaid: Unsaid, hold: tuple[int, ...]) -> None:
        super().__init__(unsaid.detail)
        self.unsaid, self.hold = unsaid, hold


def no_nest(why: str, detail: str, hold: Iterable[int] = ()) -> NoReturn:
    """Raise `NoNest`; `why` is a name of `REASONS`.

    There may be a nest if one of the streamed tensors `hold` lies there with all its channels.
    """
    assert why in REASONS
    raise NoNest(Unsaid(why, detail), tuple(hold))
