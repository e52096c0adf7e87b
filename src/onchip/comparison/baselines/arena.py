"""A linear arena with best fit, as in TFLite's interpreter, but of limited capacity.

Source: the allocation rule of tensorflow/lite/simple_memory_arena.cc.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Allocation", "Arena"]


@dataclass(frozen=True, slots=True, order=True)
class Allocation:
    """Bytes [address, address + size) of the arena, held by `item`."""

    address: int
    size: int
    item: int

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.address + self.size


class Arena:
    """Bytes [0, capacity), some of them held. Sizes are multiples of the alignment, so addresses are too."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._held: list[Allocation] = []
        self._by_item: dict[int, Allocation] = {}

    def __iter__(self) -> Iterator[Allocation]:
        """Yield the allocations by ascending address."""
        return iter(self._held)

    def __contains__(self, item: int) -> bool:
        return item in self._by_item

    def copy(self) -> Arena:
        """Return an arena with the same allocations."""
        other = Arena(self.capacity)
        other._held, other._by_item = self._held.copy(), self._by_item.copy()
        return other

    def fit(self, size: int) -> int | None:
        """Return the address for `size` bytes: the smallest gap that is large enough, the lowest of equals.

        The space behind the last allocation is used when no gap will do; None when that is too small as well.
        """
        best: tuple[int, int] | None = None
        top = 0
        for held in self._held:
            gap = held.address - top
            if gap >= size and (best is None or gap < best[0]):
                best = gap, top
            top = max(top, held.end)
        if best is not None:
            return best[1]
        return top if top + size <= self.capacity else None

    def hold(self, item: int, address: int, size: int) -> None:
        """Give these bytes, which must be free, to `item`."""
        held = Allocation(address, size, item)
        insort(self._held, held)
        self._by_item[item] = held

    def release(self, item: int) -> None:
        """Release the bytes of `item`."""
        self._held.remove(self._by_item.pop(item))
