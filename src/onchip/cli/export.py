"""`onchip export`: a plan in another program's format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.base.errors import UsageError
from onchip.base.files import read_bytes, write_atomically
from onchip.cli import complete
from onchip.cli.app import app
from onchip.cli.console import stdout, writable
from onchip.export import FORMATS
from onchip.multi_dnn.export import SCHEDULE_FORMATS, export_schedule
from onchip.multi_dnn.schedule_file import is_schedule


@app.command()
def export(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN",
            help="a plan file, JSON or text; with --to tflm a .tflite model, too",
            autocompletion=complete.files(".json", ".plan", ".txt", ".tflite"),
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to", help=f"the format: {', '.join(FORMATS)}; of a schedule {', '.join(SCHEDULE_FORMATS)}"
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="the file to write")],
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            help="where the model is now, if it has moved since it was planned; for tflm, loops, program and "
            "constants",
        ),
    ] = None,
) -> None:
    """Write a plan or a schedule for another program: a packer, a runtime, TensorRT, C, JSON, Perfetto."""
    writable(output, plan, model)
    if plan.suffix == ".tflite":
        from onchip.export.tflm_model import packed

        if to != "tflm" or model is not None:
            raise UsageError("a .tflite model itself is written --to tflm alone", where=str(plan))
        write_atomically(output, packed(read_bytes(plan, model=True), str(plan)))
        stdout().print(f"{to} written to {output}", markup=False, highlight=False, soft_wrap=True)
        return
    if is_schedule(plan):
        from onchip.multi_dnn.judged import judged_file

        if model is not None:
            raise UsageError("a schedule is exported without its models", item="--model")
        write_atomically(output, export_schedule(judged_file(plan), to))
        stdout().print(f"{to} written to {output}", markup=False, highlight=False, soft_wrap=True)
        return
    made = api.read(plan)
    writable(output, Path(made.network.source) if made.network.source else None)
    write_atomically(output, made.export(to, model=model))
    stdout().print(f"{to} written to {output}", markup=False, highlight=False, soft_wrap=True)
