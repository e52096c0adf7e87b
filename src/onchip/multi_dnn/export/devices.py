"""A schedule for TensorRT: devices, engines for stretches of groups, and the cuts of networks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from onchip.base.errors import UsageError
from onchip.export.names import identifiers
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.stretches import Stretch, stretches

__all__ = ["Cut", "Device", "Engine", "cut_after", "device_of", "engines_of", "network_names"]

Cut = tuple[str, str | int]
"""("tensor", its name) or ("layer", index of the layer in TensorRT's network whose first output it is)."""


class Device(NamedTuple):
    """A TensorRT device: `kind` is `GPU` or `DLA`, `core` the number of a board's DLA, 0 for the GPU."""

    kind: str
    core: int


@dataclass(frozen=True, slots=True)
class Engine:
    """Groups `first` to `last` of a profile on one unit, under a file name of letters, digits and `_`."""

    network: str
    job: int
    first: int
    last: int
    unit: int
    file: str


def device_of(made: Judged, unit: int) -> Device:
    """Return the device of a unit by its name: `gpu`; `dla` or `dla0`, the first DLA; `dla1`, the second.

    Raises `UsageError` for any other name, and for one device under the names of two units with work: they
    would wait for each other against the schedule.
    """
    names = made.workload.soc.unit_names
    device = _named(names[unit])
    if device is None:
        raise UsageError(
            f"TensorRT runs on gpu and dla, dla0, dla1; the schedule has a unit {names[unit]}", item="--to"
        )
    for other, name in enumerate(names):
        if other != unit and made.schedule.order[other] and _named(name) == device:
            first, second = sorted((names[unit], name))
            what = f"DLA core {device.core}" if device.kind == "DLA" else "the GPU"
            raise UsageError(f"units {first} and {second} are both {what}", item="--to")
    return device


def _named(name: str) -> Device | None:
    found = re.fullmatch(r"(GPU|DLA)[._-]?([0-9]{0,2})", name, re.ASCII | re.IGNORECASE)
    if found is None:
        return None
    kind = found[1].upper()
    return Device(kind, int(found[2] or 0) if kind == "DLA" else 0)


def network_names(made: Judged) -> list[str]:
    """Return an identifier for each network of the workload."""
    names = identifiers(job.name for job in made.workload.jobs)
    return [names[job.name] for job in made.workload.jobs]


def engines_of(made: Judged) -> dict[tuple[int, int, int, int], Engine]:
    """Return the engines of the stretches, by (job, first, last, unit), in the order of first use.

    Raises `UsageError` for a unit that TensorRT does not know, as `device_of` does.
    """
    names = network_names(made)
    units = identifiers(made.workload.soc.unit_names)
    found: dict[tuple[int, int, int, int], Engine] = {}
    every: list[Stretch] = [one for row in stretches(made.schedule) for one in row]
    for one in sorted(every, key=lambda s: (s.job, s.run, s.first)):
        key = (one.job, one.first, one.last, one.unit)
        if key not in found:
            device_of(made, one.unit)
            unit = units[made.workload.soc.units[one.unit].name]
            file = f"{names[one.job]}_{one.first}_{one.last}_{unit}.plan"
            found[key] = Engine(names[one.job], one.job, one.first, one.last, one.unit, file)
    return found


def cut_after(profile: Profile, group: int) -> Cut:
    """Return where the network is cut behind a group.

    It is the tensor that the group hands on, where the profile states it; else, where the groups are named by
    ranges of layers (`0-9`), the output of the last layer. Raises `UsageError` when neither is known.
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
