"""The typer application that the commands of this package register with.

A command's module is imported when the command is called: most need little of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, TypeVar

import typer

from onchip.cli.help import Command, Group

__all__ = ["App", "app", "load_all"]

F = TypeVar("F", bound=Callable[..., Any])

GROUPS = {
    "Commands that plan": {
        "plan": "plan",
        "compare": "compare",
        "sweep": "sweep",
        "mcu": "mcu",
        "corun": "corun",
        "lengths": "lengths",
        "session": "session",
        "pack": "pack",
        "contest": "contest",
    },
    "Commands for plans": {
        "check": "judge",
        "run": "judge",
        "report": "judge",
        "diff": "diff",
        "export": "export",
    },
    "Commands that list what is built in": {
        "zoo": "catalogue",
        "chips": "catalogue",
        "boards": "catalogue",
        "socs": "catalogue",
        "sram": "sram",
    },
    "Commands of single papers, also methods of plan": {"fuse": "fuse", "branches": "branches"},
}
"""The commands by heading of --help, each with its module."""

COMMANDS = {name: module for group in GROUPS.values() for name, module in group.items()}
"""The module of every command, in the order of --help."""

ORDER = tuple(COMMANDS)


def load_all() -> None:
    """Import the modules of all commands, so that `app` has them."""
    for module in COMMANDS.values():
        import_module(f"onchip.cli.{module}")


class _Lazy(Group):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            import_module(f"onchip.cli.{COMMANDS[cmd_name]}")
            self.commands.update(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS:  # then the error lists similar commands
            for name in COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def groups(self, ctx: Any) -> dict[str, list[str]]:
        """Return the names of the commands by heading."""
        return {heading: list(group) for heading, group in GROUPS.items()}


class App(typer.Typer):
    """An application whose commands have help in groups."""

    def command(self, *names: Any, **how: Any) -> Callable[[F], F]:
        """Register a command, with help in groups."""
        return super().command(*names, **{"cls": Command, **how})


app = App(
    name="onchip",
    cls=_Lazy,
    help="Plan a neural network onto a chip's memory, prove the plan, run it, show it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"onchip {version('onchip')}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
    progress_lines: Annotated[
        bool,
        typer.Option(
            "--progress-lines",
            help="write the progress of long work on stderr, one JSON object a line; before the command",
        ),
    ] = False,
) -> None:
    from onchip.cli import console

    console.in_lines(progress_lines)
