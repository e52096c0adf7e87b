"""`[sram]` in a spec: the area and the energies of every buffer of a sweep, beside its bytes.

    [sram]
    nm = 22          # the process, from 22 to 90
    width = 16       # bytes of an access, from 8 to 32
    dram = "lpddr4"  # the DRAM that the bytes cross to

They follow from the buffer and the bytes that cross, so no point is computed again for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onchip.base.errors import UsageError
from onchip.machines.sram import dram_picojoules_per_byte, law, sram_of
from onchip.sweeps.curves import Spot

__all__ = ["SRAM_COLUMNS", "SramAsked", "area_words", "law_words", "parse_sram", "priced"]

SRAM_COLUMNS = ("sram_mm2", "sram_picojoules_per_byte", "dram_picojoules_per_byte", "dram_millijoules")
"""The columns that `[sram]` adds: the SRAM's area, the mean of a byte read and written; what DRAM costs."""


@dataclass(frozen=True, slots=True)
class SramAsked:
    """The process, the bytes of an access, and the kind of DRAM."""

    nm: float = 22.0
    width: int = 16
    dram: str = "lpddr4"


def parse_sram(section: Any, where: str) -> SramAsked:
    """Return what the table `[sram]` asks for; raises `UsageError` naming the file and the key."""
    if not isinstance(section, dict):
        raise UsageError("must be a table: [sram]", where=where, item="sram")
    for key, value in section.items():
        if key not in ("nm", "width", "dram"):
            raise UsageError("unknown key; known: nm, width, dram", where=where, item=f"sram.{key[:60]}")
        kinds = (int, float) if key == "nm" else (int,) if key == "width" else (str,)
        if type(value) not in kinds:
            raise UsageError(
                "must be text" if key == "dram" else "must be a number", where=where, item=f"sram.{key}"
            )
    asked = SramAsked(**section)
    try:
        sram_of(1 << 20, nm=asked.nm, width=asked.width)
        dram_picojoules_per_byte(asked.dram)
    except UsageError as no:
        raise UsageError(no.reason, where=where, item=f"sram.{no.item}") from None
    return asked


def priced(asked: SramAsked | None, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the columns of `[sram]`, empty where the law does not hold."""
    if asked is None:
        return dict(row)
    per_byte, moved = dram_picojoules_per_byte(asked.dram), row["dram_bytes"]
    figures: dict[str, float | None] = dict.fromkeys(SRAM_COLUMNS)
    figures["dram_picojoules_per_byte"] = per_byte
    figures["dram_millijoules"] = None if moved is None else float(f"{moved * per_byte / 1e9:.6g}")
    try:
        sram = (
            None
            if row["budget_bytes"] is None
            else sram_of(row["budget_bytes"], nm=asked.nm, width=asked.width)
        )
    except UsageError:
        sram = None
    if sram is not None:
        figures["sram_mm2"] = float(f"{sram.mm2:.4g}")
        figures["sram_picojoules_per_byte"] = float(f"{sram.picojoules_per_byte:.4g}")
    return {**row, **figures}


def area_words(asked: SramAsked, spot: Spot | None) -> str:
    """Return the area of the buffer of a spot, `-` where there is none."""
    if spot is None:
        return "-"
    try:
        return f"{sram_of(spot.budget, nm=asked.nm, width=asked.width).mm2:.3g}"
    except UsageError:
        return "-"


def law_words(asked: SramAsked) -> str:
    """Return a sentence on where the figures are from, and how far they are from there."""
    known = law()
    return (
        f"SRAM: {asked.nm:g} nm, one bank, {asked.width} bytes an access, by a law fitted to CACTI 7"
        f" (area within {known.area.mean_error:.0%} on average, {known.area.most_error:.0%} at most; energy"
        f" of a read within {known.read.mean_error:.0%} and {known.read.most_error:.0%}). DRAM: {asked.dram}."
    )
