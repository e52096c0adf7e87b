"""The help of every command: options in groups, wrapped to the width of the terminal, nothing cut."""

from __future__ import annotations

import inspect
import shutil
import textwrap
import typing
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

__all__ = ["Command", "Group"]

INDENT, COLUMN = 2, 24
"""The columns in which options and their texts begin."""

NARROW, WIDE = 40, 100
"""The least and the most columns that are used."""

OWN = "Options"
"""The heading of options without a group."""


class Command(TyperCommand):
    """A command whose help is laid out by `page`."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write("\n".join(page(self, ctx)) + "\n")


class Group(TyperGroup):
    """A group of commands whose help lists them by heading."""

    def groups(self, ctx: Any) -> dict[str, list[str]]:
        """Return the names of the commands by heading."""
        return {"Commands": self.list_commands(ctx)}

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: what the group is, its commands, its options."""
        listed = {
            heading: [(name, _purpose(self.get_command(ctx, name))) for name in names]
            for heading, names in self.groups(ctx).items()
        }
        options = [(", ".join(p.opts), getattr(p, "help", None) or "") for p in self.get_params(ctx)]
        lines = [f"Usage: {ctx.command_path} COMMAND ...", "", *paragraphs(self.help or "", width())]
        lines += [f"`{ctx.command_path} COMMAND --help` tells about one of them."]
        formatter.write("\n".join([*lines, *command_list({**listed, "Options": options})]) + "\n")


def _purpose(command: Any) -> str:
    """Return the first paragraph of a command's help."""
    return str(command.help or "").split("\n\n")[0]


def width() -> int:
    """Return the columns of the terminal, 80 where there is none, within what is readable."""
    return max(NARROW, min(shutil.get_terminal_size((80, 24)).columns, WIDE))


def page(command: Any, ctx: Any) -> Iterator[str]:
    """Yield the lines of a command's help: usage, purpose, arguments, options by group."""
    columns = width()
    shown = [p for p in command.get_params(ctx) if not getattr(p, "hidden", False)]
    signature = inspect.signature(command.callback, eval_str=True)
    kinds = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    arguments = [(_argument(p), _text(p)) for p in shown if p.param_type_name == "argument"]
    yield from _wrapped(
        f"Usage: {ctx.command_path} [OPTIONS] {' '.join(a for a, _ in arguments)}", 0, columns
    )
    yield ""
    yield from paragraphs(command.help or "", columns)
    groups: dict[str, list[tuple[str, str]]] = {"Arguments": arguments, OWN: []}
    for option in (p for p in shown if p.param_type_name != "argument"):
        groups.setdefault(option.rich_help_panel or OWN, []).append(
            (_names(option, kinds.get(option.name)), _text(option))
        )
    for heading, entries in groups.items():
        if entries:
            yield ""
            yield f"{heading}:"
            yield from _entries(entries, columns)


def command_list(groups: Mapping[str, Iterable[tuple[str, str]]]) -> Iterator[str]:
    """Yield the lines of a list of commands with what each does, by group."""
    for heading, commands in groups.items():
        yield ""
        yield f"{heading}:"
        yield from _entries(commands, width())


def paragraphs(text: str, columns: int) -> Iterator[str]:
    """Yield the lines of a text's paragraphs."""
    for n, paragraph in enumerate(inspect.cleandoc(text).split("\n\n")):
        if n:
            yield ""
        yield from _wrapped(paragraph, 0, columns)


def _entries(entries: Iterable[tuple[str, str]], columns: int) -> Iterator[str]:
    for left, text in entries:
        lines = list(_wrapped(text, COLUMN, columns))
        if len(left) <= COLUMN - INDENT - 2 and lines:
            yield f"{' ' * INDENT}{left}".ljust(COLUMN) + lines[0][COLUMN:]
            lines = lines[1:]
        else:
            yield from _wrapped(left, INDENT, columns)
        yield from lines


def _wrapped(text: str, indent: int, columns: int) -> list[str]:
    """Return the lines of a text behind an indent; long words without spaces are broken, never cut."""
    return textwrap.wrap(
        " ".join(text.split()),
        columns,
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )


def _argument(parameter: Any) -> str:
    word = str(parameter.metavar or parameter.name)
    return (word.upper() if word.islower() else word) + ("..." if parameter.nargs == -1 else "")


def _names(parameter: Any, kind: Any) -> str:
    """Return the names of an option, and the word for what it takes."""
    names = ", ".join([*sorted(parameter.opts, key=len), *parameter.secondary_opts])
    if parameter.is_flag or parameter.name == "help":
        return names
    return f"{names} {parameter.metavar or _word(kind)}"


def _word(kind: Any) -> str:
    """Return the word for a value of this type: the choices of a literal, else what stands for it."""
    args = [a for a in typing.get_args(kind) if a is not type(None)]
    if typing.get_origin(kind) is typing.Literal:
        return "|".join(map(str, args))
    if args:
        return _word(args[0])
    return {int: "N", float: "X", Path: "FILE"}.get(kind, "TEXT")


def _text(parameter: Any) -> str:
    text = str(getattr(parameter, "help", None) or "").strip()
    default = parameter.default
    if parameter.param_type_name == "argument" or callable(default) or "[default:" in text:
        return text
    if default is None or default is False or default in ("", (), []):
        return text
    shown = parameter.opts[0] if default is True else getattr(default, "value", default)
    return f"{text} [default: {shown}]"
