"""`onchip compare`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from onchip import api
from onchip.base.flags import expand_options
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import ChipName, Json, Model, progress, stdout
from onchip.comparison.options import CompareOptions
from onchip.readers.source import ReadOptions


@app.command()
@expand_options
def compare(
    model: Model,
    read: ReadOptions,
    options: CompareOptions,
    chip: ChipName = "generic",
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="SIZE",
            help="scratchpad bytes: a size (512KiB), or a name: MR, the least in which every operator runs"
            " whole; MP, the least peak of any order, below which whole tensors spill; MH, halfway"
            " [default: what the chip states]",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan a network in several ways side by side: onchip's strategies, COSMA's baselines, runtimes' own."""
    with progress(as_json) as say:
        source = api.load(model, **{name: getattr(read, name) for name in read.__dataclass_fields__})
        made = api.compare(
            source,
            chip,
            budget,
            progress=say,
            **{name: getattr(options, name) for name in options.__dataclass_fields__},
        )
    if as_json:
        print_data(json.dumps(made.data()))
        return
    from onchip.comparison.comparison_table import table

    out = stdout()
    out.print(table(made))
    if not made.complete:
        raise typer.Exit(130)
