"""`check` of tables by length and of sessions: their plans, and every figure of every row, derived again."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from onchip.base.errors import NegativeAnswer, PlanFormatError
from onchip.base.files import read_bytes
from onchip.by_length.session import FORMAT as SESSION
from onchip.by_length.stretch import at_network
from onchip.by_length.table import FORMAT
from onchip.check import check, prove_following
from onchip.network import Network
from onchip.plans import Plan, read_plan

__all__ = ["check_session", "check_table", "is_session", "is_table", "read_session", "row_plan"]

MOST = 1 << 26
"""The most bytes of a table's file."""


def is_table(path: Path) -> bool:
    """Return whether a file is a table of plans by length."""
    return _is(path, FORMAT)


def is_session(path: Path) -> bool:
    """Return whether a file is a session: a prompt's plan and a table of the steps behind it."""
    return _is(path, SESSION)


def _is(path: Path, format_: str) -> bool:
    try:
        with path.open("rb") as file:
            return f'"format": "{format_}"'.encode() in file.read(40)
    except OSError:
        return False


NetworkAt = Callable[[Plan, str, int], Network]
"""Reads the network of a plan at another length of a dimension."""


def check_table(path: Path, network_at: NetworkAt) -> dict[str, Any]:
    """Prove the plans of a table legal at both ends of their rows, and its figures; return the table.

    Raises `NegativeAnswer` (`IllegalPlan` for a plan) where something does not hold, `PlanFormatError` for a
    file that is no table.
    """
    table = _table(_read(path), path)
    _ends(table, path, network_at)
    return table


def check_session(path: Path, network_at: NetworkAt) -> dict[str, Any]:
    """Prove the plans of a session legal, and that they follow each other in one arena; return the session.

    Raises as `check_table` does.
    """
    session, prompt, steps = read_session(path)
    check(prompt)
    before = prompt
    for begins, plan in _ends(steps, path, network_at):
        prove_following(before, begins)
        before = plan
    stated = [tuple(cache.get(key) for key in _CACHE) for cache in session["caches"]]
    derived = [(c.output, c.address, c.axis, c.rows) for c in prompt.caches]
    if stated != derived:
        raise NegativeAnswer(f"{path}: its caches are not those of {session['prompt']}")
    return session


def read_session(path: Path) -> tuple[dict[str, Any], Plan, dict[str, Any]]:
    """Return a session's file, its prompt's plan and the table of its steps; nothing is proved."""
    session = _read(path)
    caches = session.get("caches")
    rows = isinstance(caches, list) and all(isinstance(cache, dict) for cache in caches)
    if not rows or not isinstance(session.get("steps"), dict):
        raise PlanFormatError("has no caches or no steps", where=str(path))
    return (
        session,
        read_plan(path.parent / _name(session.get("prompt"), path, "prompt")),
        _table(session["steps"], path),
    )


def row_plan(table: dict[str, Any], path: Path, length: int) -> Plan:
    """Return the plan of the row of a length, as it is in its file: of the row's last length."""
    row = next(row for row in table["rows"] if row["from"] <= length <= row["to"])
    return read_plan(path.parent / row["plan"])


def _ends(table: dict[str, Any], path: Path, network_at: NetworkAt) -> list[tuple[Plan, Plan]]:
    """Prove every row; return its plan at its first and at its last length."""
    rows = table["rows"]
    for before, after in pairwise(rows):
        if after["from"] != before["to"] + 1:
            raise NegativeAnswer(f"{path}: no row has the lengths behind {before['to']:,}")
    if not rows or (rows[0]["from"], rows[-1]["to"]) != (table["from"], table["to"]):
        raise NegativeAnswer(f"{path}: its rows are not from {table['from']} to {table['to']}")
    return [_end(row, table, path, network_at) for row in rows]


def _end(row: dict[str, Any], table: dict[str, Any], path: Path, network_at: NetworkAt) -> tuple[Plan, Plan]:
    where = f"{path}: {table['dimension']} {row['from']:,} to {row['to']:,}"
    plan = read_plan(path.parent / row["plan"])
    long = check(plan)
    begins = plan
    if row["from"] < row["to"]:
        shorter = at_network(plan, network_at(plan, table["dimension"], row["from"]))
        if shorter is None:
            raise NegativeAnswer(f"{where}: its plan is not legal at {row['from']:,}")
        begins = shorter
    derived = {
        "dram_bytes_from": begins.result.dram_bytes,
        "dram_bytes_to": long.dram_bytes,
        "traffic_bytes_from": begins.result.traffic_bytes,
        "traffic_bytes_to": long.traffic_bytes,
        "peak_bytes": long.peak_bytes,
        "extent_bytes": long.extent_bytes,
    }
    for key, value in derived.items():
        if row[key] != value:
            raise NegativeAnswer(f"{where}: {key} is {value:,}, not {row[key]!r}")
    if plan.budget != table["budget"]:
        raise NegativeAnswer(f"{where}: its plan has a budget of {plan.budget:,}")
    return begins, plan


def _read(path: Path) -> dict[str, Any]:
    content = read_bytes(path, error=PlanFormatError)
    try:
        found = json.loads(content) if len(content) <= MOST else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise PlanFormatError("is no table of plans", where=str(path))
    return found


def _table(table: dict[str, Any], path: Path) -> dict[str, Any]:
    names = {"from": int, "to": int, "budget": int, "dimension": str, "rows": list}
    if any(type(table.get(k)) is not kind for k, kind in names.items()):
        raise PlanFormatError("is no table of plans by length", where=str(path))
    for i, row in enumerate(table["rows"]):
        item = f"rows[{i}]"
        if not isinstance(row, dict) or any(type(row.get(key)) is not int for key in ("from", "to")):
            raise PlanFormatError("has no plan or no lengths", where=str(path), item=item)
        _name(row.get("plan"), path, item)
        missing = [k for k in _FIGURES if type(row.get(k)) is not int]
        if missing:
            raise PlanFormatError(f"has no {missing[0]}", where=str(path), item=item)
    return table


def _name(value: object, path: Path, item: str) -> str:
    """Return the name of a plan's file, which lies in the same folder."""
    if not isinstance(value, str) or Path(value).name != value:
        raise PlanFormatError("names no plan of its folder", where=str(path), item=item)
    return value


_CACHE = ("begins", "address", "axis", "rows")

_FIGURES = (
    "dram_bytes_from",
    "dram_bytes_to",
    "traffic_bytes_from",
    "traffic_bytes_to",
    "peak_bytes",
    "extent_bytes",
)
