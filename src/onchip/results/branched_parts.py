"""The parts of a network in modules of branches."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.base.figures import figure
from onchip.planners.modules.regions import Region
from onchip.planners.modules.table import Row, SkipRow
from onchip.plans import Section

__all__ = ["BranchedModule", "Layer", "LongSkip", "Unmerged"]


@dataclass(frozen=True, slots=True)
class Layer:
    """The bytes that one layer of a module requires and has (Algorithm 6; Figure 10).

    `branch` are the numbers of its branches in the processing order, outermost first and from 1; empty for
    the merge. `forwarded` states that its output stays on chip for the next layer.
    """

    operator: str = figure(key="operator")
    branch: tuple[int, ...] = figure(key="branch")
    required_bytes: int = figure(key="required_kb", unit="kb")
    available_bytes: int = figure(key="available_kb", unit="kb")
    forwarded: bool = figure(key="forwarded")


@dataclass(frozen=True, slots=True)
class BranchedModule:
    """One module: its row of the table, the processing of its branches, and its memory regions."""

    row: Row
    section: Section
    regions: tuple[Region, ...]
    layers: tuple[Layer, ...]


@dataclass(frozen=True, slots=True)
class LongSkip:
    """A connection around `layers` layers, too many for a module: it goes through DRAM.

    `cost` are the bytes moved; it is part of the rows of the sections where they cross.
    """

    tensor: str = figure(key="tensor")
    reader: str = figure(key="reader")
    layers: int = figure(key="layers")
    cost: SkipRow = figure()


@dataclass(frozen=True, slots=True)
class Unmerged:
    """A concat or sum that closes no module, with the reason."""

    operator: str = figure(key="merge")
    reason: str = figure(key="reason")
