"""Systems on chip: processing units that share one memory. TOML files with the unit in every key's name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onchip.base.errors import ChipError
from onchip.machines.contention import NO_CONTENTION, Contention, ContentionModel, ThreeRegions

__all__ = ["SoC", "Unit"]


@dataclass(frozen=True, slots=True)
class Unit:
    """One processing unit (the paper's accelerator or DSA). A field that is None is not stated.

    The roofline (`macs_per_second`, `gb_per_second`) and the costs of handing tensors over (`out_ms` plus the
    bytes at `out_gb_per_second`, likewise `in_`) serve synthetic profiles only. `unsupported` are operator
    types, as in the network, that must run elsewhere. `busy_watts` and `idle_watts` give the energy.
    """

    name: str
    description: str = ""
    macs_per_second: float | None = None
    gb_per_second: float | None = None
    out_ms: float = 0.0
    out_gb_per_second: float | None = None
    in_ms: float = 0.0
    in_gb_per_second: float | None = None
    unsupported: tuple[str, ...] = ()
    busy_watts: float | None = None
    idle_watts: float | None = None


@dataclass(frozen=True)
class SoC:
    """Units and the memory they share. A unit's id is its position in `units`.

    `nominal_gb_per_second` is the memory's data sheet figure, `peak_gb_per_second` the bandwidth reached in
    practice; `contention` has the three-region model's constants by set and unit name. `assumed` names the
    figures that are not published, by their keys in the file.
    """

    name: str
    units: tuple[Unit, ...]
    nominal_gb_per_second: float
    peak_gb_per_second: float
    contention: Mapping[str, Mapping[str, Contention]] = field(default_factory=dict)
    default_contention: str = "none"
    assumed: tuple[str, ...] = ()
    description: str = ""

    @property
    def unit_names(self) -> tuple[str, ...]:
        """The units' names, in order."""
        return tuple(unit.name for unit in self.units)

    def model(self, name: str | None = None) -> ContentionModel:
        """Return the contention model of a parameter set, or of the default one; `none` is no contention at
        all.

        Raises `ChipError` listing the sets for an unknown one.
        """
        name = self.default_contention if name is None else name
        if name == "none":
            return NO_CONTENTION
        if name not in self.contention:
            known = ", ".join((*self.contention, "none"))
            raise ChipError(f"has no contention set {name!r}; there are {known}", where=f"SoC {self.name}")
        table = self.contention[name]
        return ThreeRegions(tuple(table[unit] for unit in self.unit_names), self.peak_gb_per_second)
