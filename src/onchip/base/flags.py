"""The fields of options (`onchip.base.options`) as flags of the command line."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, fields
from typing import Annotated, Any, TypeVar

import typer

from onchip.base import guard
from onchip.base.errors import UsageError
from onchip.base.options import group_of

__all__ = ["expand_options"]

F = TypeVar("F", bound=Callable[..., Any])


def expand_options(function: F) -> F:
    """Replace every parameter of `function` that is annotated with a dataclass by one flag per field."""
    hints = typing.get_type_hints(function, include_extras=True)
    kinds: dict[str, type[Any]] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        hint = hints[parameter.name]
        if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
            kinds[parameter.name] = hint
            types = typing.get_type_hints(hint)
            parameters += [_flag(f, types[f.name], group_of(hint)) for f in fields(hint)]
        else:
            parameters.append(parameter.replace(annotation=hint))
    parameters.sort(key=lambda p: p.kind)

    def call(**given: Any) -> Any:
        limits = {}
        flags: dict[str, str] = {}
        for name, kind in kinds.items():
            values = {}
            flags |= {f.name: "--" + f.name.replace("_", "-") for f in fields(kind)}
            for f in fields(kind):
                value = given.pop(f.name)
                if "parse" in f.metadata and isinstance(value, str):
                    value = f.metadata["parse"](value, option="--" + f.name.replace("_", "-"))
                if isinstance(f.default, tuple):
                    value = tuple(value or ())
                values[f.name] = value
                if f.name in ("time_limit", "memory_limit") and not f.metadata.get("each"):
                    limits[f.name] = value
            with _by_flag(flags):
                given[name] = kind(**values)
        guard.bounded(limits.get("time_limit"), limits.get("memory_limit"))
        with _by_flag(flags):
            return function(**given)

    call.__name__, call.__doc__, call.__module__ = function.__name__, function.__doc__, function.__module__
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters}
    return typing.cast(F, call)


@contextmanager
def _by_flag(flags: Mapping[str, str]) -> Iterator[None]:
    """Name an option by its flag in errors that name it as in Python."""
    try:
        yield
    except UsageError as wrong:
        if wrong.where is None and wrong.item is not None and wrong.item in flags:
            raise UsageError(wrong.reason, item=flags[wrong.item]) from None
        raise


def _flag(f: Field[Any], hint: Any, panel: str) -> inspect.Parameter:
    if f.default is MISSING:
        raise TypeError(f"option {f.name} has no default")
    if "parse" in f.metadata:
        hint = str | None if f.default is None else str
    if isinstance(f.default, tuple):
        hint = list[str] | None
    name = "--" + f.name.replace("_", "-")
    names = (f"{name}/--no-{name[2:]}",) if hint in (bool, bool | None) else (name,)
    default = _size(f.default) if "parse" in f.metadata and f.default is not None else f.default
    if isinstance(f.default, tuple):
        default = None  # may be given several times
    word = "SIZE" if "parse" in f.metadata else "SECONDS" if f.name == "time_limit" else None
    annotation = Annotated[
        hint,
        typer.Option(
            *names, metavar=word, help=f.metadata["help"], rich_help_panel=f.metadata.get("group", panel)
        ),
    ]
    return inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _size(default: Any) -> str:
    """Return the default of an option that is text on the command line; a size in its largest unit."""
    if type(default) is int and default:
        for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
            if default % (1 << power) == 0:
                return f"{default >> power}{unit}"
    return str(default)
