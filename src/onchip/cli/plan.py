"""`onchip plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.base.flags import expand_options
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import ChipName, Json, Model, progress, say_beside, stdout, writable
from onchip.cli.would_work import naming_what_works
from onchip.methods import MethodOptions, PaperOptions
from onchip.planners.joint import JointOptions
from onchip.planners.placement import PlacementOptions
from onchip.readers.source import ReadOptions


@app.command()
@expand_options
def plan(
    model: Model,
    method: MethodOptions,
    read: ReadOptions,
    placement: PlacementOptions,
    joint: JointOptions,
    paper: PaperOptions,
    chip: ChipName = "generic",
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="SIZE",
            help="scratchpad bytes: a size (512KiB), or a name: MR, the least in which every operator runs"
            " whole; MP, the least peak of any order, below which whole tensors spill; MH, halfway. Of"
            " several memories sram=256KiB,psram=8MiB. [default: what the chip states]",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="write the plan: JSON for FILE.json, else the text form"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="write the report as one self-contained HTML page")
    ] = None,
    as_json: Json = False,
) -> None:
    """Give the best plan of a network that a chip can run: order, tiles, addresses, spills and reloads."""
    writable(output, Path(model))
    writable(report, Path(model), output)
    with progress(as_json) as say, naming_what_works():
        source = api.load(model, **{name: getattr(read, name) for name in read.__dataclass_fields__})
        made = api.plan(
            source,
            chip,
            budget,
            progress=say,
            **{
                name: getattr(kind, name)
                for kind in (method, placement, joint, paper)
                for name in kind.__dataclass_fields__
            },
        )
    for note in made.notes:
        say_beside(note)
    if output is not None:
        made.save(output)
    if report is not None:
        made.report(report)
    if as_json:
        print_data(made.to_json().rstrip("\n"))
    else:
        from onchip.report import summary

        console = stdout()
        console.print(summary(made))
        for target, what in ((output, "plan"), (report, "report")):
            if target is not None:
                console.print(f"{what} written to {target}", markup=False, highlight=False, soft_wrap=True)
