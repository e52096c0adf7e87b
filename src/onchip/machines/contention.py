"""The slowdown of a group while others use the same memory: the three-region model of PCCS.

HaX-CoNN (3.3) takes the model from PCCS: a unit's slowdown follows from the bandwidth its group asks for when
it runs alone (x) and from what all other units ask for together (y), both in GB/s. Public code fits the
model's constants but does not evaluate it; the formula here is a reconstruction, so it stays replaceable:
any class with a `slowdown` method is a `ContentionModel`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

import msgspec

__all__ = ["LEAST_SPEED", "NO_CONTENTION", "Contention", "ContentionModel", "NoContention", "ThreeRegions"]

Constant = Annotated[float, msgspec.Meta(ge=0, lt=1e15)]
"""A constant of the model, within the limits of files."""

LEAST_SPEED = 1.0
"""The percent of its own speed that a unit always keeps: without it, the model's lines would cross zero."""


class ContentionModel(Protocol):
    """A model of how much slower a group runs on `unit` (its index in the SoC) beside other traffic.

    `requested` is the bandwidth of the group when alone, `external` the sum of the groups on other units, in
    GB/s. The answer is at least 1, is 1 without external traffic, and depends on nothing else.
    """

    def slowdown(self, unit: int, requested: float, external: float) -> float:
        """Return the time beside the others over the time alone."""


@dataclass(frozen=True, slots=True)
class Contention:
    """The three-region model's constants of one unit. Bandwidths in GB/s.

    A group that asks for less than `normal_bw` suffers minor contention, one that asks for less than
    `intensive_bw` normal contention, and any other intensive contention. `mrmc` is the most that minor
    contention costs, in percent of speed, reached when the external traffic is the memory's peak. From
    `tbwdc` of total traffic on, normal contention costs `rate` percent for every GB/s; external traffic
    beyond `cbp` costs no more.
    """

    normal_bw: Constant
    intensive_bw: Constant
    mrmc: Constant
    tbwdc: Constant
    cbp: Constant
    rate: Constant

    def speed(self, requested: float, external: float, peak: float) -> float:
        """Return the percent of its speed that a group keeps (PCCS' relative speed, RS); `peak` in GB/s."""
        loss = self.mrmc * external / peak
        if requested >= self.intensive_bw:
            loss += self.rate * min(external, self.cbp)
        elif requested >= self.normal_bw:
            # Beyond tbwdc by itself, a group loses at most the others' own traffic.
            onset = max(self.tbwdc, requested)
            loss += self.rate * max(0.0, requested + min(external, self.cbp) - onset)
        return max(100.0 - loss, LEAST_SPEED)

    def scaled(self, factor: float) -> Contention:
        """Return the same shape for a memory whose bandwidths are `factor` times as large."""
        return Contention(
            self.normal_bw * factor,
            self.intensive_bw * factor,
            self.mrmc,
            self.tbwdc * factor,
            self.cbp * factor,
            self.rate / factor,
        )


@dataclass(frozen=True, slots=True)
class ThreeRegions:
    """PCCS' model for every unit of a SoC, in the SoC's order; `peak` is the memory's bandwidth in GB/s."""

    units: tuple[Contention, ...]
    peak: float

    def slowdown(self, unit: int, requested: float, external: float) -> float:
        """Return 100 / RS."""
        return 100.0 / self.units[unit].speed(requested, external, self.peak)


@dataclass(frozen=True, slots=True)
class NoContention:
    """A memory that is never the bottleneck, as schedulers without contention assume."""

    def slowdown(self, unit: int, requested: float, external: float) -> float:
        """Return 1."""
        return 1.0


NO_CONTENTION = NoContention()
