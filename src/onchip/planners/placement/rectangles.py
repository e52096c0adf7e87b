"""The objects of the address stage: rectangles of time and bytes, moves that cut them, and the pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Piece", "Rectangle", "Relocation", "relocation_bytes"]


@dataclass(frozen=True, slots=True)
class Rectangle:
    """One residency: `size` bytes held in steps [start, end).

    `item` is the caller's own id; rectangles with the same `item` are one tensor. An operator's scratch is
    not `movable`. `uses` are the steps that need it, `start` and `end - 1` among them; without any, every
    step does. `copied`: its bytes are in DRAM, or will be written there anyway, so that moving it costs one
    reload and no write. `cost` is the bytes of one transfer, by default `size`. `offset` is the address that
    every piece of it must have, or None. `heirs` are tensors of the same size and cost that take the place
    over, each (first step, item, copied): written over the previous one, at the step that reads that for the
    last time.
    """

    item: int
    start: int
    end: int
    size: int
    uses: tuple[int, ...] = ()
    copied: bool = False
    movable: bool = True
    cost: int | None = None
    offset: int | None = None
    heirs: tuple[tuple[int, int, bool], ...] = ()

    def holder(self, after: int) -> tuple[int, bool]:
        """Return the item that is there after that step, and whether it has a copy."""
        holder = self.item, self.copied
        for first, item, copied in self.heirs:
            if first <= after:
                holder = item, copied
        return holder

    @property
    def transfer(self) -> int:
        """Bytes of one write or one reload."""
        return self.size if self.cost is None else self.cost

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """The possible moves: evicted after one of two successive uses, reloaded for the other."""
        if not self.movable:
            return ()
        return tuple(pairwise(self.uses or range(self.start, self.end)))


@dataclass(frozen=True, slots=True)
class Relocation:
    """Evict rectangle `rectangle` (an index) after step `after` and reload it before step `before`."""

    rectangle: int
    after: int
    before: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a rectangle, [start, end) in steps, at one address. An unmoved rectangle is one piece."""

    rectangle: int
    start: int
    end: int
    address: int


def relocation_bytes(rectangles: Sequence[Rectangle], moves: Iterable[Relocation]) -> int:
    """Return the DRAM bytes of some relocations: a reload each, and a write per tensor that has no copy yet.

    Rectangles with the same movable `item` are one tensor: it is written once.
    """
    total, written = 0, set()
    for m in moves:
        rectangle = rectangles[m.rectangle]
        item, copied = rectangle.holder(m.after)
        total += rectangle.transfer
        if not copied and item not in written:
            written.add(item)
            total += rectangle.transfer
    return total
