"""`{commands}` lists every command of the command line with its arguments and options, from its own
signature."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

WORDS = {str: "TEXT", int: "N", float: "X", bool: ""}


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def takes(kind: Any) -> str:
    """What a value of this type is called: the choices of a literal, a word for anything else."""
    origin, args = typing.get_origin(kind), [a for a in typing.get_args(kind) if a is not type(None)]
    if origin is Literal:
        return "|".join(map(str, args))
    if origin in (Union, types.UnionType, list, tuple) and args:
        return takes(args[0])
    return WORDS.get(kind, "FILE" if getattr(kind, "__name__", "") == "Path" else "VALUE")


def row(parameter: inspect.Parameter) -> str:
    """One line of the table: names, what they take, what they do."""
    assert typing.get_origin(parameter.annotation) is Annotated, parameter
    kind, info, *_ = typing.get_args(parameter.annotation)
    word = info.metavar or takes(kind)
    default = "" if parameter.default in (None, False, inspect.Parameter.empty, (), "") else parameter.default
    says = cell(info.help or "")
    if default != "" and "default" not in says:
        says = f"{says.rstrip('.')}. Default: `{'yes' if default is True else default}`."
    if type(info).__name__ == "ArgumentInfo":
        return f"| `{cell(info.metavar or parameter.name.upper())}` | {says} |"
    given = [info.default] if isinstance(info.default, str) and info.default.startswith("-") else []
    names = [*given, *(info.param_decls or ())] or ["--" + parameter.name.replace("_", "-")]
    return "| " + ", ".join(f"`{n}`" for n in names) + (f" `{cell(word)}`" if word else "") + f" | {says} |"


def lines_of(name: str, command: Callable[..., Any]) -> list[str]:
    """One command as Markdown: what it does, then everything it takes."""
    rows = [row(p) for p in inspect.signature(command, eval_str=True).parameters.values()]
    says = inspect.cleandoc(command.__doc__ or "").split("\n")
    return [f"## onchip {name}", "", *says, "", "| | |", "|---|---|", *rows, ""]


def place(name: str) -> tuple[int, str]:
    """Where a command stands on the page: in the order of --help, those of a group together."""
    from onchip.cli.app import ORDER

    first = name.split()[0]
    return (ORDER.index(first) if first in ORDER else len(ORDER)), name


class Commands(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        from onchip.cli import app, load_all

        load_all()
        commands = {
            (c.name or c.callback.__name__): c.callback for c in app.registered_commands if c.callback
        }
        for group in app.registered_groups:
            below = group.typer_instance.registered_commands if group.typer_instance else []
            commands |= {f"{group.name} {c.callback.__name__}": c.callback for c in below if c.callback}
        lines: list[str] = []
        for name in sorted(commands, key=place):
            lines += lines_of(name, commands[name])
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
