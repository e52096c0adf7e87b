"""Every difference of two plans, found in their written form: empty if and only if the files are the same.

What has a name is compared with what has the same name, lists of one length place by place, programs line by
line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from onchip.plans.json import to_json
from onchip.plans.program import Plan

__all__ = ["ABSENT", "Difference", "differences", "only_planning_time"]

MOST_LINES = 4_000
"""Longer programs are compared line by line only at their ends: else it would take minutes."""


class _Absent:
    def __repr__(self) -> str:
        return "-"


ABSENT = _Absent()
"""The value of what only the other plan has."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place of two plans that differs: the keys and names that lead there, and what each has.

    Of a program, `where` is `("program", line in the first, line in the second)`, counted from 1, and a line
    is missing in one of them, or another one.
    """

    where: tuple[str, ...]
    first: Any
    second: Any

    def data(self) -> dict[str, Any]:
        """Return the same for JSON: `first` or `second` is left out where that plan has nothing."""
        sides = {"first": self.first, "second": self.second}
        return {"where": list(self.where), **{k: v for k, v in sides.items() if v is not ABSENT}}


def differences(first: Plan, second: Plan) -> tuple[Difference, ...]:
    """Return every difference of two plans, in the order of their JSON form; none for a plan with itself."""
    return tuple(_of((), json.loads(to_json(first)), json.loads(to_json(second))))


def only_planning_time(found: Sequence[Difference]) -> bool:
    """Return whether the plans are the same but for the seconds that it took to make each."""
    return all(one.where == ("result", "seconds") for one in found)


def _of(where: tuple[str, ...], a: Any, b: Any) -> Iterator[Difference]:
    if type(a) is type(b) and a == b:
        return
    if where == ("program",) and isinstance(a, list) and isinstance(b, list):
        yield from _of_programs(a, b)
    elif isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys((*a, *b)):
            yield from _of((*where, key), a.get(key, ABSENT), b.get(key, ABSENT))
    elif _named(a) and _named(b):
        ours, theirs = ({row["name"]: row for row in rows} for rows in (a, b))
        for name in dict.fromkeys((*ours, *theirs)):
            yield from _of((*where, name), ours.get(name, ABSENT), theirs.get(name, ABSENT))
        both = [[name for name in rows if name in ours and name in theirs] for rows in (ours, theirs)]
        if both[0] != both[1]:
            yield Difference((*where, "(order)"), both[0], both[1])
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b) > 0:
        for n, pair in enumerate(zip(a, b, strict=True), 1):
            yield from _of((*where, str(n)), *pair)
    else:
        yield Difference(where, a, b)


def _named(rows: Any) -> bool:
    """Return whether these are objects, each with a name of its own."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) and "name" in row for row in rows):
        return False
    names = [row["name"] for row in rows]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _of_programs(a: list[Any], b: list[Any]) -> Iterator[Difference]:
    ours, theirs = ([json.dumps(step) for step in steps] for steps in (a, b))
    for i, j, n, m in _changed(ours, theirs):
        for k in range(max(n, m)):
            where = ("program", str(i + min(k, n) + 1), str(j + min(k, m) + 1))
            yield Difference(where, a[i + k] if k < n else ABSENT, b[j + k] if k < m else ABSENT)


def _changed(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield where two lists of lines differ: begin in each, lines in each."""
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    ours, theirs = a[head : len(a) - tail], b[head : len(b) - tail]
    if max(len(ours), len(theirs)) > MOST_LINES:
        yield head, head, len(ours), len(theirs)
        return
    for tag, i, until, j, end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag != "equal":
            yield head + i, head + j, until - i, end - j
