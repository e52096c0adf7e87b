"""`onchip session`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.base.flags import expand_options
from onchip.by_length.options import LengthOptions, SessionOptions
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import ChipName, Json, progress, stdout
from onchip.planners.joint import JointOptions
from onchip.planners.placement import PlacementOptions
from onchip.readers.source import ReadOptions


@app.command()
@expand_options
def session(
    prompt: Annotated[str, typer.Argument(help="the model of a whole prompt, which begins the caches")],
    step: Annotated[str, typer.Argument(help="the model of a step, which appends to them")],
    asked: SessionOptions,
    by_length: LengthOptions,
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
            "-o",
            "--output",
            metavar="FOLDER",
            help="folder of session.json, the table of the steps and the plans",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan a prompt and the steps behind it into one arena, with their caches on chip at one place."""
    given = {
        name: getattr(kind, name)
        for kind in (asked, by_length, read, placement, joint)
        for name in kind.__dataclass_fields__
    }
    with progress(as_json) as say:
        made = api.session(prompt, step, chip, budget, progress=say, **given)
    written = () if output is None else made.save(output)
    if as_json:
        print_data(made.to_json().rstrip("\n"))
        return
    from onchip.by_length.shown import shown_session

    console = stdout()
    console.print(shown_session(made.prompt, made.steps))
    if written:
        line = f"{len(written):,} files written to {output}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
