"""The answer as a table: CSV in plain Python, Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from onchip.base.cells import neutral
from onchip.sweeps.sram_columns import SRAM_COLUMNS

__all__ = ["columns_of", "has_parquet", "to_csv", "to_parquet", "type_of"]

INTEGERS = (
    "macs",
    "latency_picoseconds",
    "latency_bound_picoseconds",
    "energy_picojoules",
    "energy_bound_picojoules",
)
NUMBERS = ("gap", "dram_seconds", "compute_seconds", "seconds", *SRAM_COLUMNS)


def to_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return the rows as CSV (RFC 4180, with a header, empty where there is no value)."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow([neutral(name) for name in columns])
    writer.writerows([_cell(row[name]) for name in columns] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return neutral(value)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value


def has_parquet() -> bool:
    """Return whether a library that writes Parquet is installed."""
    from importlib.util import find_spec

    return find_spec("pyarrow") is not None


def to_parquet(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bytes:
    """Return the rows as a Parquet file; bytes and counts are 64-bit integers, seconds and shares doubles."""
    import pyarrow as arrow
    from pyarrow import parquet

    fields = [(name, _type(name, [row[name] for row in rows])) for name in columns]
    kinds = {
        "integer": arrow.int64(),
        "number": arrow.float64(),
        "truth": arrow.bool_(),
        "text": arrow.string(),
    }
    arrays = []
    for name, kind in fields:
        values = [row[name] for row in rows]
        if kind == "text":
            values = [None if v is None else str(v) for v in values]
        arrays.append(arrow.array(values, kinds[kind]))
    sink = io.BytesIO()
    schema = arrow.schema([(name, kinds[kind]) for name, kind in fields])
    parquet.write_table(arrow.Table.from_arrays(arrays, schema=schema), sink)
    return sink.getvalue()


def type_of(name: str) -> Literal["integer", "number", "text"]:
    """Return the type of an answer's column."""
    if name in INTEGERS or (name.endswith("_bytes") and "." not in name):
        return "integer"
    return "number" if name in NUMBERS else "text"


def _type(name: str, values: Sequence[Any]) -> str:
    if (kind := type_of(name)) != "text":
        return kind
    found = {type(value) for value in values if value is not None}
    if found and "." in name:  # an option, as the spec states it
        if found == {bool}:
            return "truth"
        if found == {int}:
            return "integer"
        if found <= {int, float}:
            return "number"
    return "text"


def columns_of(
    rows: Sequence[Mapping[str, Any]], labels: Sequence[str], answers: Sequence[str]
) -> tuple[str, ...]:
    """Return the table's columns, also those of a table without rows."""
    return tuple(rows[0]) if rows else ("network", "chip", "planner", *labels, "budget", *answers)
