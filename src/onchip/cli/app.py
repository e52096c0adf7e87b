"""The typer application that the commands of this package register with.

A command's module is imported when the command is called: most need little of the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

__all__ = ["app", "load_all"]

COMMANDS = {
    "plan": "plan",
    "fuse": "fuse",
    "branches": "branches",
    "corun": "corun",
    "mcu": "mcu",
    "compare": "compare",
    "sweep": "sweep",
    "lengths": "lengths",
    "session": "session",
    "check": "judge",
    "run": "judge",
    "report": "judge",
    "export": "export",
    "pack": "pack",
    "contest": "contest",
    "zoo": "catalogue",
    "chips": "catalogue",
}
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


app = typer.Typer(
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
