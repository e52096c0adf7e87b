"""Options are frozen dataclasses, and each is said once: name, type, default and help stand in its field.

`option` makes a field, `options` the class; `onchip.base.flags` turns them into flags of the command line,
and `takes` into keywords of a function in Python.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import field, fields
from typing import Any, TypeVar

__all__ = ["described", "like", "option", "options", "takes"]

T = TypeVar("T")
C = TypeVar("C", bound=type[Any])
F = TypeVar("F", bound=Callable[..., Any])


def option(default: T, help: str, *, parse: Callable[..., Any] | None = None, each: bool = False) -> T:
    """A field of an options class with its help.

    On the command line the value of a field with `parse` is text that goes through that function (sizes,
    mostly). Fields `time_limit` and `memory_limit` bound the whole command, unless they are for `each` of
    several searches.
    """
    about: dict[str, Any] = {"help": help}
    if parse is not None:
        about["parse"] = parse
    if each:
        about["each"] = True
    made: T = field(default=default, metadata=about)
    return made


def like(kind: type[Any], name: str) -> Any:
    """A field that is the same as one of another options class: its default and its help."""
    same = next(f for f in fields(kind) if f.name == name)
    return field(default=same.default, metadata=same.metadata)


def options(kind: C) -> C:
    """Put what the fields of a dataclass are for at the end of its docstring."""
    kind.__doc__ = f"{inspect.cleandoc(kind.__doc__ or '')}\n\n{described(kind)}"
    return kind


def described(*kinds: type[Any]) -> str:
    """A list of all fields of some options classes with what they are for."""
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
