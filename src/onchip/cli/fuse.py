"""`onchip fuse`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.base.errors import NegativeAnswer, UsageError
from onchip.base.flags import expand_options
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import ChipName, Json, Model, goes_on, progress, stdout, writable
from onchip.planners.fusion.options import DEFAULTS, FusionOptions
from onchip.readers.source import ReadOptions


@app.command()
@expand_options
def fuse(
    model: Model,
    read: ReadOptions,
    options: FusionOptions,
    chip: ChipName = "generic",
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="SIZE",
            help="scratchpad bytes: a size (512KiB) [default: what the chip states]",
        ),
    ] = None,
    online: Annotated[bool, typer.Option("--online", help="the fast variant: --search online")] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="write the plan: JSON for FILE.json, else the text form"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="write the report as one self-contained HTML page")
    ] = None,
    as_json: Json = False,
) -> None:
    """Decide which operators run fused in tiles, with the fewest words to and from DRAM."""
    writable(output, Path(model))
    writable(report, Path(model), output)
    if online:
        if options.search not in (DEFAULTS.search, "online"):
            raise UsageError(
                f"is --search online, and --search {options.search} is asked for", item="--online"
            )
        options = replace(options, search="online")
    wanted = [name for name, path in (("-o", output), ("--report", report)) if path is not None]
    with progress(as_json) as say:
        made = api.fuse(
            model,
            chip,
            budget,
            progress=say,
            **{name: getattr(read, name) for name in read.__dataclass_fields__},
            **{name: getattr(options, name) for name in options.__dataclass_fields__},
        )
    if made.plan is not None:
        if output is not None:
            made.plan.save(output)
        if report is not None:
            made.plan.report(report)
    if as_json:
        print_data(json.dumps(made.data()))
    else:
        from onchip.results.fused import table

        console = stdout()
        console.print(table(made, console.width))
        for target, what in ((output, "plan"), (report, "report")):
            if target is not None and made.plan is not None:
                console.print(f"{what} written to {target}", markup=False, highlight=False, soft_wrap=True)
    if wanted and made.plan is None:
        raise NegativeAnswer(f"{wanted[0]}: there is no plan to write: {made.why_not}")
    goes_on("fuse", "optimus")
