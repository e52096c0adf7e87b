"""`onchip branches`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.base.errors import UsageError
from onchip.base.flags import expand_options
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import ChipName, Json, Model, goes_on, progress, stdout, writable
from onchip.planners.branches.options import BranchOptions
from onchip.readers.source import ReadOptions


@app.command()
@expand_options
def branches(
    model: Model,
    read: ReadOptions,
    options: BranchOptions,
    chip: ChipName = "exynos-npu",
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="SIZE",
            help="scratchpad bytes: a size (512KiB) [default: what the chip states]",
        ),
    ] = None,
    show_map: Annotated[
        bool,
        typer.Option(
            "--map", help="list every module's regions, and the bytes that its layers require and have"
        ),
    ] = False,
    beside: Annotated[
        bool, typer.Option("--beside", help="place the modules exactly, too, and show both side by side")
    ] = False,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            help="seconds for each exact search of --beside: one for each module, one for the smallest buffer"
            " [default: 60]",
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
    """Keep modules of branches on chip, by the simple method; a table of what every module moves."""
    if time_limit is not None and not beside:
        raise UsageError("means nothing without --beside", item="--time-limit")
    if time_limit is not None and not time_limit >= 0:
        raise UsageError(f"{time_limit} is no number of seconds", item="--time-limit")
    writable(output, Path(model))
    writable(report, Path(model), output)
    with progress(as_json) as say:
        made = api.branches(
            model,
            chip,
            budget,
            progress=say,
            **{name: getattr(read, name) for name in read.__dataclass_fields__},
            **{name: getattr(options, name) for name in options.__dataclass_fields__},
        )
        exact = (
            made.beside(time_limit=60 if time_limit is None else time_limit, progress=say) if beside else None
        )
    goes_on("branches", "simple")
    if output is not None:
        made.plan.save(output)
    if report is not None:
        made.plan.report(report)
    if as_json:
        print_data(json.dumps(made.data() | ({} if exact is None else {"beside": exact.data()})))
        return
    from onchip.results.branched_table import resource_map, table

    console = stdout()
    console.print(table(made, console.width))
    if show_map and made.modules:
        console.print(resource_map(made, console.width))
    if exact is not None:
        from onchip.comparison.beside_table import table as exact_table

        console.print()
        console.print(exact_table(exact))
    for target, what in ((output, "plan"), (report, "report")):
        if target is not None:
            console.print(f"{what} written to {target}", markup=False, highlight=False, soft_wrap=True)
