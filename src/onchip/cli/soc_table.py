"""The tables of `onchip socs`: all of them, and the units of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from onchip.machines.soc import SoC
from onchip.report.grid import Grid
from onchip.report.wording import visible

if TYPE_CHECKING:
    from rich.console import Group

__all__ = ["data", "datasheet", "listed"]


def data(soc: SoC) -> dict[str, Any]:
    """Return the figures of a SoC, for JSON."""
    found: dict[str, Any] = msgspec.to_builtins(soc)
    return found


def listed(found: Sequence[SoC]) -> Group:
    """Return the SoCs, a line each."""
    from rich.console import Group
    from rich.text import Text

    grid = Grid(("SoC", False), ("units", False), ("GB/s", True), ("what it is", False), whole_names=True)
    for soc in found:
        grid.add_row(
            visible(soc.name),
            visible(", ".join(soc.unit_names), 200),
            f"{soc.peak_gb_per_second:,.4g}",
            visible(soc.description, 200) if soc.description else "-",
        )
    return Group(
        grid,
        Text(),
        Text(
            "units: processing units that share the memory; GB/s: what the memory reaches in practice."
            " onchip socs NAME: the figures of one."
        ),
    )


def datasheet(soc: SoC) -> Group:
    """Return the units of a SoC, its memory and contention, and the figures that nobody published."""
    from rich.console import Group
    from rich.text import Text

    grid = Grid(("unit", False), ("GMAC/s", True), ("GB/s", True), ("what it is", False))
    for unit in soc.units:
        lacks = f"; does not run {', '.join(unit.unsupported)}" if unit.unsupported else ""
        grid.add_row(
            visible(unit.name),
            "-" if unit.macs_per_second is None else f"{unit.macs_per_second / 1e9:,.0f}",
            "-" if unit.gb_per_second is None else f"{unit.gb_per_second:,.4g}",
            visible(f"{unit.description or '-'}{lacks}", 400),
        )
    sets = ", ".join(
        f"{name} (the default)" if name == soc.default_contention else name
        for name in (*soc.contention, "none")
    )
    told = [
        f"Memory: {soc.nominal_gb_per_second:,.4g} GB/s by its data sheet, {soc.peak_gb_per_second:,.4g} in"
        " practice.",
        f"Contention, as onchip corun --contention takes it: {sets}.",
    ]
    if soc.assumed:
        told.append(f"Assumed, in no publication: {', '.join(soc.assumed)}.")
    told.append("-: not stated; networks for such a unit need profiles that were measured.")
    return Group(
        Text(": ".join(visible(words, 300) for words in (soc.name, soc.description) if words)),
        Text(),
        grid,
        Text(),
        *(Text(visible(line, 1_000)) for line in told),
    )
