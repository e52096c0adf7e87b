"""The resource map of a plan's sections: the contents of bytes over time, from the program alone.

The simple method (Kim et al., Figures 6 to 8) names a module's input and output feature maps (MIFM and MOFM),
which its branches share, and the other bytes of one layer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from onchip.base.figures import figure
from onchip.check.replay import Released, Reserved, events_of
from onchip.network import Network, mask
from onchip.planners.modules.roles import TensorRole, tensor_roles
from onchip.plans import Plan, Section

__all__ = ["Region", "RegionKind", "regions_of"]

RegionKind = TensorRole | Literal["feature map", "working"]
"""A tensor's role in the module; any other tensor; a layer's weights and working memory."""


@dataclass(frozen=True, slots=True)
class Region:
    """Bytes [address, address + bytes) that hold tensor or workspace `name` in instructions [first, end)."""

    name: str = figure(key="name")
    kind: RegionKind = figure(key="kind")
    address: int = figure(key="address")
    bytes: int = figure(key="bytes")
    first: int = figure(key="first")
    end: int = figure(key="end")


def regions_of(plan: Plan) -> tuple[tuple[Region, ...], ...]:
    """Return the regions of each section, by their beginning; earlier ones begin with the section.

    In a stretch outside any module every tensor is a feature map. Sizes are rounded up to the alignment, as
    they count in the scratchpad. Raises `IllegalPlan`.
    """
    held, at, live, found = _lifetimes(plan), 0, list[Region](), []
    for section in plan.sections:
        while at < len(held) and held[at].first < section.end:
            live.append(held[at])
            at += 1
        live = [region for region in live if region.end > section.first]
        kinds = _kinds(plan.network, section)
        found.append(
            tuple(
                replace(
                    region,
                    kind="working" if region.kind == "working" else kinds.get(region.name, "feature map"),
                    first=max(region.first, section.first),
                    end=min(region.end, section.end),
                )
                for region in live
            )
        )
    return tuple(found)


def _lifetimes(plan: Plan) -> list[Region]:
    """Return every range of the program, by its first instruction."""
    live: dict[Reserved, Region] = {}
    found = []
    for event in events_of(plan):
        if isinstance(event, Reserved):
            kind: RegionKind = "feature map" if event.tensor is not None else "working"
            place = event.address, event.bytes, event.index
            live[event] = Region(event.name, kind, *place, len(plan.program))
        elif isinstance(event, Released):
            found.append(replace(live.pop(event.range), end=event.index + 1))
    return sorted([*found, *live.values()], key=lambda r: (r.first, r.address))


def _kinds(net: Network, section: Section) -> dict[str, RegionKind]:
    """Return the roles of a module's tensors other than plain feature maps."""
    if section.merge is None:
        return {}
    merge = net.operator_id[section.merge]
    inside = mask(net.operator_id[name] for branch in section.branches for name in branch) | 1 << merge
    start = None if section.start is None else net.root[net.tensor_id[section.start]]
    return {net.tensors[t].name: role for t, role in tensor_roles(net, inside, merge, start).items()}
