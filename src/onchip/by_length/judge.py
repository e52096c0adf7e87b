"""`check` of a table by length: its plans, and every figure of every row, derived again."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from onchip.base.errors import IllegalPlan, NegativeAnswer, PlanFormatError
from onchip.base.files import read_bytes
from onchip.by_length.table import FORMAT
from onchip.check import certify, check
from onchip.network import Network
from onchip.plans import Plan, read_plan

__all__ = ["check_table", "is_table"]

MOST = 1 << 26
"""The most bytes of a table's file."""


def is_table(path: Path) -> bool:
    """Return whether a file is a table of plans by length."""
    try:
        with path.open("rb") as file:
            return f'"format": "{FORMAT}"'.encode() in file.read(200)
    except OSError:
        return False


def check_table(path: Path, network_at: Callable[[Plan, str, int], Network]) -> dict[str, Any]:
    """Prove the plans of a table legal at both ends of their rows, and its figures; return the table.

    `network_at` reads the network of a plan at another length of a dimension. Raises `NegativeAnswer`
    (`IllegalPlan` for a plan) where something does not hold, `PlanFormatError` for a file that is no table.
    """
    table = _read(path)
    rows = table["rows"]
    for before, after in pairwise(rows):
        if after["from"] != before["to"] + 1:
            raise NegativeAnswer(f"{path}: no row has the lengths behind {before['to']:,}")
    if rows and (rows[0]["from"], rows[-1]["to"]) != (table["from"], table["to"]):
        raise NegativeAnswer(f"{path}: its rows are not from {table['from']} to {table['to']}")
    for row in rows:
        where = f"{path}: {table['dimension']} {row['from']:,} to {row['to']:,}"
        plan = read_plan(path.parent / row["plan"])
        long = check(plan)
        at = plan.network if row["from"] == row["to"] else network_at(plan, table["dimension"], row["from"])
        try:
            short = certify(
                at,
                plan.chip,
                plan.budget,
                plan.program,
                status="feasible",
                lower_bound_bytes=0,
                seconds=0.0,
                caches=plan.caches,
                options=plan.options,
            ).result
        except IllegalPlan as no:
            raise NegativeAnswer(f"{where}: {no}") from None
        derived = {
            "dram_bytes_from": short.dram_bytes,
            "dram_bytes_to": long.dram_bytes,
            "traffic_bytes_from": short.traffic_bytes,
            "traffic_bytes_to": long.traffic_bytes,
            "peak_bytes": long.peak_bytes,
            "extent_bytes": long.extent_bytes,
        }
        for key, value in derived.items():
            if row[key] != value:
                raise NegativeAnswer(f"{where}: {key} is {value:,}, not {row[key]!r}")
        if plan.budget != table["budget"]:
            raise NegativeAnswer(f"{where}: its plan has a budget of {plan.budget:,}")
    return table


def _read(path: Path) -> dict[str, Any]:
    content = read_bytes(path, error=PlanFormatError)
    try:
        table = json.loads(content) if len(content) <= MOST else None
    except (ValueError, RecursionError):
        table = None
    names = {"from": int, "to": int, "budget": int, "dimension": str, "rows": list}
    if not isinstance(table, dict) or any(type(table.get(k)) is not kind for k, kind in names.items()):
        raise PlanFormatError("is no table of plans by length", where=str(path))
    for i, row in enumerate(table["rows"]):
        plain = isinstance(row, dict) and isinstance(row.get("plan"), str)
        if not plain or any(type(row.get(key)) is not int for key in ("from", "to")):
            raise PlanFormatError("has no plan or no lengths", where=str(path), item=f"rows[{i}]")
        if Path(row["plan"]).name != row["plan"]:
            raise PlanFormatError("names a plan of another folder", where=str(path), item=f"rows[{i}]")
        missing = [k for k in _FIGURES if type(row.get(k)) is not int]
        if missing:
            raise PlanFormatError(f"has no {missing[0]}", where=str(path), item=f"rows[{i}]")
    return table


_FIGURES = (
    "dram_bytes_from",
    "dram_bytes_to",
    "traffic_bytes_from",
    "traffic_bytes_to",
    "peak_bytes",
    "extent_bytes",
)
