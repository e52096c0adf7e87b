"""`onchip zoo` and `chips`: the built-in networks and chips."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from onchip.cli import complete
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import Json, progress, stdout, table


@app.command()
def zoo(
    names: Annotated[
        list[str] | None, typer.Argument(help="only these networks", autocompletion=complete.zoo_names)
    ] = None,
    as_json: Json = False,
) -> None:
    """List the built-in networks: operators, tensors, bytes, and the least memory they can be planned in."""
    from onchip.cli.zoo_table import rows

    with progress(as_json) as say:
        found = list(rows(names, say))
    if as_json:
        print_data(json.dumps(found))
        return
    table(found, title="8-bit, fused, bytes; MR: least budget of any plan, MP: least peak of any order")


@app.command()
def chips(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="the figures of these chips, each with its source: names, or .toml files",
            autocompletion=complete.chips,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the built-in chips; of those that are named, every figure with its source.

    A file of your own is given by its path: --chip ./mine.toml.
    """
    from onchip.cli import chip_table
    from onchip.machines.chip import builtin_chips, load_chip

    found = [load_chip(name) for name in names] if names else builtin_chips()
    if as_json:
        print_data(json.dumps([chip_table.data(chip) for chip in found]))
    elif names:
        for chip in found:
            stdout().print(chip_table.datasheet(chip))
    else:
        stdout().print(chip_table.listed(found))
