"""`onchip diff`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from onchip import api
from onchip.cli import complete
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import Json, stdout
from onchip.plans.differences import only_planning_time


@app.command()
def diff(
    first: Annotated[
        Path,
        typer.Argument(
            help="a plan file, JSON or text", autocompletion=complete.files(".json", ".plan", ".txt")
        ),
    ],
    second: Annotated[
        Path, typer.Argument(help="another one", autocompletion=complete.files(".json", ".plan", ".txt"))
    ],
    as_json: Json = False,
) -> None:
    """List every difference of two plans; exit code 1 if there is one.

    Where only the time of planning differs, the plans are the same: exit code 0.

    Both files are read, and neither is proved: `onchip check` does that.
    """
    found = api.read(first).differences(api.read(second))
    if as_json:
        print_data(json.dumps([one.data() for one in found]))
    else:
        from onchip.report.differences import differences_table

        stdout().print(differences_table(found), soft_wrap=True)
    if not only_planning_time(found):
        raise typer.Exit(1)
