"""Write records as JSON, and read them strictly, by the fields of their dataclasses.

`onchip.base.fields` defines the marks of a field. The functions for each record are made once, on first use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from itertools import chain
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from onchip.base.errors import InputError
from onchip.base.fields import (
    COUNTS,
    LIMIT,
    Member,
    alternatives,
    form_of,
    getter,
    is_row,
    members,
    ordered,
    word_of,
)

__all__ = [
    "Count",
    "column",
    "decode",
    "from_wire",
    "leaves",
    "taken",
    "to_object",
    "wire_of",
    "wire_struct",
    "wire_type",
]

Count = Annotated[int, msgspec.Meta(gt=-LIMIT, lt=LIMIT)]
"""A whole number of files: larger ones are mistakes, and would not fit a machine's integers."""

Change = Callable[[Any], Any]


# -- the types of files ------------------------------------------------------------------------------------


@cache
def wire_of(record: type) -> Any:
    """Return the type that msgspec decodes a record's object to; `from_wire` turns that into the record."""
    if form_of(record):
        return dict[str, Any]
    columns = [column for m in members(record) for column in _columns(m)]
    return wire_struct(record.__name__, sorted(columns, key=len))  # columns with a default come last


def wire_struct(name: str, columns: Sequence[Any]) -> Any:
    """Return a type for msgspec, of columns (key, type) and (key, type, default), that `decode` can use."""
    return msgspec.defstruct(name, columns, forbid_unknown_fields=True, omit_defaults=True)


def column(key: str, hint: Any) -> tuple[Any, ...]:
    """Return the column of a key that a file may leave out; its value is then `UNSET`, which is false."""
    return key, Union[wire_type(hint), msgspec.UnsetType], msgspec.UNSET  # noqa: UP007


def _columns(m: Member) -> list[tuple[Any, ...]]:
    """Return the columns of a field: one, or one for each kind of record that it may be."""
    if m.kinds:
        return [(word_of(kind), Union[wire_of(kind), None], None) for kind in m.kinds]  # noqa: UP007
    if m.needed:
        return [(m.key, wire_type(m.hint))]
    if m.not_null or m.wire.written:
        return [column(m.key, m.plain if m.not_null else m.hint)]
    return [(m.key, wire_type(m.hint), {} if m.hint == COUNTS else m.default)]


def wire_type(hint: Any) -> Any:
    """Return the type that msgspec decodes the value of a field to."""
    of, inner = get_origin(hint), get_args(hint)
    if of is Annotated and get_args(inner[0]):  # a limit of how many
        return Annotated[(wire_type(inner[0]), *inner[1:])]
    if is_row(hint):
        return tuple[tuple(wire_type(m.hint) for m in members(hint))]  # type: ignore[misc]
    if hint is int:
        return Count
    if hint == COUNTS:
        return dict[str, Count]
    if is_dataclass(hint):
        return wire_of(hint)  # type: ignore[arg-type]
    if of in (Union, UnionType):
        return Union[tuple(map(wire_type, inner))]  # noqa: UP007
    if of is tuple:
        return tuple[tuple(a if a is ... else wire_type(a) for a in inner)]  # type: ignore[misc]
    if of is Sequence:
        return tuple[wire_type(inner[0]), ...]  # type: ignore[misc]
    if of is Mapping:
        return dict[wire_type(inner[0]), wire_type(inner[1])]  # type: ignore[misc]
    return hint


# -- writing -----------------------------------------------------------------------------------------------


def to_object(record: Any) -> dict[str, Any]:
    """Return the JSON object of a record: the needed fields, then those that differ from their defaults."""
    kind: Any = type(record)
    found: dict[str, Any] = _writer(kind)(record)
    return found


@cache
def _writer(record: type) -> Change:
    if form := form_of(record):
        return form.write
    never = object()
    rows = [
        (
            m.name,
            m.key,
            never if m.needed or m.wire.written else m.default,
            _put(m.hint),
            m.kinds,
        )
        for m in ordered(record)
    ]

    def write(value: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, key, default, put, kinds in rows:
            held = getattr(value, name)
            if held is default:  # msgspec compares so, too
                continue
            found[word_of(type(held)) if kinds else key] = held if put is None else put(held)
        return found

    return write


@cache
def _put(hint: Any) -> Change | None:
    """Return the function from a field's value to JSON; None where the value is JSON already."""
    inner = [a for a in get_args(hint) if a is not NoneType]
    if get_origin(hint) is Annotated:
        return _put(inner[0])
    if is_row(hint):
        names = [m.name for m in members(hint)]
        return lambda row: [getattr(row, name) for name in names]
    if hint == COUNTS:
        return dict
    if hint is bool:
        return bool
    if is_dataclass(hint) or alternatives(hint):
        return to_object
    if get_origin(hint) in (Union, UnionType):
        return _unless_none(_put(inner[0])) if len(inner) == 1 else None
    if get_origin(hint) is tuple and (put := _put(inner[0])):
        return lambda rows: [put(row) for row in rows]
    if get_origin(hint) is Mapping:
        return _each_value(_put(inner[1]))
    return None


def _each_value(change: Change | None) -> Change | None:
    return None if change is None else lambda values: {key: change(value) for key, value in values.items()}


def _unless_none(change: Change | None) -> Change | None:
    return None if change is None else lambda value: None if value is None else change(value)


# -- reading -----------------------------------------------------------------------------------------------


def from_wire(record: type, wire: Any) -> Any:
    """Return the record that was decoded; raise `ValueError` with the reason if the record refuses it."""
    return _reader(record)(wire)


@cache
def _reader(record: type) -> Change:
    if form := form_of(record):
        return form.read
    several = [(m.name, m.kinds) for m in members(record) if m.kinds]
    others = [m for m in members(record) if not m.kinds]
    changes = [(m.name, m.key, _take(m.hint)) for m in others if m.key != m.name or _take(m.hint)]
    maybe = [m.name for m in others if not m.needed and (m.not_null or m.wire.written)]

    def read(wire: Any) -> Any:
        given = msgspec.structs.asdict(wire)
        for name, key, take in changes:
            held = given.pop(key)
            given[name] = held if take is None or held is msgspec.UNSET else take(held)
        for name, kinds in several:
            given[name] = _one_of(kinds, given)
        for name in maybe:
            if given[name] is msgspec.UNSET:
                del given[name]
        return record(**given)

    return read


def taken(value: Any, type_: Any, hint: Any) -> Any:
    """Return a field's value from plain JSON; raise `ValueError` if that is no `type_`."""
    try:
        wire = msgspec.convert(value, type_)
    except msgspec.ValidationError as problem:
        raise ValueError(str(problem)) from None
    take = _take(hint)
    return wire if take is None else take(wire)


def _one_of(kinds: Iterable[type], given: dict[str, Any]) -> Any:
    """Return the record under the one key that is stated, if any; take the keys of all `kinds` out."""
    held = {kind: given.pop(word_of(kind)) for kind in kinds}
    stated = [kind for kind in kinds if held[kind] is not None]
    if len(stated) > 1:
        *words, last = map(word_of, kinds)
        raise ValueError(f"has more than one of {', '.join(words)} and {last}")
    for kind in stated:
        try:
            return from_wire(kind, held[kind])
        except ValueError as problem:
            raise ValueError(f"its {word_of(kind)} {problem}") from None
    return None


@cache
def _take(hint: Any) -> Change | None:
    """Return the function from a decoded value to the field's; None where they are the same."""
    inner = [a for a in get_args(hint) if a is not NoneType]
    if get_origin(hint) is Annotated:
        return _take(inner[0])
    if is_row(hint):
        return lambda row: hint(*row)
    if hint == COUNTS:
        return lambda counts: tuple(counts.items())
    if is_dataclass(hint):
        return _reader(hint)  # type: ignore[arg-type]
    if get_origin(hint) in (Union, UnionType):
        return _unless_none(_take(inner[0])) if len(inner) == 1 else None
    if get_origin(hint) is tuple and (take := _take(inner[0])):
        return lambda rows: tuple([take(row) for row in rows])
    if get_origin(hint) is Mapping:
        return _each_value(_take(inner[1]))
    return None


# -- all numbers, all texts --------------------------------------------------------------------------------


@cache
def leaves(hint: Any, kind: type) -> Callable[[Any], Iterable[Any]] | None:
    """Return the function that finds all of `kind` in a value of type `hint`; None if it holds none.

    It goes by the types: it finds the values in the places of numbers, whatever they are.
    """
    of, inner = get_origin(hint), [a for a in get_args(hint) if a is not NoneType]
    if hint is kind:
        return lambda value: (value,)
    if of is Literal:
        return None
    if form := form_of(hint):
        return lambda value: form.leaves(value, kind)
    if is_dataclass(hint):
        return _leaves_of(hint, kind)  # type: ignore[arg-type]
    if kinds := alternatives(hint):
        by_kind = {a: leaves(a, kind) for a in kinds}
        return lambda value: find(value) if (find := by_kind.get(type(value))) else ()
    if of is Annotated or (of in (Union, UnionType) and len(inner) == 1):
        find = leaves(inner[0], kind)
        return None if find is None else lambda value: () if value is None else find(value)
    if of is tuple and len(inner) == 2 and inner[1] is not ...:
        return _leaves_of_pair(leaves(inner[0], kind), leaves(inner[1], kind))
    if of is tuple:
        each = leaves(inner[0], kind)
        if inner[0] is kind:
            return lambda values: values
        return None if each is None else lambda values: chain.from_iterable(map(each, values))
    return None


def _leaves_of(record: type, kind: type) -> Callable[[Any], Iterable[Any]] | None:
    direct = [m for m in members(record) if m.hint is kind]
    get_direct = getter(direct)
    rest = [
        (attrgetter(m.name), find)
        for m in members(record)
        if m.hint is not kind and (find := leaves(m.hint, kind))
    ]

    def found(value: Any) -> list[Any]:
        all_of = [*get_direct(value)]
        for get, find in rest:
            if (held := get(value)) is not None:
                all_of += find(held)
        return all_of

    return found if direct or rest else None


def _leaves_of_pair(
    first: Callable[[Any], Iterable[Any]] | None, second: Callable[[Any], Iterable[Any]] | None
) -> Callable[[Any], Iterable[Any]] | None:
    finds = [(i, find) for i, find in enumerate((first, second)) if find]
    return (lambda pair: [x for i, find in finds for x in find(pair[i])]) if finds else None


# -- strict JSON -------------------------------------------------------------------------------------------


def decode(content: bytes, type_: Any, *, where: str, error: type[InputError]) -> Any:
    """Return JSON bytes as `type_`, strictly; raises `error` naming a key that is wrong, unknown or repeated.

    The structs of `type_` refuse unknown keys, and leave out their defaults when they are written.
    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        value = msgspec.json.decode(content, type=type_)
        if not _no_key_is_lost(content, value):
            json.loads(content, object_pairs_hook=_refuse_twice)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        reason, _, at = str(problem).partition(" - at `")
        reason = _SAID_AT.sub(lambda found: _in_lines(content, int(found[1])), reason)
        raise error(reason, where=where, item=at.rstrip("`") or None) from None
    except ValueError as problem:
        raise error(str(problem), where=where) from None
    return value


def _no_key_is_lost(content: bytes, value: Any) -> bool:
    """Return whether the value, written again, has as many colons as the file: then no key is repeated.

    The value states nothing that the file does not state, and a repeated key loses at least one colon. The
    count means nothing if the file spells a colon as an escape. The value may also have fewer colons because
    it omits a default that the file states; the caller then looks at the keys one by one.
    """
    if b"\\u003" in content:
        return False
    return content.count(b":") == msgspec.json.encode(value).count(b":")


_SAID_AT = re.compile(r"\(byte ([0-9]{1,18})\)$")


def _in_lines(content: bytes, at: int) -> str:
    """Return the line of a byte, and the word there if it is a number that JSON does not have."""
    line = content.count(b"\n", 0, at) + 1
    odd = next((word for word in ("NaN", "Infinity") if content[at:].startswith(word.encode())), "")
    return f"(line {line}{': ' + odd if odd else ''})"


def _refuse_twice(pairs: list[tuple[str, Any]]) -> None:
    """Refuse a repeated key: readers of JSON differ in which of two equal keys they take."""
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise ValueError(f"the key {key[:60]!r} is given twice")
        seen.add(key)
