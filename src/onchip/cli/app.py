"""The typer application that the commands of this package register with.

A command's module is imported when the command is called: most need little of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperGroup

from onchip.cli.help import Command, command_list

__all__ = ["app", "load_all"]

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
        "export": "export",
    },
    "Commands that list what is built in": {"zoo": "catalogue", "chips": "catalogue"},
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


class _Lazy(TyperGroup):
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

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: what onchip is, its options, its commands by group."""
        lines = [f"Usage: {ctx.command_path} [OPTIONS] COMMAND [ARGS]...", ""]
        lines += [self.help or "", f"`{ctx.command_path} COMMAND --help` tells about one of them."]
        options = [(", ".join(p.opts), getattr(p, "help", None) or "") for p in self.get_params(ctx)]
        said = {
            heading: [(name, _purpose(self.get_command(ctx, name))) for name in group]
            for heading, group in GROUPS.items()
        }
        lines += command_list({**said, "Options": options})
        formatter.write("\n".join(lines) + "\n")


def _purpose(command: Any) -> str:
    """Return the first paragraph of a command's help."""
    return str(command.help or "").split("\n\n")[0]


class _App(typer.Typer):
    def command(self, *names: Any, **how: Any) -> Callable[[F], F]:
        """Register a command, with help in groups."""
        return super().command(*names, **{"cls": Command, **how})


app = _App(
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
) -> None:
    pass
