"""The form of a record in files, read from its fields: from their types, and from a mark in their metadata.

`onchip.base.codec` makes the JSON of a record from this, and `onchip.plans.lines` its line of text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

__all__ = [
    "AT",
    "COUNTS",
    "LIMIT",
    "OUTSIDE",
    "STATED",
    "WRITTEN",
    "Form",
    "Member",
    "Wire",
    "alternatives",
    "as_row",
    "form_of",
    "getter",
    "in_form",
    "in_order",
    "is_row",
    "members",
    "ordered",
    "wire",
    "without_nulls",
    "word_of",
]

LIMIT = 10**18
"""Whole numbers in files lie strictly between -LIMIT and LIMIT."""

COUNTS = tuple[tuple[str, int], ...]
"""A number for each of some names: an object in JSON."""


@dataclass(frozen=True, slots=True)
class Wire:
    """The form of a field in files, beyond its type and default.

    - `key`: its name in files, if not its own. An instruction states fields with a key or a default as
      attributes, and all others in their places, without keys.
    - `beside`: the attribute is stated exactly when this other field is.
    - `leads`: the attribute comes first in a line of text. `at`: a line has the number as `@8`. `placed`: a
      line has the value last, without a key.
    - `written`: files have the field also where it has its default. `stated`: they must have it.
    - `outside`: no file has it.
    """

    key: str = ""
    beside: str = ""
    leads: bool = False
    at: bool = False
    placed: bool = False
    written: bool = False
    stated: bool = False
    outside: bool = False


def wire(key: str = "", **marks: Any) -> dict[str, Wire]:
    """Return the metadata of a field with these marks: `address: int = field(metadata=wire(at=True))`."""
    return {"wire": Wire(key, **marks)}


AT = wire(at=True)
WRITTEN = wire(written=True)
STATED = wire(stated=True, written=True)
OUTSIDE = wire(outside=True)


@dataclass(frozen=True, slots=True)
class Form:
    """The form in JSON of a record that its fields do not give, such as a tree.

    `write` returns its object; `read` takes one and raises `ValueError` with the reason if it is no such
    record; `leaves` returns all texts (`str`) or all whole numbers (`int`) of a record.
    """

    write: Callable[[Any], dict[str, Any]]
    read: Callable[[dict[str, Any]], Any]
    leaves: Callable[[Any, type], Sequence[Any]]


_FORMS: dict[type, Form] = {}
_ROWS: set[type] = set()
_WITHOUT_NULLS: set[type] = set()
_IN_ORDER: set[type] = set()
_Record = TypeVar("_Record", bound=type)


def as_row(record: _Record) -> _Record:
    """Make JSON state this record as the array of its fields."""
    _ROWS.add(record)
    return record


def without_nulls(record: _Record) -> _Record:
    """Let no file state null for a field of this record, though it may be None."""
    _WITHOUT_NULLS.add(record)
    return record


def in_form(form: Form) -> Callable[[_Record], _Record]:
    """Make JSON state this record in a form of its own."""

    def stated(record: _Record) -> _Record:
        _FORMS[record] = form
        return record

    return stated


def form_of(record: Any) -> Form | None:
    """Return the form of a record that states one of its own."""
    return _FORMS.get(record)


def in_order(record: _Record) -> _Record:
    """Have JSON state the fields of this record in its own order; of others the needed ones come first."""
    _IN_ORDER.add(record)
    return record


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a record: its type, its default (`MISSING` without one), its mark.

    `plain` is the type without None, and `kinds` are the alternatives if it is one of several records.
    """

    name: str
    hint: Any
    default: Any
    wire: Wire
    plain: Any
    kinds: tuple[type, ...]
    not_null: bool

    @property
    def key(self) -> str:
        """The field's name in files."""
        return self.wire.key or self.name

    @property
    def needed(self) -> bool:
        """True if every file states the field."""
        return self.default is MISSING or self.wire.stated


@cache
def members(record: type) -> tuple[Member, ...]:
    """Return the fields of a dataclass that its files have, in its own order."""
    hints = get_type_hints(record, include_extras=True)
    found = []
    for f in fields(record):
        hint, mark = hints[f.name], f.metadata.get("wire", Wire())
        default = f.default if f.default_factory is MISSING else f.default_factory()
        not_null = record in _WITHOUT_NULLS and default is None
        if not mark.outside:
            found.append(Member(f.name, hint, default, mark, _plain(hint), alternatives(hint), not_null))
    return tuple(found)


def ordered(record: type) -> Sequence[Member]:
    """The same in the order in which JSON states them."""
    return members(record) if record in _IN_ORDER else sorted(members(record), key=lambda m: not m.needed)


def _plain(hint: Any) -> Any:
    rest = [a for a in get_args(hint) if a is not NoneType]
    return rest[0] if get_origin(hint) in (Union, UnionType) and len(rest) == 1 else hint


def getter(of: Sequence[Member]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function from a record to the values of these fields, as a tuple."""
    names = [m.name for m in of]
    if not names:
        return lambda _: ()
    get = attrgetter(*names)
    return get if len(names) > 1 else lambda record: (get(record),)


def is_row(hint: Any) -> bool:
    """Return whether JSON states values of this type as arrays."""
    return hint in _ROWS


def alternatives(hint: Any) -> tuple[type, ...]:
    """Return the records of a union of several; nothing for any other type."""
    rest = tuple(a for a in get_args(hint) if a is not NoneType)
    union = get_origin(hint) in (Union, UnionType) and len(rest) > 1
    return rest if union and all(is_dataclass(a) for a in rest) else ()


def word_of(record: type) -> str:
    """Return the name of a kind of record in files."""
    return record.__name__.lower()
