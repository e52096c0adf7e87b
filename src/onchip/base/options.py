"""Options are frozen dataclasses, and each is defined once: name, type, default and help are in its field.

`option` makes a field, `options` the class; `onchip.base.flags` turns them into flags of the command line,
and `takes` into keywords of a Python function.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import field, fields
from typing import Any, TypeVar

__all__ = ["described", "group", "group_of", "like", "option", "options", "takes"]

T = TypeVar("T")
C = TypeVar("C", bound=type[Any])
F = TypeVar("F", bound=Callable[..., Any])

_GROUPS: dict[str, str] = {}


def option(
    default: T,
    help: str,
    *,
    parse: Callable[..., Any] | None = None,
    each: bool = False,
    group: str = "",
) -> T:
    """Return a field of an options class with its help.

    On the command line the value of a field with `parse` is text that this function converts (mostly sizes).
    Fields `time_limit` and `memory_limit` bound the whole command, unless they are for `each` of several
    searches. `group` is the heading in the help of the command line, if not that of the class.
    """
    about: dict[str, Any] = {"help": help}
    if parse is not None:
        about["parse"] = parse
    if each:
        about["each"] = True
    if group:
        about["group"] = group
    made: T = field(default=default, metadata=about)
    return made


def like(kind: type[Any], name: str) -> Any:
    """Return a field with the default and help of a field of another options class."""
    same = next(f for f in fields(kind) if f.name == name)
    return field(default=same.default, metadata=same.metadata)


def options(kind: C) -> C:
    """Append the help of the fields of a dataclass to its docstring."""
    kind.__doc__ = f"{inspect.cleandoc(kind.__doc__ or '')}\n\n{described(kind)}"
    return kind


def group(name: str) -> Callable[[C], C]:
    """Name the heading under which the fields of a dataclass stand in the help of the command line."""

    def named(kind: C) -> C:
        _GROUPS[kind.__name__] = name
        return kind

    return named


def group_of(kind: type[Any]) -> str:
    """Return the heading of an options class in the help of the command line."""
    return _GROUPS.get(kind.__name__, "Options")


def described(*kinds: type[Any]) -> str:
    """Return a list of all fields of some options classes with their help."""
    lines = [
        f"- `{f.name}` (default {f.default!r}): {f.metadata['help']}" for kind in kinds for f in fields(kind)
    ]
    return "\n".join(lines)


def takes(*kinds: type[Any]) -> Callable[[F], F]:
    """Name the fields of options classes in the signature and docstring of a function with `**options`.

    `help()`, notebooks and the reference show them from there. Type checkers and editors read the same from
    `onchip/__init__.pyi`, which `scripts/stubs.py` writes.
    """

    def named(function: F) -> F:
        signature = inspect.signature(function)
        given = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        has = {parameter.name for parameter in given}
        for kind in kinds:
            hints = typing.get_type_hints(kind)
            for f in fields(kind):
                if f.name not in has:
                    has.add(f.name)
                    given.append(
                        inspect.Parameter(
                            f.name,
                            inspect.Parameter.KEYWORD_ONLY,
                            default=f.default,
                            annotation=hints[f.name],
                        )
                    )
        function.__signature__ = signature.replace(parameters=given)  # type: ignore[attr-defined]
        function.__doc__ = f"{inspect.cleandoc(function.__doc__ or '')}\n\nOptions:\n\n{described(*kinds)}"
        return function

    return named
