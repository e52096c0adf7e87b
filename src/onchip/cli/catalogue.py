"""`onchip zoo` and `chips`: the built-in networks and chips."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from onchip.cli import complete
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import Json, progress, table


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
def chips(as_json: Json = False) -> None:
    """List the built-in chips. A file of your own is given by its path: --chip ./mine.toml."""
    import msgspec

    from onchip.machines.chip import builtin_chips

    found = [msgspec.to_builtins(c.figures()) for c in builtin_chips()]
    if as_json:
        print_data(json.dumps(found))
        return
    table([
        {
            "name": c["name"],
            "element": c["element"],
            "scratchpad_bytes": c["scratchpad_bytes"],
            "PEs": None if c["pe_rows"] is None else f"{c['pe_rows']} x {c['pe_columns']}",
            "dataflow": c["dataflow"],
            "patches": None if c["patch_rows"] is None else f"{c['patch_rows']} x {c['patch_columns']}",
            "dram_GB/s": None if c["dram_bytes_per_second"] is None else c["dram_bytes_per_second"] / 1e9,
            "description": c["description"],
        }
        for c in found
    ])  # fmt: skip
