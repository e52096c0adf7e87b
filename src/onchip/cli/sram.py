"""`onchip sram`: area and energy of SRAMs for the architect."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from onchip.base.units import parse_bytes
from onchip.cli.answer import print_data
from onchip.cli.app import app
from onchip.cli.console import Json, stdout
from onchip.machines.sram import Dram


@app.command()
def sram(
    sizes: Annotated[list[str], typer.Argument(help="sizes of SRAMs: 64KiB 1MiB")],
    nm: Annotated[float, typer.Option("--nm", metavar="NM", help="the process, from 22 to 90 nm")] = 22.0,
    width: Annotated[
        int, typer.Option("--width", metavar="BYTES", help="bytes of an access, from 8 to 32")
    ] = 16,
    dram: Annotated[
        Dram,
        typer.Option("--dram", help="the DRAM whose energy stands beside"),
    ] = "lpddr4",
    as_json: Json = False,
) -> None:
    """Estimate area and energy of SRAMs by a law that is fitted to CACTI 7, with its error.

    One bank with one port; no leakage. A sweep has the same figures with [sram] in its file.
    """
    from onchip.machines.sram import dram_picojoules_per_byte, law, sram_of

    found = [sram_of(parse_bytes(size), nm=nm, width=width) for size in sizes]
    off_chip = dram_picojoules_per_byte(dram)
    if as_json:
        known = law()
        errors = {name: asdict(getattr(known, name)) for name in ("area", "read", "write")}
        rows = [asdict(one) for one in found]
        print_data(json.dumps({"rows": rows, "law": errors, "dram_picojoules_per_byte": off_chip}))
        return
    from rich.text import Text

    from onchip.report.grid import Grid
    from onchip.report.wording import short_size

    grid = Grid(
        ("SRAM", False), ("mm2", True), ("mm2 / MiB", True), ("pJ/B read", True), ("pJ/B written", True),
        (f"{dram} costs", True),
    )  # fmt: skip
    for one in found:
        grid.add_row(
            short_size(one.bytes),
            f"{one.mm2:.3g}",
            f"{one.mm2 * 2**20 / one.bytes:.3g}",
            f"{one.read_picojoules_per_byte:.3g}",
            f"{one.write_picojoules_per_byte:.3g}",
            f"{off_chip / one.picojoules_per_byte:,.3g} x",
        )
    area, read, write = law().area, law().read, law().write
    console = stdout()
    console.print(f"{nm:g} nm, {width} bytes an access; {dram}: {off_chip:g} pJ/B", markup=False)
    console.print(grid)
    console.print(
        Text(
            f"A law fitted to CACTI 7; its distance from CACTI: area {area.mean_error:.0%} on average and"
            f" {area.most_error:.0%} at most, reads {read.mean_error:.0%} and {read.most_error:.0%}, writes"
            f" {write.mean_error:.0%} and {write.most_error:.0%}. CACTI itself is a model: docs/sram.md."
        )
    )
