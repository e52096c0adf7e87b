"""The tables of the terminal, which never cut a figure, however narrow the terminal is.

Bars shrink first, then columns of words fold, then headings of figures fold, and a table that is still too
wide continues below itself, with the column that names its rows in front of the rest.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from rich.bar import Bar
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

__all__ = ["WIDTH", "Grid", "printed"]

LEAST = 12
"""The least width in characters of a column of words, and of bars."""

LONGEST = 40
"""Characters of the longest bar."""

GAP = 2
"""Blanks between columns."""


class Grid:
    """Columns with a heading each, of figures (right-justified) or words; the first of words names the rows.

    Cells are text, never markup. A row may be shorter than the table. `whole_names`, the words of the first
    column, do not fold.
    """

    def __init__(self, *columns: tuple[str, bool], header: bool = True, whole_names: bool = False) -> None:
        self.headings = [heading for heading, _ in columns]
        self.figures = [figure for _, figure in columns]
        self.header = header
        self.whole_names = whole_names
        self.rows: list[tuple[Text, ...]] = []
        self.bars: list[float] = []

    def add_row(self, *cells: str | Text, bar: float | None = None) -> None:
        """Add a row; missing cells at its end stay empty. Either every row has a `bar` or none has."""
        if len(cells) > len(self.headings):
            raise ValueError(f"{len(cells)} cells for {len(self.headings)} columns")
        found = [cell if isinstance(cell, Text) else Text(cell) for cell in cells]
        self.rows.append((*found, *(Text() for _ in range(len(self.headings) - len(found)))))
        if bar is not None:
            self.bars.append(bar)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        headings = self.headings
        taken = self.taken([self.natural(c, headings) for c in range(len(headings))])
        if self.bars and taken + GAP + LEAST <= width:
            yield self.table(range(len(headings)), headings, True, min(LONGEST, width - taken - GAP))
            return
        if taken > width:
            headings = [self.folded(c) for c in range(len(headings))]
        for i, block in enumerate(self.blocks(headings, width)):
            if i:
                yield Text()
            fits = self.taken([self.least(c, headings) for c in block]) <= width
            yield self.table(block, headings, fits)

    @staticmethod
    def taken(widths: Sequence[int]) -> int:
        """Return the characters that columns of these widths take."""
        return sum(widths) + GAP * (len(widths) - 1)

    def natural(self, column: int, headings: Sequence[str]) -> int:
        """Return the characters of the longest line in a column."""
        cells = (line.cell_len for row in self.rows for line in row[column].split(allow_blank=True))
        return max((*map(len, headings[column].split("\n")), *cells))

    def least(self, column: int, headings: Sequence[str]) -> int:
        """Return the least width of a column: all of a figure; of words, the figures among them."""
        natural = self.natural(column, headings)
        if self.figures[column] or (self.whole_names and column == 0):
            return natural
        among = (len(word) for row in self.rows for word in re.findall(r"\S*\d[\d.,]*", row[column].plain))
        return min(natural, max(LEAST, min(max(among, default=0), 2 * LEAST)))

    def folded(self, column: int) -> str:
        """Return a heading in lines as short as the figures below it."""
        heading = self.headings[column]
        if not self.figures[column] or not heading:
            return heading
        below = self.natural(column, [""] * len(self.headings))
        room = max(below, *map(len, heading.split(" ")))
        return "\n".join(textwrap.wrap(heading, room, break_long_words=False, break_on_hyphens=False))

    def blocks(self, headings: Sequence[str], width: int) -> Iterator[list[int]]:
        """Yield the columns of each table to print, one below the other; all in one where they fit."""
        least = [self.least(c, headings) for c in range(len(headings))]
        key = next((c for c, figure in enumerate(self.figures) if not figure), None)
        block: list[int] = []
        for column in range(len(headings)):
            if column == key:
                continue
            wider = [*block, column]
            if block and self.taken([least[c] for c in self.with_key(wider, key)]) > width:
                yield self.with_key(block, key)
                wider = [column]
            block = wider
        yield self.with_key(block, key)

    @staticmethod
    def with_key(block: Sequence[int], key: int | None) -> list[int]:
        """Return the columns with the one that names the rows, in their order."""
        return sorted(block if key is None else [*block, key])

    def table(self, block: Sequence[int], headings: Sequence[str], fits: bool, bars: int = 0) -> Table:
        """Return some of the columns as a rich table, which narrows the widest columns of words.

        Bars of at most `bars` characters go behind them. Where a single figure is wider than the terminal
        (`fits` is false) it folds, with all its digits.
        """
        found = Table(
            box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim", show_header=self.header
        )
        for c in block:
            found.add_column(
                Text(headings[c], justify="right" if self.figures[c] else "left"),
                justify="right" if self.figures[c] else "left",
                no_wrap=(self.figures[c] or (self.whole_names and c == 0)) and fits,
                overflow="fold",
            )
        if not bars:
            for row in self.rows:
                found.add_row(*(row[c] for c in block))
            return found
        found.add_column(width=bars)
        for row, bar in zip(self.rows, self.bars, strict=True):
            found.add_row(*(row[c] for c in block), Bar(max(self.bars), 0, bar, width=bars))
        return found


WIDTH = 110
"""The columns where there is no terminal: the width of an answer printed as a string."""


def printed(answer: RenderableType, width: int = WIDTH) -> str:
    """Return the text of an answer on a terminal of so many columns."""
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(answer, markup=False)
    return capture.get()


SCREEN = 24
"""The lines of one screen."""


def one_screen(text: str) -> str:
    """Return the beginning of a printed answer that fits one screen; its last line counts the rest."""
    lines = text.rstrip("\n").splitlines()
    if len(lines) <= SCREEN:
        return "\n".join(lines)
    return "\n".join([*lines[: SCREEN - 1], f"… {len(lines) - SCREEN + 1} more lines: print() shows them"])
