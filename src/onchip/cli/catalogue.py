"""`onchip zoo`, `chips`, `boards` and `socs`: the networks and machines that are built in."""

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
    table(
        found,
        title="8-bit, fused, bytes; MR: the least scratchpad in which every operator runs whole;"
        " MP: the least peak of any order, below which whole tensors spill",
    )


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


@app.command()
def boards(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="only these boards: names, or .toml files", autocompletion=complete.boards),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the built-in microcontroller boards: core, RAM, flash, clock.

    A file of your own is given by its path: --board ./mine.toml.
    """
    from onchip.cli import board_table
    from onchip.machines.board import builtin_boards, load_board

    found = [load_board(name) for name in names] if names else builtin_boards()
    if as_json:
        print_data(json.dumps([board_table.data(board) for board in found]))
    else:
        stdout().print(board_table.listed(found, whole=bool(names)))


@app.command()
def socs(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="the units of these SoCs: names, or .toml files", autocompletion=complete.socs),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the built-in SoCs; of those that are named, the units, the memory, and what is assumed.

    A file of your own is given by its path: --soc ./mine.toml.
    """
    from onchip.cli import soc_table
    from onchip.machines.soc_file import builtin_socs, load_soc

    found = [load_soc(name) for name in names] if names else builtin_socs()
    if as_json:
        print_data(json.dumps([soc_table.data(soc) for soc in found]))
    elif names:
        for soc in found:
            stdout().print(soc_table.datasheet(soc))
    else:
        stdout().print(soc_table.listed(found))
