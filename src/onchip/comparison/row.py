"""A row of a comparison: one planner's answer, or a baseline's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from onchip.base.figures import derived, figure
from onchip.plans import Plan

__all__ = ["Row"]


@dataclass(frozen=True, slots=True)
class Row:
    """One planner's answer. Bytes are None where there is no plan: `needs_bytes` is then its need.

    `status` is a plan's (`optimal` in the space that its planner names, `feasible`), `does not fit`, or
    `no plan`, with the `reason`. `reduction` is the share of this row's DRAM bytes that the best row avoids
    (0 to 1). `gap` is the most by which they may exceed the least of this planner's plans (0 where they are
    proved to be the least, 0.05 for 5 %). Both are None where there is no plan.
    """

    scheme: str = figure()
    title: str = figure()
    status: Literal["optimal", "feasible", "does not fit", "no plan"] = figure()
    traffic_bytes: int | None = figure(heading="traffic", unit="known", place=5)
    dram_bytes: int | None = figure(heading="DRAM bytes", unit="known", place=1)
    peak_bytes: int | None = figure(heading="peak", cell="peak_or_needs", place=6)
    extent_bytes: int | None = figure()
    needs_bytes: int | None = figure()
    seconds: float = figure(heading="seconds", unit="seconds", place=99)
    reduction: float | None = figure(heading="avoidable", unit="share", place=3)
    plan: Plan | None = figure()
    reason: str = ""
    gap: float | None = figure(None, heading="gap", unit="gap", optional=True, place=2)

    @derived(heading="/ limit", unit="limit", place=4)
    def above_limit(self) -> int | None:
        """The DRAM bytes, to be divided by the least that every plan moves."""
        return self.dram_bytes

    @property
    def peak_or_needs(self) -> str:
        """The peak, or the bytes that a plan needs."""
        if self.peak_bytes is not None:
            return f"{self.peak_bytes:,}"
        return "" if self.needs_bytes is None else f"needs {self.needs_bytes:,}"

    def data(self) -> dict[str, Any]:
        """Return the row without its plan, for JSON."""
        found = {name: getattr(self, name) for name in self.__slots__ if name != "plan"}
        return {**found, "space": self.space}

    @property
    def space(self) -> str:
        """The plans that `status` and `gap` range over; empty where there is no plan."""
        return "" if self.plan is None else self.plan.result.space
