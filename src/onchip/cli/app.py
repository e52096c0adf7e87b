"""The typer application that the commands of this package register with."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

__all__ = ["app"]

ORDER = (
    "plan",
    "fuse",
    "branches",
    "corun",
    "mcu",
    "compare",
    "check",
    "run",
    "report",
    "export",
    "pack",
    "zoo",
    "chips",
)
"""How --help lists the commands; what is not named here comes last."""


class _Ordered(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        known = {name: i for i, name in enumerate(ORDER)}
        return sorted(super().list_commands(ctx), key=lambda name: known.get(name, len(ORDER)))


app = typer.Typer(
    name="onchip",
    cls=_Ordered,
    help="Plan a neural network onto a chip's memory, prove the plan, run it, show it.",
    no_args_is_help=True,
    add_completion=False,
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
