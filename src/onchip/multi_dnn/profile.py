"""Profiles: the time of each layer group of a network on each unit, and its demand on the memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from onchip.base.errors import ProfileError

__all__ = ["Group", "Profile"]

MAX_GROUPS = 50_000
MAX_MS = 1e9
MIN_MS = 1e-9
"""A femtosecond, the least time: a shorter one is a mistake, and would vanish beside other times."""


@dataclass(frozen=True, slots=True)
class Group:
    """One layer group: runs whole on one unit. Every tuple has one figure per unit, in the profile's order.

    `ms` is the time alone (None where the unit cannot run it; t of the paper), `gb_per_second` the bandwidth
    it then asks for. `out_ms` is the time to hand its output over when the next group runs elsewhere, `in_ms`
    the time to take its input over when the one before ran elsewhere (the paper's tau OUT and IN). `layers`
    are the operators of the network that it consists of, and `output` the tensor that it hands on, by the
    network's own names; both are empty where the profile does not state them (then nothing can be exported
    layer by layer).
    """

    name: str
    ms: tuple[float | None, ...]
    gb_per_second: tuple[float, ...]
    out_ms: tuple[float, ...]
    in_ms: tuple[float, ...]
    layers: tuple[str, ...] = ()
    output: str = ""

    def runs_on(self, unit: int) -> bool:
        """Return whether `unit` supports the group."""
        return self.ms[unit] is not None


@dataclass(frozen=True, slots=True)
class Profile:
    """A network as a chain of layer groups on the units of one SoC.

    `source` is the origin of the figures; `synthetic` states that they were not measured. For a profile
    measured here, `rounds` of the network were run, in `undisturbed` of which no unit lost its core.
    """

    network: str
    soc: str
    units: tuple[str, ...]
    groups: tuple[Group, ...]
    source: str = ""
    synthetic: bool = False
    rounds: int = 0
    undisturbed: int = 0

    def __post_init__(self) -> None:
        """Raise `ProfileError`, naming the network and the group, for anything that is not a profile."""
        where = f"profile of {self.network}"
        if not self.units or len(set(self.units)) < len(self.units):
            raise ProfileError("must name its units, each once", where=where, item="units")
        if not 1 <= len(self.groups) <= MAX_GROUPS:
            raise ProfileError(f"must have 1 to {MAX_GROUPS:,} groups", where=where, item="groups")
        if not 0 <= self.undisturbed <= self.rounds:
            raise ProfileError("is not from 0 to rounds", where=where, item="undisturbed")
        names: set[str] = set()
        if not self.network.strip():
            raise ProfileError("has no name", where=where, item="network")
        for n, group in enumerate(self.groups):
            item = f"group {group.name}"
            if not group.name.strip():
                raise ProfileError("has no name", where=where, item=f"groups[{n}]")
            if group.name in names:
                raise ProfileError("is given twice", where=where, item=item)
            names.add(group.name)
            for key in ("ms", "gb_per_second", "out_ms", "in_ms"):
                row = getattr(group, key)
                if len(row) != len(self.units):
                    raise ProfileError(
                        f"has {len(row)} figures of {key} for {len(self.units)} units", where=where, item=item
                    )
                for unit, value in zip(self.units, row, strict=True):
                    if value is None and key == "ms":
                        continue
                    if value is None or not isfinite(value) or not 0 <= value <= MAX_MS:
                        raise ProfileError(
                            f"{key} on {unit} is {value}, not a number from 0 to {MAX_MS:g}",
                            where=where,
                            item=item,
                        )
                    if key == "ms" and value < MIN_MS:
                        raise ProfileError(f"takes no time on {unit}", where=where, item=item)
            if all(t is None for t in group.ms):
                raise ProfileError("runs on no unit", where=where, item=item)

    def total_ms(self, unit: int) -> float | None:
        """Return the time of the whole network alone on `unit`, or None when a group does not run there."""
        total = 0.0
        for group in self.groups:
            ms = group.ms[unit]
            if ms is None:
                return None
            total += ms
        return total

    def transition_ms(self, group: int, source: int, target: int) -> float:
        """Return the delay between `group` on unit `source` and the next on `target`; 0 for the same unit."""
        if source == target:
            return 0.0
        return self.groups[group].out_ms[source] + self.groups[group + 1].in_ms[target]
