"""Write records as lines of text and instructions as JSON arrays, and read them, by their fields.

`alloc y @8 in sram over x by -4` and `["alloc", "y", 8, {"over": "x", "by": -4, "in": "sram"}]` state the
word of the record, then the fields that have a place, then the attributes (`onchip.base.fields`). The type of
a field decides its form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING
from functools import cache
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from onchip.base.codec import taken, wire_type
from onchip.base.fields import COUNTS, LIMIT, Member, getter, members, word_of
from onchip.plans.program import (
    Cache,
    PinnedTensor,
    PinnedWeights,
    State,
    TensorLayout,
)
from onchip.plans.result import (
    MemoryUse,
    Moved,
    Timed,
)
from onchip.plans.text_words import Word, address, counted, counts, integer, names, scalar, word

__all__ = ["FACTS", "line_of", "read_line", "row_reader", "to_row"]

FACTS = {
    ("cache",): Cache,
    ("layout",): TensorLayout,
    ("moved",): Moved,
    ("pin", "tensor"): PinnedTensor,
    ("pin", "weights"): PinnedWeights,
    ("state",): State,
    ("time",): Timed,
    ("used",): MemoryUse,
}
"""The records besides the instructions that take a line each, by the words that start the line."""

_STARTS = {record: " ".join(start) for start, record in FACTS.items()}

_LISTS = (COUNTS, tuple[str, ...], tuple[int, ...])
"""The types of attributes that take all words of a line up to the next key."""


def _places(record: type) -> list[Member]:
    found = [m for m in members(record) if m.default is MISSING and not m.wire.key]
    for m in found:
        if m.plain is bool or m.plain in _LISTS:
            raise TypeError(f"{record.__name__}.{m.name}: a flag or a list needs a default, or a key")
    return found


def _attributes(record: type) -> list[Member]:
    return [m for m in members(record) if (m.default is not MISSING or m.wire.key) and not m.wire.placed]


def _in_line(record: type) -> list[Member]:
    """Return the attributes in the order of a line: lists come last, so that few keys can end them."""
    attributes = sorted(_attributes(record), key=lambda m: (not m.wire.leads, m.plain in _LISTS))
    return attributes + [m for m in members(record) if m.wire.placed]


# -- arrays ------------------------------------------------------------------------------------------------


def to_row(record: Any) -> list[Any]:
    """Return an instruction as an array: `["load", "x", 0, {"in": "sram"}]`."""
    kind: Any = type(record)
    return _row_writer(kind)(record)


@cache
def _row_writer(record: type) -> Callable[[Any], list[Any]]:
    start, places, said = word_of(record), getter(_places(record)), _said(record, _attributes(record))
    puts = {m.key: dict for m in _attributes(record) if m.plain == COUNTS}

    def write(value: Any) -> list[Any]:
        row = [start, *places(value)]
        if attributes := said(value):
            row.append({m.key: puts.get(m.key, _as_it_is)(held) for m, held in attributes})
        return row

    return write


def _as_it_is(value: Any) -> Any:
    return value


def _said(record: type, order: Sequence[Member]) -> Callable[[Any], list[tuple[Member, Any]]]:
    """Return the function from a record to the attributes that its files state, with their values."""
    get, defaults = getter(order), tuple([m.default for m in order])
    default = {m.name: m.default for m in members(record)}
    rows = [(m, m.wire.beside or m.name) for m in order]

    def said(value: Any) -> list[tuple[Member, Any]]:
        held = get(value)
        if held == defaults:
            return []
        return [
            (m, one)
            for (m, decides), one in zip(rows, held, strict=True)
            if getattr(value, decides) != default[decides]
        ]

    return said


@cache
def row_reader(kinds: tuple[type, ...]) -> Callable[[Sequence[Any]], Any]:
    """Return the function from an array to the record; it raises `ValueError` if that is none of `kinds`."""
    readers = {word_of(kind): _row_reader(kind) for kind in kinds}

    def read(row: Sequence[Any]) -> Any:
        reader = readers.get(row[0]) if row and type(row[0]) is str else None
        if reader is None:
            raise ValueError("no kind")
        return reader(row)

    return read


def _row_reader(record: type) -> Callable[[Sequence[Any]], Any]:
    places = [_value(m) for m in _places(record)]
    rest = {m.key: (m.name, _value(m)) for m in _attributes(record)}
    needed = {m.key for m in _attributes(record) if m.default is MISSING}
    keys = {m.name: m.key for m in members(record)}
    beside = [(m.key, keys[m.wire.beside]) for m in _attributes(record) if m.wire.beside]
    size = len(places) + 1

    def read(row: Sequence[Any]) -> Any:
        if len(row) == size and not needed:
            return record(*[take(held) for take, held in zip(places, row[1:], strict=True)])
        said = row[-1]
        if len(row) != size + 1 or type(said) is not dict or not said:
            raise ValueError("too little or too much")
        if needed - said.keys() or any((a in said) != (b in said) for a, b in beside):
            raise ValueError("an attribute is missing")
        given = {}
        for key, held in said.items():
            if key not in rest:
                raise ValueError("an unknown attribute")
            name, take = rest[key]
            given[name] = take(held)
        return record(*[take(held) for take, held in zip(places, row[1:-1], strict=True)], **given)

    return read


def _value(m: Member) -> Callable[[Any], Any]:
    """Return the function from plain JSON to the field's value; it raises `ValueError` for anything else."""
    if m.plain is int:
        return _whole
    if m.plain is str:
        return _text
    type_ = wire_type(m.plain)
    if get_origin(m.plain) is tuple and m.plain != COUNTS:
        type_ = Annotated[type_, msgspec.Meta(min_length=1)]
    return lambda value: taken(value, type_, m.plain)


def _whole(value: Any) -> int:
    if type(value) is not int or not -LIMIT < value < LIMIT:  # JSON's true and false are none
        raise ValueError("no whole number")
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError("no text")
    return value


# -- lines -------------------------------------------------------------------------------------------------


def line_of(record: Any) -> str:
    """Return a record as its line: `load x @0 in sram`."""
    kind: Any = type(record)
    return _line_writer(kind)(record)


@cache
def _line_writer(record: type) -> Callable[[Any], str]:
    start, order = _STARTS.get(record) or word_of(record), _in_line(record)
    places = [(attrgetter(m.name), _mark(m), _say(m, ())) for m in _places(record)]
    get_rest, defaults, said = getter(order), tuple([m.default for m in order]), _said(record, order)
    say = {m.name: _say(m, [other.key for other in order[n:]]) for n, m in enumerate(order, 1)}

    def write(value: Any) -> str:
        line = start
        for get, mark, put in places:
            line += mark + put(get(value))
        if get_rest(value) == defaults:
            return line
        for m, held in said(value):
            key = "" if m.wire.placed else f" {m.key}"
            line += key if m.plain is bool else key + _mark(m) + say[m.name](held)
        return line

    return write


def _mark(m: Member) -> str:
    return " @" if m.wire.at else " "


def _say(m: Member, keywords: Sequence[str]) -> Callable[[Any], str]:
    """Return the function from a field's value to words; it quotes `keywords` in lists, which they end."""
    if m.plain == COUNTS:
        return counted
    if m.plain == tuple[str, ...]:
        return lambda held: " ".join([word(name, keywords) for name in held])
    if m.plain == tuple[int, ...]:
        return lambda held: " ".join(map(str, held))
    return repr if m.plain in (int, float) else word


def read_line(words: Sequence[Word], record: type) -> Any:
    """Return the record in the words of a line behind its start; None if the line has other words.

    Raises `ValueError` with the reason if a word is not of the expected form.
    """
    return _line_reader(record)(words)


@cache
def _line_reader(record: type) -> Callable[[Sequence[Word]], Any]:
    places = [_read(m) for m in _places(record)]
    order = _in_line(record)
    rest = [
        (m, (m.key, False), _read(m), [(x.key, False) for x in order[n:]]) for n, m in enumerate(order, 1)
    ]
    size, complete = len(places), all(m.default is not MISSING for m in order)

    def read(line: Sequence[Word]) -> Any:
        if len(line) == size and complete:
            return record(*[take(said) for take, said in zip(places, line, strict=True)])
        at = size
        found: dict[str, tuple[Callable[[Any], Any], Any]] = {}
        for m, key, take, later in rest:
            if m.wire.placed and at < len(line):
                found[m.name] = take, line[at]
                at += 1
            elif at < len(line) and line[at] == key:
                end = _end(m, line, at + 1, later)
                part = line[at + 1 : end]
                found[m.name] = take, part if m.plain in _LISTS or not part else part[0]
                at = end
            elif m.default is MISSING:
                return None
            if m.wire.beside and (m.name in found) != (m.wire.beside in found):
                return None
        if at != len(line):
            return None
        given = [take(said) for take, said in zip(places, line[:size], strict=True)]
        return record(*given, **{name: take(part) for name, (take, part) in found.items()})

    return read


def _end(m: Member, line: Sequence[Word], at: int, keys: Sequence[Word]) -> int:
    """Return where the words of an attribute end: beyond the end of the line if there are too few."""
    if m.plain is bool:
        return at
    if m.plain in _LISTS:
        return next((n for n in range(at + 1, len(line)) if line[n] in keys), max(at + 1, len(line)))
    return at + 1


def _read(m: Member) -> Callable[[Any], Any]:
    """Return the function from a word, or from the words of a list, to the field's value."""
    if m.plain is int:
        return (lambda said: address(said[0])) if m.wire.at else lambda said: integer(said[0])
    if m.plain is bool:
        return lambda _: not m.default
    if m.plain == COUNTS:
        return counts
    if m.plain == tuple[str, ...]:
        return names
    if m.plain == tuple[int, ...]:
        return lambda part: tuple([integer(text) for text, _ in part])
    if m.plain is float:
        return _number
    if get_origin(m.plain) is Literal:
        return lambda said: _one_of(said[0], m)
    return itemgetter(0)


def _number(said: Word) -> float:
    value = scalar(said)
    if isinstance(value, str | bool | None):
        raise ValueError(f"{said[0][:60]!r} is not a number")
    return float(value)


def _one_of(text: str, m: Member) -> str:
    *most, last = get_args(m.plain)
    if text not in (*most, last):
        raise ValueError(f"{m.key} is {', '.join(most)} or {last}, not {text[:60]!r}")
    return text
