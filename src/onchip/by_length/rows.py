"""The rows of a table of plans by length: the lengths of one plan, and the proof that it is the best."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.by_length.stretch import Stretch
from onchip.plans import Plan

__all__ = ["Beyond", "Row"]


@dataclass(frozen=True, slots=True)
class Beyond:
    """The first length without a plan, and why it has none."""

    length: int
    reason: str


@dataclass(frozen=True)
class Row:
    """Lengths [first, last] that one plan serves: `plan` at the last, `begins` the same at the first.

    The instructions and addresses hold at every length between, with the sizes of the length. `stretches`
    prove that it is the best there, `why` it is not that of the length before.
    """

    first: int
    last: int
    plan: Plan
    begins: Plan
    stretches: tuple[Stretch, ...]
    why: str = ""

    @property
    def file(self) -> str:
        """The name of the plan's file."""
        return f"plan-{self.last}.json"

    @property
    def gap_bytes(self) -> int:
        """The most bytes that the plan moves beyond the best of any length of the row; 0: it is optimal."""
        return max(gap for part in self.stretches for gap in part.gaps)

    def part(self, length: int) -> Stretch:
        """Return the stretch of a length."""
        return next(part for part in self.stretches if part.first <= length <= part.last)
