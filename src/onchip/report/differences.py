"""The differences of two plans as a table for people: figures, options, network, groups, then the program."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from onchip.plans.differences import ABSENT, Difference, only_planning_time
from onchip.report.grid import Grid
from onchip.report.wording import short_time, visible

__all__ = ["differences_table"]

SECTIONS = ("result", "budget", "chip", "options", "network", "groups", "program")
"""The order in which the parts of a plan are shown; others come behind them."""

LONGEST = 60
"""The most characters of one value; the JSON has all."""


def differences_table(found: Sequence[Difference]) -> RenderableType:
    """Return what differs, or the sentence that nothing does."""
    if not found:
        return Text("no difference")
    if only_planning_time(found):
        took = " and ".join(f"{side:.3g} s" for side in (found[0].first, found[0].second))
        return Text(f"the same plan; making it took {took}")
    plain = [d for d in found if d.where[0] != "program"]
    program = [d for d in found if d.where[0] == "program"]
    parts: list[RenderableType] = [Text(_sentence(plain, program))]
    if plain:
        grid = Grid(("what", False), ("first", False), ("second", False), ("more", True))
        for d in sorted(plain, key=lambda d: _place(d.where[0])):
            grid.add_row(_where(d.where), *_values(d))
        parts += [Text(), grid]
    if program:
        lines = [line for d in program for line in _lines(d)]
        parts += [Text(), Text("Program", style="bold"), *lines]
    return Group(*parts)


def _sentence(plain: Sequence[Difference], program: Sequence[Difference]) -> str:
    values = f"{len(plain):,} value{'' if len(plain) == 1 else 's'}"
    lines = f"{len(program):,} line{'' if len(program) == 1 else 's'} of the program"
    return f"{values} and {lines} differ"


def _place(section: str) -> int:
    return SECTIONS.index(section) if section in SECTIONS else len(SECTIONS)


def _where(where: Sequence[str]) -> str:
    return " ".join(visible(word.removesuffix("_picoseconds"), LONGEST) for word in where)


def _values(d: Difference) -> tuple[str, str, str]:
    """Return both values and how much more the second is; times with their units."""
    if d.where[-1].endswith("_picoseconds") and type(d.first) is type(d.second) is int:
        more = d.second - d.first
        return short_time(d.first), short_time(d.second), f"{'-' if more < 0 else '+'}{short_time(abs(more))}"
    return _value(d.first), _value(d.second), _more(d.first, d.second)


def _value(value: Any) -> str:
    if value is ABSENT:
        return "-"
    if type(value) is int:
        return f"{value:,}"
    if type(value) is float:
        return f"{value:,.10g}"
    if isinstance(value, str):
        return visible(value, LONGEST)
    return visible(json.dumps(value), LONGEST)


def _more(first: Any, second: Any) -> str:
    numbers = all(type(value) in (int, float) for value in (first, second))
    return (
        f"{second - first:+,.6g}"
        if numbers and abs(second - first) < 1e6
        else (f"{second - first:+,.0f}" if numbers else "")
    )


def _lines(d: Difference) -> list[Text]:
    _, at, there = d.where
    sides = (("-", at, d.first), ("+", there, d.second))
    return [Text(f"  {sign} {n:>5}  {_step(step)}") for sign, n, step in sides if step is not ABSENT]


def _step(step: Any) -> str:
    words = step if isinstance(step, list) else [step]
    return " ".join(visible(w, LONGEST) if isinstance(w, str) else visible(json.dumps(w)) for w in words)
