"""A linear model as plain data: integer variables, rows, an objective. No solver is named here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["Model", "Row", "Terms"]

Terms = list[tuple[int, int]]
"""Pairs (variable, coefficient)."""


@dataclass(frozen=True, slots=True)
class Row:
    """`low` <= sum of the terms <= `high`; with `when`, only if that binary variable is 1.

    The paper writes `when` with a large constant M: each solver gets it in its own form.
    """

    terms: Terms
    low: int
    high: int
    when: int | None = None


@dataclass(slots=True)
class Model:
    """Variables are numbered as they are made; `lower` and `upper` are their bounds, all are integers.

    `symbols` counts variables by the paper's letter, `equations` rows by the paper's number, for comparison
    with the model sizes in the paper. Minimise `objective`.
    """

    lower: list[int] = field(default_factory=list)
    upper: list[int] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    objective: Terms = field(default_factory=list)
    symbols: Counter[str] = field(default_factory=Counter)
    equations: Counter[str] = field(default_factory=Counter)

    def variable(self, symbol: str, low: int = 0, high: int = 1) -> int:
        """Return a new integer variable from `low` to `high`."""
        self.lower.append(low)
        self.upper.append(high)
        self.symbols[symbol] += 1
        return len(self.lower) - 1

    def at_most(self, equation: str, terms: Terms, high: int, when: int | None = None) -> None:
        """Add the row: sum of the terms <= `high`."""
        low = sum(min(k * self.lower[x], k * self.upper[x]) for x, k in terms)
        self._add(equation, Row(terms, min(low, high), high, when))

    def equal(self, equation: str, terms: Terms, value: int) -> None:
        """Add the row: sum of the terms = `value`."""
        self._add(equation, Row(terms, value, value))

    def _add(self, equation: str, row: Row) -> None:
        self.rows.append(row)
        self.equations[equation] += 1

    @property
    def variables(self) -> int:
        """The number of variables."""
        return len(self.lower)

    @property
    def constraints(self) -> int:
        """The number of rows; bounds of variables do not count."""
        return len(self.rows)
