"""Area and energy of an SRAM by a law that is fitted to CACTI 7, and the energy of DRAM by kind.

A figure is `factor * KiB^a * width^b * nm^c`: the area of the macro, and the energy of a byte read or
written, of one bank with one port that reads or writes `width` bytes at a time. `sram.toml` states the
factors and exponents, what CACTI was asked, and how far the law is from it; `benchmarks/sram_fit.py` writes
it. The law says nothing of leakage, and nothing below 22 nm, where CACTI has no data.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from onchip.base.errors import UsageError

__all__ = [
    "NODES",
    "WIDTHS",
    "Dram",
    "Power",
    "Sram",
    "SramLaw",
    "dram_picojoules_per_byte",
    "law",
    "sram_of",
]

NODES = (22.0, 90.0)
WIDTHS = (8, 32)
KIBIBYTES = (4.0, 32_768.0)
"""The least and the most of each that the law was fitted to, all included."""


@dataclass(frozen=True, slots=True)
class Power:
    """One figure's law, `factor * KiB^size * width^width * nm^node`, and its distance from CACTI as shares.

    `mean_error` is the mean of the distances over all points, `most_error` the largest.
    """

    factor: float
    size: float
    width: float
    node: float
    mean_error: float
    most_error: float

    def at(self, kibibytes: float, width: float, nm: float) -> float:
        """Return the figure of an SRAM."""
        figure: float = self.factor * kibibytes**self.size * width**self.width * nm**self.node
        return figure


@dataclass(frozen=True, slots=True)
class SramLaw:
    """The laws of area (mm2) and of the energies of a byte (pJ); the picojoules of a byte of DRAM by kind."""

    source: str
    area: Power
    read: Power
    write: Power
    dram: tuple[tuple[str, float], ...]
    dram_source: str


@dataclass(frozen=True, slots=True)
class Sram:
    """An SRAM by the law: its area in square millimetres, and the picojoules of a byte read and written."""

    bytes: int
    mm2: float
    read_picojoules_per_byte: float
    write_picojoules_per_byte: float

    @property
    def picojoules_per_byte(self) -> float:
        """The mean of a byte read and a byte written."""
        return (self.read_picojoules_per_byte + self.write_picojoules_per_byte) / 2


@cache
def law() -> SramLaw:
    """Return the fitted law."""
    text = (resources.files("onchip.machines") / "sram.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    area, read, write = (Power(**table[name]) for name in ("area", "read", "write"))
    return SramLaw(table["source"], area, read, write, tuple(table["dram"].items()), table["dram_source"])


Dram = Literal["lpddr4", "lpddr", "ddr3", "gddr5", "hbm2"]
"""The kinds of DRAM whose energy is known: those of `sram.toml`."""


def sram_of(size: int, *, nm: float = 22.0, width: int = 16) -> Sram:
    """Return area and energies of an SRAM of `size` bytes at `nm` nanometres, `width` bytes an access.

    Raises `UsageError` outside of what the law was fitted to.
    """
    kibibytes = size / 1024
    for value, (least, most), item, unit in (
        (nm, NODES, "nm", "nm"),
        (width, WIDTHS, "width", "bytes an access"),
        (kibibytes, KIBIBYTES, "size", "KiB"),
    ):
        if not least <= value <= most:
            raise UsageError(
                f"{value:,.6g} {unit} is not from {least:,g} to {most:,g}, where the law holds", item=item
            )
    known = law()
    area, read, write = (power.at(kibibytes, width, nm) for power in (known.area, known.read, known.write))
    return Sram(size, area, read, write)


def dram_picojoules_per_byte(kind: str) -> float:
    """Return the energy of a byte to or from a kind of DRAM; raises `UsageError` for an unknown kind."""
    known = dict(law().dram)
    if kind not in known:
        raise UsageError(f"{kind[:40]!r} is not one of {', '.join(known)}", item="dram")
    return known[kind]
