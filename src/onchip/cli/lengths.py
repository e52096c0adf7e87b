"""`onchip lengths`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.base.flags import expand_options
from onchip.by_length.options import LengthOptions
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import ChipName, Json, Model, progress, stdout
from onchip.planners.joint import JointOptions
from onchip.planners.placement import PlacementOptions
from onchip.readers.source import ReadOptions


@app.command()
@expand_options
def lengths(
    model: Model,
    asked: LengthOptions,
    read: ReadOptions,
    placement: PlacementOptions,
    joint: JointOptions,
    chip: ChipName = "generic",
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="SIZE",
            help="scratchpad bytes: a size (512KiB) [default: what the chip states]",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FOLDER", help="folder of lengths.json, lengths.csv and the plans"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan every length of an open dimension: where the best plan changes, and a table for a runtime."""
    with progress(as_json) as say:
        made = api.lengths(
            model,
            chip,
            budget,
            progress=say,
            **{name: getattr(asked, name) for name in asked.__dataclass_fields__},
            **{name: getattr(read, name) for name in read.__dataclass_fields__},
            **{name: getattr(placement, name) for name in placement.__dataclass_fields__},
            **{name: getattr(joint, name) for name in joint.__dataclass_fields__},
        )
    written = () if output is None else made.save(output)
    if as_json:
        print_data(made.to_json().rstrip("\n"))
        return
    from onchip.by_length.shown import shown

    console = stdout()
    console.print(shown(made))
    if written:
        line = f"{len(written):,} files written to {output}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
