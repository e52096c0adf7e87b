"""What must hold of every command on every file."""

from __future__ import annotations

import csv
import io
import os
import unicodedata
from pathlib import Path

from hostile.case import Case
from hostile.names import HTML
from hostile.run import Ended

__all__ = ["shortcomings"]

MOST_CPU = 20.0
MOST_RESIDENT = 2_000_000_000
SMALL, TIMES = 10_000_000, 8
"""A file may be so large before it counts, and then take so many times its size more."""

LONGEST_LINE = 1_500


def shortcomings(case: Case, ended: Ended, folder: Path, *, allowance: float = 0.0) -> list[str]:
    """Where the command falls short, in words; `allowance` are more seconds for a machine that is busy."""
    found = [f"marker {name}" for name in ended.markers]
    found += [f"left {name}" for name in ended.left]
    if ended.code is None:
        found.append(f"no end after {ended.cpu:.1f} CPU s, {ended.elapsed:.1f} s")
    elif ended.code not in case.want:
        found.append(f"exit code {ended.code}: {ended.err[-300:]!r}")
    if "Traceback (most recent call last)" in ended.err + ended.out:
        found.append("traceback")
    if ended.code in (1, 2):
        found += _lines(case, ended)
    size = max((os.lstat(folder / "files" / name).st_size for name in _given(case)), default=0)
    larger = size if size >= SMALL else 0
    if ended.cpu > MOST_CPU + allowance and (not larger or case.limit is not None):
        found.append(f"{ended.cpu:.1f} CPU s")
    if ended.resident > MOST_RESIDENT + TIMES * larger:
        found.append(f"{ended.resident / 1e6:,.0f} MB resident")
    if case.limit is not None:
        most, spent = case.limit * 1.1 + 1 + allowance, min(ended.cpu, ended.elapsed)
        if spent > most:
            found.append(f"{spent:.1f} s with a limit of {case.limit} s")
    found += [f"control character {c!r}" for c in sorted(set(ended.out + ended.err)) if _controls(c)]
    found += ["HTML of the file in a page" for page in ended.pages if HTML in page]
    for table in ended.tables:
        found += [f"cell {cell!r}" for row in csv.reader(io.StringIO(table)) for cell in row if _runs(cell)]
    return found


def _given(case: Case) -> list[str]:
    return [name for name in case.files() if os.path.basename(name) in case.argv]


def _lines(case: Case, ended: Ended) -> list[str]:
    """One line, that names the file."""
    lines = [line for line in ended.err.splitlines() if not line.startswith("onchip: note:")]
    if len(lines) != 1:
        return [f"{len(lines)} lines on stderr: {ended.err[:300]!r}"]
    found = []
    if len(lines[0]) > LONGEST_LINE:
        found.append(f"a line of {len(lines[0])} characters")
    stems = {os.path.basename(part) for part in case.files()} | {part for part in case.argv if ":" in part}
    stems |= {f"{stem.removesuffix('.py')}:" for stem in stems if stem.endswith(".py")}
    if ended.code == 2 and not any(stem in lines[0] for stem in stems):
        found.append(f"no file named: {lines[0]!r}")
    return found


def _controls(character: str) -> bool:
    """Whether a terminal does something at this character."""
    if character == "\n":
        return False
    bidirectional = "\u202a" <= character <= "\u202e" or "\u2066" <= character <= "\u2069"
    return unicodedata.category(character) == "Cc" or bidirectional


def _runs(cell: str) -> bool:
    """Whether a spreadsheet takes the cell for a formula."""
    try:
        float(cell)
    except ValueError:
        return cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    return False
