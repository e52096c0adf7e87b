"""The answer of a solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["MATH_OPT", "MathOptSolver", "Outcome", "Solver"]

Solver = Literal["cp-sat", "highs", "scip"]
MathOptSolver = Literal["highs", "scip"]

MATH_OPT: tuple[MathOptSolver, ...] = ("highs", "scip")
"""The solvers that are reached through MathOpt."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`values` by variable, None without a solution; `bound` is a proved bound of the objective, `optimal`:
    the values attain it. `infeasible` is a proof that there are none."""

    values: tuple[int, ...] | None
    bound: int
    optimal: bool
    infeasible: bool = False
