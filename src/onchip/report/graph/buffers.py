"""What lies in the buffer while a tiled group runs: a piece of each tensor, and weights."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.plan import Group, Plan

__all__ = ["Buffer", "buffers"]


@dataclass(frozen=True, slots=True)
class Buffer:
    """One piece of the scratch: `rows` x `columns` x `channels` of a tensor, or weights.

    `what` counts: enters the group, inside it, leaves it, resident weights, weight tile, other.
    """

    what: int
    name: str
    bytes: int
    tensor: int | None = None
    rows: int = 0
    columns: int = 0
    channels: int = 0
    streamed: bool = False


def buffers(plan: Plan, group: Group) -> tuple[Buffer, ...]:
    return ()
