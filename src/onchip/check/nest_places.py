"""The offsets of a nest's buffers in its scratch: first fit, in the best of three orders.

Each buffer lives from one leaf to another. An order places one after the other, each at the lowest offset
that is free for as long as it lives. The largest first waste little where lives differ little; where homes
nest, those that begin first, or end last, lie below those that come and go between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["Held", "offsets_of"]

Held = tuple[int, int, int]
"""The bytes of a buffer, and the first and the last leaf at which it lives."""


def _largest(held: Held) -> tuple[int, ...]:
    size, first, last = held
    return -size, first, last


def _earliest(held: Held) -> tuple[int, ...]:
    size, first, last = held
    return first, -last, -size


def _latest(held: Held) -> tuple[int, ...]:
    size, first, last = held
    return -last, -size, first


_ORDERS: tuple[Callable[[Held], tuple[int, ...]], ...] = (_largest, _earliest, _latest)


def offsets_of(buffers: Sequence[Held], leaves: int, need: int) -> list[int]:
    """Return the offset of every buffer: of the orders the first that ends lowest.

    `need` are the bytes that live at the worst moment: no order ends below.
    """
    best, extent = list[int](), -1
    for order in _ORDERS:
        found = _first_fit(buffers, leaves, order)
        end = max((at + size for at, (size, _, _) in zip(found, buffers, strict=True)), default=0)
        if extent < 0 or end < extent:
            best, extent = found, end
        if extent <= need:
            break
    return best


def _first_fit(buffers: Sequence[Held], leaves: int, key: Callable[[Held], tuple[int, ...]]) -> list[int]:
    found = [0] * len(buffers)
    there: list[list[tuple[int, int]]] = [[] for _ in range(leaves)]  # the taken ranges at every leaf
    for n in sorted(range(len(buffers)), key=lambda n: key(buffers[n])):
        size, first, last = buffers[n]
        at = 0
        for low, end in sorted({taken for some in there[first : last + 1] for taken in some}):
            if at + size <= low:
                break
            at = max(at, end)
        found[n] = at
        for taken in there[first : last + 1]:
            taken.append((at, at + size))
    return found
