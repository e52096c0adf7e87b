"""`onchip sweep`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.base.flags import expand_options
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import Json, progress, stdout
from onchip.sweeps.options import SweepOptions


@app.command()
@expand_options
def sweep(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="what to sweep, a .toml file (docs/sweep.md)")],
    options: SweepOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            help="folder of the journal, table and page [default: SPEC with .sweep]",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan many points, networks x buffer sizes x PE arrays x options: trade-off curves and their knees."""
    with progress(as_json) as say:
        made = api.sweep(
            spec,
            output,
            progress=say,
            **{name: getattr(options, name) for name in options.__dataclass_fields__},
        )
    if as_json:
        print_data(json.dumps(made.data()))
    else:
        console = stdout()
        console.print(made.summary())
        console.print()
        for path in made.files:
            console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)
        if not made.complete:
            console.print("Not all points have an answer yet: the same command goes on from here.")
    if made.outcome.end == "stopped":
        raise typer.Exit(130)
    if not made.complete or made.failed:
        raise typer.Exit(1)
