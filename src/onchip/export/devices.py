"""What TensorRT must know of a schedule: devices, engines for stretches of groups, and where to cut."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from onchip.corun.judged import Judged
from onchip.corun.profile import Profile
from onchip.corun.stretches import Stretch, stretches
from onchip.errors import UsageError
from onchip.export.names import identifiers

__all__ = ["Cut", "Engine", "cut_after", "device_of", "engines_of", "network_names"]

Cut = tuple[str, str | int]
"""("tensor", its name) or ("layer", index of the layer in TensorRT's network whose first output it is)."""


@dataclass(frozen=True, slots=True)
class Engine:
    """Groups `first` to `last` of a profile on one unit, under a file name of letters, digits and `_`."""

    network: str
    job: int
    first: int
    last: int
    unit: int
    file: str


def device_of(made: Judged, unit: int) -> str:
    """`GPU` or `DLA`; raises `UsageError` for any other unit."""
    name = made.workload.soc.units[unit].name
    for device in ("GPU", "DLA"):
        if re.match(rf"{device}[0-9._-]*$", name, re.IGNORECASE):
            return device
    raise UsageError(f"TensorRT runs on gpu and dla; the schedule has a unit {name}", item="--to")


def network_names(made: Judged) -> list[str]:
    """An identifier for each network of the workload."""
    names = identifiers(job.name for job in made.workload.jobs)
    return [names[job.name] for job in made.workload.jobs]


def engines_of(made: Judged) -> dict[tuple[int, int, int, int], Engine]:
    """The engines that the stretches need, by (job, first, last, unit), in the order of first use."""
    names = network_names(made)
    found: dict[tuple[int, int, int, int], Engine] = {}
    every: list[Stretch] = [one for row in stretches(made.schedule) for one in row]
    for one in sorted(every, key=lambda s: (s.job, s.run, s.first)):
        key = (one.job, one.first, one.last, one.unit)
        if key not in found:
            device = device_of(made, one.unit).lower()
            file = f"{names[one.job]}_{one.first}_{one.last}_{device}{one.unit}.plan"
            found[key] = Engine(names[one.job], one.job, one.first, one.last, one.unit, file)
    return found


def cut_after(profile: Profile, group: int) -> Cut:
    """Where the network is cut behind a group.

    The tensor that it hands on, where the profile says which; else, where the groups are named by ranges of
    layers (`0-9`), the output of the last layer. Raises `UsageError` when neither is known.
    """
    this = profile.groups[group]
    if this.output:
        return ("tensor", this.output)
    ranges = [re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", g.name) for g in profile.groups]
    if all(ranges):
        bounds = [(int(m[1]), int(m[2])) for m in ranges if m]
        if all(a[1] + 1 == b[0] for a, b in pairwise(bounds)):
            return ("layer", bounds[group][1])
    raise UsageError(
        f"the profile of {profile.network} does not say which tensor group {this.name} hands on (`output`)",
        item="--to",
    )
