"""What the fields of a record say of its files: a type, and a mark in `Annotated` for what no type can say.

`onchip.base.codec` makes the JSON of a record from this, and `onchip.plans.lines` its line of text.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

__all__ = [
    "AT",
    "COUNTS",
    "LIMIT",
    "NOT_NULL",
    "OUTSIDE",
    "ROW",
    "STATED",
    "WRITTEN",
    "Member",
    "Wire",
    "alternatives",
    "is_row",
    "members",
    "word_of",
]

LIMIT = 10**18
"""Whole numbers in files lie strictly between -LIMIT and LIMIT."""

COUNTS = tuple[tuple[str, int], ...]
"""A number for each of some names: an object in JSON."""


@dataclass(frozen=True, slots=True)
class Wire:
    """What files say of a field, beyond its type and default.

    `key` is its name there, if not its own. A field with a key or a default is an attribute of an
    instruction, and any other stands in its place without a key. An attribute `beside` another one is there
    exactly when that one is. `leads` puts it first among the attributes of a line of text, and `at` writes
    the number as `@8`. A field that is `placed` stands last in a line of text, without its key.

    A field with a default is left out where it has that, unless it is `written`, and may be left out, unless
    it is `stated`. One that is `not_null` is never null in a file, also where it may be None. One that is
    `outside` is in no file. A record as a `row` is the array of its fields.
    """

    key: str = ""
    beside: str = ""
    leads: bool = False
    at: bool = False
    placed: bool = False
    written: bool = False
    stated: bool = False
    not_null: bool = False
    outside: bool = False
    row: bool = False


AT = Wire(at=True)
WRITTEN = Wire(written=True)
STATED = Wire(stated=True, written=True)
NOT_NULL = Wire(not_null=True)
OUTSIDE = Wire(outside=True)
ROW = Wire(row=True)


@dataclass(frozen=True, slots=True)
class Member:
    """A field of a record: its type without the mark, its default (`MISSING` without one), its mark."""

    name: str
    hint: Any
    default: Any
    wire: Wire

    @property
    def key(self) -> str:
        """Its name in files."""
        return self.wire.key or self.name

    @property
    def needed(self) -> bool:
        """Whether every file states it."""
        return self.default is MISSING or self.wire.stated

    @property
    def plain(self) -> Any:
        """Its type without None."""
        rest = [a for a in get_args(self.hint) if a is not NoneType]
        optional = get_origin(self.hint) in (Union, UnionType) and len(rest) == 1
        return rest[0] if optional else self.hint


@cache
def members(record: type) -> tuple[Member, ...]:
    """The fields of a dataclass that its files have, in its own order."""
    hints = get_type_hints(record, include_extras=True)
    found = []
    for f in fields(record):
        hint, mark = hints[f.name], Wire()
        if get_origin(hint) is Annotated and isinstance(hint.__metadata__[0], Wire) and not is_row(hint):
            mark, hint = hint.__metadata__[0], hint.__origin__
        default = f.default if f.default_factory is MISSING else f.default_factory()
        if not mark.outside:
            found.append(Member(f.name, hint, default, mark))
    return tuple(found)


def is_row(hint: Any) -> bool:
    """Whether files have a record of this type as an array."""
    return get_origin(hint) is Annotated and ROW in hint.__metadata__


def alternatives(hint: Any) -> tuple[type, ...]:
    """The records of a union of several; nothing for any other type."""
    rest = tuple(a for a in get_args(hint) if a is not NoneType)
    union = get_origin(hint) in (Union, UnionType) and len(rest) > 1
    return rest if union and all(is_dataclass(a) for a in rest) else ()


def word_of(record: type) -> str:
    """What files call a kind of record."""
    return record.__name__.lower()
