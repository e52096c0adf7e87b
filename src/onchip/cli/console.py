"""The common parts of the commands: arguments, tables, progress on stderr, checks of outputs."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onchip.base.errors import UsageError, one_line
from onchip.cli import complete
from onchip.cli.answer import awaited
from onchip.planners.limits import Progress

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "ChipName",
    "Json",
    "Model",
    "PlanFile",
    "goes_on",
    "in_lines",
    "progress",
    "say_beside",
    "stdout",
    "table",
    "writable",
]

Model = Annotated[
    str,
    typer.Argument(
        help="zoo:NAME, FILE.onnx, FILE.tflite, FILE.pt2, MODULE:FUNCTION (torch), or a network as FILE.json",
        autocompletion=complete.models,
    ),
]
ChipName = Annotated[
    str,
    typer.Option(
        "--chip",
        metavar="NAME|FILE",
        help="a built-in chip (`onchip chips` lists them), or the path of a .toml file",
        autocompletion=complete.chips,
    ),
]
PlanFile = Annotated[
    Path,
    typer.Argument(
        metavar="PLAN",
        help="a plan file, JSON or text",
        autocompletion=complete.files(".json", ".plan", ".txt"),
    ),
]
Json = Annotated[bool, typer.Option("--json", help="print data instead of a table")]


def table(rows: list[dict[str, Any]], title: str | None = None) -> None:
    """Print rows of the same keys, which are the headings."""
    from onchip.report.grid import Grid

    keys = [
        (key.replace("_", " "), any(isinstance(row[key], int | float) for row in rows)) for key in rows[0]
    ]
    grid = Grid(*keys)
    for row in rows:
        grid.add_row(
            *("-" if v is None else f"{v:,.12g}" if isinstance(v, int | float) else v for v in row.values())
        )
    console = stdout()
    if title is not None:
        console.print(title, markup=False)
    console.print(grid)


def stdout() -> Console:
    from rich.console import Console

    # Redirected output has no width: use one that does not fold the tables.
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 110, highlight=False)


_lines: list[bool] = [False]


def in_lines(wanted: bool) -> None:
    """Say that progress is wanted as lines of JSON."""
    _lines[0] = wanted


@contextmanager
def progress(quiet: bool) -> Iterator[Progress]:
    """Yield a function that shows a search's progress in a line on a terminal's stderr; else it is silent.

    With `onchip --progress-lines` every call is a JSON object on a line of stderr: seconds since the
    beginning, and the text.
    """
    if _lines[0]:
        began = time.monotonic()

        def write(text: str) -> None:
            told = {"progress": {"seconds": round(time.monotonic() - began, 3), "text": one_line(text)}}
            with suppress(OSError):  # stderr is closed
                print(json.dumps(told), file=sys.stderr, flush=True)

        yield write
        return
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("working") as status:
        from rich.text import Text

        yield lambda line: status.update(Text(line))


def say_beside(line: str) -> None:
    """Print one line on stderr that stands beside the answer."""
    with suppress(OSError):  # stderr is closed
        print(f"onchip: {one_line(line)}", file=sys.stderr, flush=True)


def goes_on(command: str, method: str) -> None:
    """Say on stderr where a paper's method stands now."""
    say_beside(f"{command} is `onchip plan --method {method}` now, and goes on as it was")


def writable(path: Path | None, *others: Path | None) -> None:
    """Refuse, before the long work, an output that cannot be written or is another file of the command."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError("is a directory", where=str(path))
    if not path.parent.is_dir():
        raise UsageError("its folder does not exist", where=str(path))
    if not os.access(path.parent, os.W_OK):
        raise UsageError("its folder cannot be written", where=str(path))
    for other in others:
        if other is not None and os.path.realpath(path) == os.path.realpath(other):
            raise UsageError(
                "would be written over, and this command uses it for something else", where=str(path)
            )
    awaited(path)
