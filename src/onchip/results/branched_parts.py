"""What a network in modules of branches consists of."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.base.figures import figure
from onchip.planners.modules.regions import Region
from onchip.planners.modules.table import Row, SkipRow
from onchip.plans import Section

__all__ = ["BranchedModule", "Layer", "LongSkip", "Unmerged"]


@dataclass(frozen=True, slots=True)
class Layer:
    """What one layer of a module requires beside what there is, in bytes (Algorithm 6; Figure 10).

    `branch` are the places of its branches in the processing order, outermost first and from 1; empty for the
    merge. `forwarded` says that its output stays on chip for the next layer.
    """

    operator: str = figure(key="operator")
    branch: tuple[int, ...] = figure(key="branch")
    required_bytes: int = figure(key="required_kb", unit="kb")
    available_bytes: int = figure(key="available_kb", unit="kb")
    forwarded: bool = figure(key="forwarded")


@dataclass(frozen=True, slots=True)
class BranchedModule:
    """One module: its row of the table, how its branches run, and where everything lies."""

    row: Row
    section: Section
    regions: tuple[Region, ...]
    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class LongSkip:
    """A connection around `layers` layers, too many for a module: it goes through DRAM.

    `cost` is what that moves; it is part of the rows of the sections where it happens.
    """

    tensor: str = figure(key="tensor")
    reader: str = figure(key="reader")
    layers: int = figure(key="layers")
    cost: SkipRow = figure()


@dataclass(frozen=True, slots=True)
class Unmerged:
    """A concat or sum that closes no module, and why."""

    operator: str = figure(key="merge")
    reason: str = figure(key="reason")
