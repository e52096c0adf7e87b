"""The table of the simple method beside exact placement, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from onchip.comparison.beside_rows import BesideRow, Zero
from onchip.report.grid import Grid
from onchip.report.wording import SENTENCE, short_size, shorten, visible

__all__ = ["table"]

LONGEST = 34


class BothMethods(Protocol):
    """The fields that the table shows (`onchip.comparison.beside.Beside` documents them)."""

    @property
    def rows(self) -> Sequence[BesideRow]: ...

    @property
    def simple_seconds(self) -> float: ...

    @property
    def exact_seconds(self) -> float: ...

    @property
    def simple_zero(self) -> Zero | None: ...

    @property
    def exact_zero(self) -> Zero | None: ...

    @property
    def complete(self) -> bool: ...


def table(made: BothMethods) -> RenderableType:
    """Return a rich renderable: a title line, a row for each run of modules, the smallest buffers."""
    head = Text("Beside exact placement", style="bold")
    head.append(
        "  KiB within the modules, beyond their inputs and outputs, which move once",
        style="not bold dim",
    )
    if not made.rows:
        return Group(head, Text("  there is no module to place" if made.complete else "  interrupted"))
    figures = ("operators", True), ("simple", True), ("exact", True), ("", False), ("exact ms", True)
    rows = Grid(("modules", False), *figures)
    for row in made.rows:
        rows.add_row(
            _modules(row),
            f"{row.operators:,}",
            _kib(row.simple_bytes),
            "-" if row.exact_bytes is None else _kib(row.exact_bytes),
            _status(row),
            f"{1e3 * row.seconds:,.1f}" if row.exact_bytes is not None else "-",
        )
    parts: list[RenderableType] = [head, Padding(rows, (0, 0, 0, 2)), Text()]
    parts.append(
        Text(
            f"  Planned in {1e3 * made.simple_seconds:,.1f} ms (simple, the whole network) and"
            f" {1e3 * made.exact_seconds:,.1f} ms (exact, these modules)."
        )
    )
    parts.append(
        Text(f"  Without traffic from: simple {_zero(made.simple_zero)}; {_exact(made.exact_zero)}.")
    )
    spaces = dict.fromkeys(row.space for row in made.rows if row.space)
    parts += [Text(f"  Exact: among {visible(space, SENTENCE)}.", style="dim") for space in spaces]
    if any(len(row.modules) > 2 for row in made.rows):
        parts.append(
            Text("  Of runs of modules the first and the last are named; --json names all.", style="dim")
        )
    if not made.complete:
        parts.append(Text("  interrupted: this much was finished"))
    return Group(*parts)


def _modules(row: BesideRow) -> str:
    first, last = visible(row.modules[0]), visible(row.modules[-1])
    if len(row.modules) == 1:
        return shorten(first, LONGEST)
    return f"{shorten(first, LONGEST // 2)} … {shorten(last, LONGEST // 2)}"


def _status(row: BesideRow) -> str:
    if row.needs_bytes is not None:
        return f"an operator needs {short_size(row.needs_bytes)}"
    if row.status == "optimal":
        return "optimal"
    return f"at least {_kib(row.bound_bytes or 0)}"


def _zero(zero: Zero | None) -> str:
    if zero is None:
        return "not searched"
    return "no buffer" if zero.bytes is None else _buffer(zero.bytes)


def _exact(zero: Zero | None) -> str:
    if zero is None:
        return "exact not searched"
    if zero.bytes is None:
        return f"exact not found, at least {_buffer(zero.at_least)}"
    proved = ", and from no fewer" if zero.at_least == zero.bytes else ""
    return f"exact {_buffer(zero.bytes)}{proved}"


def _buffer(n: int) -> str:
    return f"{n:,} B ({n / 1024:,.1f} KiB)"


def _kib(n: int) -> str:
    return f"{n / 1024:,.1f}" if n % 1024 else f"{n // 1024:,}"
