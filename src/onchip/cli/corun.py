"""`onchip corun`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.base.flags import expand_options
from onchip.cli import complete
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import Json, progress, stdout, writable
from onchip.multi_dnn.options import CorunOptions, SolveOptions
from onchip.readers.source import ReadOptions


@app.command()
@expand_options
def corun(
    models: Annotated[
        list[str],
        typer.Argument(
            help="zoo:NAME, FILE.onnx, FILE.tflite, FILE.pt2, a network as FILE.json, or times of layers as"
            " FILE.csv; the same may stand there twice",
            metavar="MODEL",
            autocompletion=complete.models,
        ),
    ],
    read: ReadOptions,
    options: CorunOptions,
    solving: SolveOptions,
    soc: Annotated[
        str,
        typer.Option(
            "--soc",
            metavar="NAME|FILE",
            help="a built-in SoC (`onchip socs` lists them), or the path of a .toml file",
            autocompletion=complete.socs,
        ),
    ] = "xavier-agx",
    objective: Annotated[
        str,
        typer.Option(
            "--objective",
            metavar="latency|throughput|rates",
            help="`latency` of the slowest network; `throughput`: frames per second; `rates`: sum of"
            " 1 / latency",
        ),
    ] = "latency",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="write the schedule as onchip.schedule/1 JSON")
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="write the timeline as one self-contained HTML page")
    ] = None,
    as_json: Json = False,
) -> None:
    """Schedule several networks on the processing units of one SoC that share its memory."""
    files = [Path(model) for model in models]
    files += [Path(text.rpartition("=")[2]) for text in options.profile]
    writable(output, Path(soc), *files)
    writable(report, Path(soc), output, *files)
    with progress(as_json) as say:
        made = api.corun(
            models,
            soc,
            objective,
            progress=say,
            **{
                name: getattr(group, name)
                for group in (read, options, solving)
                for name in group.__dataclass_fields__
            },
        )
    for warning in made.warnings:
        from onchip.report.wording import visible

        print(f"onchip: note: {visible(warning)}", file=sys.stderr)
    if output is not None:
        made.save(output)
    if report is not None:
        made.report(report)
    if as_json:
        print_data(json.dumps(made.data()))
        return
    from onchip.multi_dnn.result.corunned_table import table

    console = stdout()
    console.print(table(made.judged, console.width, made.note))
    for target, what in ((output, "schedule"), (report, "report")):
        if target is not None:
            console.print(f"{what} written to {target}", markup=False, highlight=False, soft_wrap=True)
