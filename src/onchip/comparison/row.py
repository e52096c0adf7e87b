"""A row of a comparison: one planner's answer, or a baseline's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from onchip.plans import Plan

__all__ = ["Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """One planner's answer. Bytes are None where there is no plan: `needs_bytes` says what it would take.

    `status` is a plan's (`optimal` in the space that its planner names, `feasible`), `does not fit`, or
    `no plan`, with the `reason`. `reduction` is the share of this row's DRAM bytes that the best row does
    without (0 to 1), `gap` how far above the least of what this planner may do they lie at most (0 where they
    are proved to be the least, 0.05 for 5 %); both None where there is no plan.
    """

    scheme: str
    title: str
    status: Literal["optimal", "feasible", "does not fit", "no plan"]
    traffic_bytes: int | None
    dram_bytes: int | None
    peak_bytes: int | None
    extent_bytes: int | None
    needs_bytes: int | None
    seconds: float
    reduction: float | None
    plan: Plan | None
    reason: str = ""
    gap: float | None = None

    def data(self) -> dict[str, Any]:
        """The row without its plan, for JSON."""
        found = {name: getattr(self, name) for name in self.__slots__ if name != "plan"}
        return {**found, "space": self.space}

    @property
    def space(self) -> str:
        """Which plans `status` and `gap` range over; empty where there is no plan."""
        return "" if self.plan is None else self.plan.result.space
