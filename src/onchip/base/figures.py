"""The figures of an answer: each stands once, as a field of a frozen record, with all that shows it.

A field made by `figure` says under which key JSON has it, what its columns are called on a terminal and on a
page, and what it counts. `data` and `columns` read that; nothing else lists the fields of a record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal

__all__ = ["Column", "Figure", "columns", "data", "figure"]

Unit = Literal["", "bytes", "words", "names"]
"""What a figure is: a plain number, bytes, bytes that users read as words, or names that tables count."""


@dataclass(frozen=True, slots=True)
class Figure:
    """How one field is shown; what is empty is not shown there.

    `key` is that of JSON, `heading` and `page` head its column, in KiB and in bytes. `cell` and `on_page`
    name properties that hold the text of its cell, where it is not the number. Columns that share `narrow`
    are added up into one of that heading on a narrow terminal. An `optional` column goes where it is 0 in
    every row. `place` orders the columns; JSON has the order of the fields.
    """

    key: str = ""
    unit: Unit = ""
    heading: str = ""
    page: str = ""
    cell: str = ""
    on_page: str = ""
    narrow: str = ""
    optional: bool = False
    place: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: the fields that it adds up, most often one."""

    heading: str
    unit: Unit
    names: tuple[str, ...]
    text: str = ""
    blank: bool = False

    def of(self, *rows: Any) -> int:
        """Its number of some rows together."""
        return sum(getattr(row, name) for row in rows for name in self.names)

    def cell(self, row: Any, words: Callable[[int], str], kib: Callable[[int], str]) -> str:
        """Its cell of a row; `words` and `kib` write numbers of bytes."""
        if self.text:
            return str(getattr(row, self.text))
        if self.unit == "names":
            return str(sum(len(getattr(row, name)) for name in self.names) or "")
        n = self.of(row)
        if self.blank and not n:
            return ""
        return words(n) if self.unit == "words" else kib(n) if self.unit == "bytes" else f"{n:,}"


def figure(default: Any = MISSING, **how: Any) -> Any:
    """A dataclass field that is a figure; the keywords are those of `Figure`."""
    return field(default=default, metadata={"figure": Figure(**how)})


def _figures(kind: type[Any]) -> list[tuple[str, Figure]]:
    return [(f.name, f.metadata["figure"]) for f in fields(kind) if "figure" in f.metadata]


def data(record: Any, words: Callable[[int], object] = int) -> dict[str, Any]:
    """A record as JSON has it; `words` says what bytes that are read as words become."""
    found: dict[str, Any] = {}
    for name, how in _figures(type(record)):
        value = getattr(record, name)
        if how.key:
            found[how.key] = words(value) if how.unit == "words" else value
    return {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()}


def columns(
    kind: type[Any], rows: Sequence[Any], on: Literal["terminal", "page"] = "terminal", *, wide: bool = True
) -> tuple[Column, ...]:
    """The columns of a table of these records, from left to right."""
    found: dict[str, Column] = {}
    for name, how in sorted(_figures(kind), key=lambda item: item[1].place):
        own = how.page if on == "page" else how.heading
        if not own or (how.optional and not any(getattr(row, name) for row in rows)):
            continue
        together = how.narrow if on == "terminal" and not wide else ""
        names = (*(found[together].names if together in found else ()), name)
        text, blank = (how.on_page, False) if on == "page" else (how.cell, how.optional)
        found[together or name] = Column(together or own, how.unit, names, text, blank)
    return tuple(found.values())
