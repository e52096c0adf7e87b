"""`onchip export`: a plan in the form that something else reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.cli.app import app
from onchip.cli.console import PlanFile, stdout, writable
from onchip.export import FORMATS
from onchip.files import write_atomically


@app.command()
def export(
    plan: PlanFile,
    to: Annotated[str, typer.Option("--to", help=f"the format: {', '.join(FORMATS)}")],
    output: Annotated[Path, typer.Option("-o", "--output", help="the file to write")],
    model: Annotated[
        Path | None,
        typer.Option("--model", help="tflm: where the model is now, if it has moved since it was planned"),
    ] = None,
) -> None:
    """Write a plan for another program: a packer's CSV, a TFLM model, a C header or a JSON table."""
    writable(output, plan, model)
    made = api.read(plan)
    writable(output, Path(made.network.source) if made.network.source else None)
    write_atomically(output, made.export(to, model=model))
    stdout().print(f"{to} written to {output}", markup=False, highlight=False, soft_wrap=True)
