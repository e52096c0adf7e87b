"""`onchip mcu`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.cli.app import app
from onchip.cli.console import Json, progress, stdout, writable
from onchip.errors import DoesNotFitBoard, Mismatch
from onchip.flags import expand_options
from onchip.segments.options import SegmentOptions


@app.command()
@expand_options
def mcu(
    model: Annotated[str, typer.Argument(help="FILE.tflite, int8, or made:NAME for one made from a seed")],
    options: SegmentOptions,
    board: Annotated[
        str, typer.Option("--board", help="a built-in board's name, or the path of a .toml file")
    ] = "nucleo-f411re",
    ram: Annotated[
        str | None,
        typer.Option("--ram", help="bytes of RAM, stack and all: a size (24KiB) [default: the board's]"),
    ] = None,
    run: Annotated[
        bool, typer.Option("--run", help="build it, run it on the emulated core, compare every byte")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="write the C project: a folder")
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option("-p", "--plan", help="write the plan: JSON for FILE.json, else the text form"),
    ] = None,
    use: Annotated[
        Path | None, typer.Option("--use", help="a plan file for this network, instead of a new plan")
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan an int8 network onto a microcontroller, write its C, run it on the emulated core."""
    from onchip.mcu.project.write import replaceable

    writable(plan, Path(model), use)
    if output is not None:
        replaceable(output)
    with progress(as_json) as say:
        made = api.mcu(
            model,
            board,
            ram,
            plan=use,
            run=run,
            progress=say,
            **{name: getattr(options, name) for name in options.__dataclass_fields__},
        )
    if plan is not None:
        made.plan.save(plan)
    if output is not None:
        made.save(output)
    if as_json:
        print(json.dumps(made.data()))
    else:
        from onchip.microcontroller_table import table

        console = stdout()
        console.print(table(made))
        for target, what in ((plan, "plan"), (output, "project")):
            if target is not None:
                console.print(f"{what} written to {target}", markup=False, highlight=False, soft_wrap=True)
    if made.short:
        raise DoesNotFitBoard(made.board.name, made.short)
    if made.run is not None and not made.run.match:
        raise Mismatch(f"{made.run.different:,} of {made.run.output_bytes:,} output bytes differ")
