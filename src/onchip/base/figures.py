"""The figures of an answer: each is defined once, as a field of a frozen record, with its presentation.

A field made by `figure`, or a property made by `derived`, states its key in JSON, the headings of its columns
on a terminal and on a page, and its unit. `data` and `columns` read that; nothing else lists the figures of a
record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Generic, Literal, TypeVar, overload

__all__ = ["Column", "Derived", "Figure", "Writers", "columns", "data", "derived", "figure"]

T = TypeVar("T")

Writers = Mapping[str, Callable[[Any], Any]]
"""By unit, the function that formats a figure of that unit."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The presentation of one figure; an empty name hides it there.

    `key` is that of JSON, `heading` and `page` head its column. `unit` is the word by which writers know what
    is counted (`words`, `kb`); names are counted themselves. `cell` and `on_page` name properties that hold
    the text of its cell, if it is not the number. A narrow terminal adds up columns that share `narrow` into
    one of that heading; there the highest of those with `gives_way` is dropped first. An `optional` column is
    dropped if it is 0 in every row. `place` orders the columns, `order` JSON, which otherwise has the order
    of the fields.
    """

    key: str = ""
    unit: str = ""
    heading: str = ""
    page: str = ""
    cell: str = ""
    on_page: str = ""
    narrow: str = ""
    gives_way: int = 0
    optional: bool = False
    place: int = 0
    order: int = 99


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: the figures that it adds up, usually one."""

    heading: str
    figure: Figure
    names: tuple[str, ...]
    text: str = ""
    blank: bool = False

    def of(self, *rows: Any) -> int:
        """Return the column's number for some rows together."""
        return sum(getattr(row, name) for row in rows for name in self.names)

    def cell(self, row: Any, writers: Writers) -> str:
        """Return the column's cell of a row."""
        if self.text:
            return str(getattr(row, self.text))
        value: Any = getattr(row, self.names[0]) if len(self.names) == 1 else self.of(row)
        if self.figure.unit == "names":
            return str(len(value) or "")
        return "" if self.blank and not value else str(writers.get(self.figure.unit, "{:,}".format)(value))


def figure(default: Any = MISSING, *, repr: bool = True, **how: Any) -> Any:
    """Return a dataclass field that is a figure; the keywords are `Figure`'s, none for a hidden one."""
    return field(default=default, repr=repr, metadata={"figure": Figure(**how)})


class Derived(Generic[T]):
    """A property that is a figure."""

    def __init__(self, of: Callable[[Any], T], how: Figure) -> None:
        self.of, self.figure, self.__doc__ = of, how, of.__doc__

    @overload
    def __get__(self, record: None, kind: type[Any]) -> Derived[T]: ...

    @overload
    def __get__(self, record: object, kind: type[Any]) -> T: ...

    def __get__(self, record: object | None, kind: type[Any]) -> Derived[T] | T:
        return self if record is None else self.of(record)


def derived(**how: Any) -> Callable[[Callable[[Any], T]], Derived[T]]:
    """Return a decorator that makes a method a property that is a figure; the keywords are `Figure`'s."""
    return lambda of: Derived(of, Figure(**how))


def _figures(kind: type[Any]) -> list[tuple[str, Figure]]:
    stored = [(f.name, f.metadata["figure"]) for f in fields(kind) if "figure" in f.metadata]
    return stored + [(name, made.figure) for name, made in vars(kind).items() if isinstance(made, Derived)]


def data(record: Any, writers: Writers) -> dict[str, Any]:
    """Return a record as in JSON."""
    found: dict[str, Any] = {}
    for name, how in sorted(_figures(type(record)), key=lambda item: item[1].order):
        if how.key:
            value = writers.get(how.unit, lambda same: same)(getattr(record, name))
            found[how.key] = list(value) if isinstance(value, tuple) else value
    return found


def columns(
    kind: type[Any], rows: Sequence[Any], on: Literal["terminal", "page"] = "terminal", *, wide: bool = True
) -> tuple[Column, ...]:
    """Return the columns of a table of these records, from left to right."""
    found: dict[str, Column] = {}
    for name, how in sorted(_figures(kind), key=lambda item: item[1].place):
        own = how.page if on == "page" else how.heading
        if not own or (how.optional and not any(getattr(row, name) for row in rows)):
            continue
        together = how.narrow if on == "terminal" and not wide else ""
        names = (*(found[together].names if together in found else ()), name)
        text, blank = (how.on_page, False) if on == "page" else (how.cell, how.optional)
        found[together or name] = Column(together or own, how, names, text, blank)
    return tuple(found.values())
