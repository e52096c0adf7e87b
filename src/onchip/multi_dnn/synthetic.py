"""Synthetic profiles: a roofline over the layers, scaled to measured totals, and marked as synthetic.

HaX-CoNN prints one profile (Table 2, GoogLeNet on Xavier) and the totals of ten networks (Table 5). For the
others, and for any network of a user, this module computes the time of each group with every operator at its
unit's roofline, and scales that to the total where there is one. Figures that no table has are assumed, by
the constants below; tests recompute each from the data that it rests on.
"""

from __future__ import annotations

from math import exp
from typing import NamedTuple

from onchip.base.errors import ChipError
from onchip.machines.soc import SoC, Unit
from onchip.multi_dnn.estimate import estimate_bandwidth
from onchip.multi_dnn.grouping import MOST_GROUPS, LayerGroup, element_bytes, layer_groups, moved_bytes
from onchip.multi_dnn.profile import Group, Profile
from onchip.multi_dnn.published import standalone
from onchip.network import Network, bits

__all__ = ["ELEMENT_BYTES", "SLOWER_THAN_ROOFLINE", "TRAFFIC", "synthetic_profile"]

ELEMENT_BYTES = 2
"""Bytes of an element of a tensor or weight: half precision, which GPU and DLA both run."""

TRAFFIC = 7.1
"""Bytes that a GPU requests for every byte that its layers read or write once, while the memory keeps up.
With it, and the memory's bandwidth as the limit, GoogLeNet on Xavier requests as many bytes as in Table 2."""

SLOWER_THAN_ROOFLINE = {
    "xavier-agx": (3.0, 1.6),
    "orin-agx": (1.6, 1.3),
    "snapdragon-865": (9.9, 11.7),
}
"""By SoC and unit, times alone over the roofline's: for networks without a printed total. They are the
geometric means over the networks that have one."""


class _Total(NamedTuple):
    """The factors of a network's roofline time on each unit; None where it does not run."""

    factors: tuple[float | None, ...]
    source: str


def synthetic_profile(network: Network, soc: SoC, *, most: int = MOST_GROUPS) -> Profile:
    """Return the network in at most `most` groups on the units of `soc`, from their rooflines.

    An operator takes the longer of its multiply-accumulates at the unit's rate and its bytes at the unit's
    bandwidth (half precision, whatever the network's element); the sum over the network is scaled to the
    total of Table 5 or 6 where the network is in it by name, else by the usual factor of that SoC. A group
    asks for `TRAFFIC` bytes where it reads or writes one, but never for more than the unit can move; a second
    unit moves the same bytes in its own time. Handing a tensor over costs the unit's fixed time plus the
    tensor's bytes at its rate, OUT and IN apart. Raises `ChipError` for a SoC whose units state no roofline,
    `ProfileError` for a network of which some group runs on no unit.
    """
    for unit in soc.units:
        if unit.macs_per_second is None or unit.gb_per_second is None:
            key = "macs_per_second" if unit.macs_per_second is None else "gb_per_second"
            raise ChipError(
                "is not stated; without it there is no synthetic profile, bring a measured one (--profile)",
                where=f"SoC {soc.name}",
                item=f"units.{unit.name}.{key}",
            )
    groups = layer_groups(network, soc.units, most=most)
    scale = ELEMENT_BYTES / element_bytes(network, ELEMENT_BYTES)
    alone = [[_roofline(network, group, unit, scale) for unit in soc.units] for group in groups]
    total = _total(network, soc, [sum(column) for column in zip(*alone, strict=True)])
    rows = [
        _group(network, group, soc, times, total, scale) for group, times in zip(groups, alone, strict=True)
    ]
    return Profile(network.name, soc.name, soc.unit_names, tuple(rows), total.source, synthetic=True)


def _roofline(network: Network, group: LayerGroup, unit: Unit, scale: float) -> float:
    """Return the milliseconds of a group, each of its operators bound by arithmetic or by memory."""
    assert unit.macs_per_second is not None
    assert unit.gb_per_second is not None
    seconds = 0.0
    for op in (network.operators[i] for i in group.operators):
        moved = scale * (moved_bytes(network, op) + op.weight_bytes)
        seconds += max(op.work / unit.macs_per_second, moved / (unit.gb_per_second * 1e9))
    if not seconds:  # only concats: their operands were written to their places before
        seconds = scale * group.activation_bytes / (unit.gb_per_second * 1e9)
    return seconds * 1e3


def _total(network: Network, soc: SoC, alone: list[float]) -> _Total:
    known = standalone(soc.name).get(network.name)
    if known is not None and len(known) == len(soc.units):
        table = 6 if soc.name == "snapdragon-865" else 5
        factors = tuple(None if ms is None else ms / own for ms, own in zip(known, alone, strict=True))
        return _Total(factors, f"synthetic: roofline, scaled to totals of HaX-CoNN's Table {table}")
    usual = SLOWER_THAN_ROOFLINE.get(soc.name)
    if usual is not None and len(usual) == len(soc.units):
        return _Total(usual, "synthetic: roofline, slowed down as other networks are on this SoC")
    return _Total((1.0,) * len(soc.units), "synthetic: roofline, not scaled to anything measured")


def _group(
    network: Network, group: LayerGroup, soc: SoC, alone: list[float], total: _Total, scale: float
) -> Group:
    ms = tuple(
        own * factor if factor is not None and group.runs_on(unit) else None
        for own, factor, unit in zip(alone, total.factors, soc.units, strict=True)
    )
    moved = scale * (group.activation_bytes + group.weight_bytes)
    first = next((u for u, own in enumerate(ms) if own is not None), None)
    counted: list[float | None] = [None] * len(ms)
    if first is not None:
        counted[first] = _requested(moved / (ms[first] or 1.0) / 1e6, soc.units[first].gb_per_second or 0.0)
    asked = estimate_bandwidth(ms, counted, [None] * len(ms))
    handed = scale * group.handed_bytes
    taken = scale * _entering(network, group)
    return Group(
        group.name,
        ms,
        tuple(min(gb, unit.gb_per_second or gb) for gb, unit in zip(asked, soc.units, strict=True)),
        tuple(_handing(handed, unit.out_ms, unit.out_gb_per_second) for unit in soc.units),
        tuple(_handing(taken, unit.in_ms, unit.in_gb_per_second) for unit in soc.units),
        layers=tuple(network.operators[op].name for op in group.operators),
        output="" if group.handed_on is None else network.tensors[group.handed_on].name,
    )


def _requested(once: float, reach: float) -> float:
    """Return the GB/s requested by reads and writes at `once` GB/s of single traffic; at most `reach`."""
    return reach * (1.0 - exp(-TRAFFIC * once / reach))


def _handing(size: float, fixed: float, gb_per_second: float | None) -> float:
    """Return the milliseconds to hand `size` bytes over; 0 for no bytes."""
    if not size:
        return 0.0
    return fixed + (0.0 if gb_per_second is None else size / (gb_per_second * 1e6))


def _entering(network: Network, group: LayerGroup) -> int:
    """Return the bytes a group takes over from the one before; network inputs come from memory anyway."""
    inside = 0
    for op in group.operators:
        inside |= network.writes[op]
    read = 0
    for op in group.operators:
        read |= network.reads[op]
    return sum(network.tensors[t].bytes for t in bits(read & ~inside & ~network.input_roots))
