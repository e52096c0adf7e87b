"""The bytes that an execution's copies counted: of the whole program, and of each group in tiles."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.plans import Moved

__all__ = ["BytesMoved", "GroupMoved"]


@dataclass(frozen=True, slots=True)
class BytesMoved:
    """Bytes that crossed between scratchpad and DRAM, counted by the copies; at the plan's sizes.

    `weights` are counted by copies where a group runs in tiles; elsewhere they are the bytes that the plan
    lets a run fetch. `between` are the bytes that moves copied from one on-chip memory to another.
    """

    compulsory: int
    reload: int
    spill: int
    weights: int = 0
    between: tuple[Moved, ...] = ()

    @property
    def traffic(self) -> int:
        """The figure that the plan calls `traffic_bytes`."""
        return self.reload + self.spill


@dataclass(frozen=True, slots=True)
class GroupMoved:
    """One group, executed in tiles: crossing bytes, as its copies counted and as the plan states them.

    Both are at the plan's sizes. `recomputed` is the share of the `elements` made that had been made before.
    A group in bands, blocks or boxes runs as a nest: stated is what its tiles move, and `why` has the reasons
    (names of `onchip.check.as_nests.DIFFERENCES`) for what the nest does otherwise.
    """

    name: str
    subgroups: int
    counted_bytes: int
    stated_bytes: int
    weight_bytes: int
    elements: int
    recomputed: float
    why: tuple[str, ...] = ()
