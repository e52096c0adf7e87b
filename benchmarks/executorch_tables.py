"""The tables of docs/executorch.md, from what benchmarks/executorch_models.py has measured and run.

.venv/bin/python benchmarks/executorch_tables.py FILE.json [--into docs/executorch.md]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from page_marks import write

CONFIGURATIONS = ("default", "folded")
Kept = dict[str, dict[str, Any]]


def rows_of(kept: Kept, label: str) -> dict[str, dict[str, Any]]:
    """Return the rows of one configuration by the model's name."""
    return {key.split()[0]: row for key, row in kept.items() if key.split()[1] == label}


def one_memory(kept: Kept) -> list[str]:
    """Return the table of arenas in one memory, and the counts that it comes to."""
    lines = [
        "| model | tensors | greedy | onchip | in place | folded: greedy | onchip | in place | ms |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    default, folded = rows_of(kept, "default"), rows_of(kept, "folded")
    names = [name for name in default if name in folded]
    for name in names:
        cells = [f"{default[name]['tensors']:,}"]
        for rows in (default, folded):
            row = rows[name]
            cells += [
                f"{row['greedy']:,}",
                less(row["onchip"], row["greedy"]),
                less(row["in place"], row["greedy"]),
            ]
        most = max(row["seconds in place"] for row in (default[name], folded[name]))
        lines.append(f"| {name} | {' | '.join(cells)} | {1000 * most:.0f} |")
    lines.append("")
    for label, rows in (("default export", default), ("constants folded", folded)):
        below = sum(rows[name]["onchip"] < rows[name]["greedy"] for name in names)
        over = sum(rows[name]["in place"] < rows[name]["greedy"] for name in names)
        above = sum(
            max(rows[name]["onchip"], rows[name]["in place"]) > rows[name]["greedy"] for name in names
        )
        least = sum(rows[name]["onchip"] == rows[name]["load"] for name in names)
        least += sum(rows[name]["in place"] == rows[name]["load in place"] for name in names)
        lines.append(
            f"- {label}: below greedy in {below} of {len(names)} models, with results in place in {over};"
            f" above in {above}. {least} of {2 * len(names)} arenas are proved least."
        )
    return lines


def less(ours: int, theirs: int) -> str:
    """Return bytes, and the share that they are below others."""
    return f"{ours:,}" if ours == theirs else f"{ours:,} ({100 * (ours / theirs - 1):.0f} %)"


def two_memories(kept: Kept) -> list[str]:
    """Return the table of bytes in the slow one of two memories."""
    lines = [
        "| model | export | fast memory | slow: banked pass | slow: onchip | slow: onchip, in place |",
        "|---|---|--:|--:|--:|--:|",
    ]
    rows = [(*key.split(), row) for key, row in kept.items() if key.split()[1] in CONFIGURATIONS]
    for name, label, row in rows:
        banked = "does not fit" if row["banked"] < 0 else f"{row['banked']:,}"
        cells = f"{row['fast']:,} | {banked} | {row['two']:,} | {row['two in place']:,}"
        lines.append(f"| {name} | {label} | {cells} |")
    fewer = sum(row["two in place"] < row["banked"] for *_, row in rows)
    apart = sum(row["two"] < row["banked"] for *_, row in rows)
    more = sum(max(row["two"], row["two in place"]) > row["banked"] >= 0 for *_, row in rows)
    lines += [
        "",
        f"{len(rows)} exports: fewer slow bytes in {fewer}, in {apart} of them with nothing in place; more in"
        f" {more}.",
    ]
    return lines


def executed(kept: Kept) -> list[str]:
    """Return the table of outputs."""
    lines = ["| model | pixels | outputs against greedy's | against torch, at most |", "|---|--:|---|--:|"]
    for name, row in rows_of(kept, "run").items():
        same = "bit for bit the same" if row["same"] else "DIFFER"
        lines.append(f"| {name} | {row['pixels']} | {same} | {row['against torch']:.1e} |")
    return lines


TABLES: dict[str, Callable[[Kept], list[str]]] = {
    "one memory": one_memory,
    "two memories": two_memories,
    "executed": executed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--into", type=Path)
    args = parser.parse_args()
    kept = json.loads(args.file.read_text())
    write({name: lambda table=table: iter(table(kept)) for name, table in TABLES.items()}, args.into)


if __name__ == "__main__":
    main()
