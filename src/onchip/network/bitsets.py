"""Sets of small ids as bits of an `int`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

__all__ = ["bits", "mask"]

_WORD, _FEW = 64, 8
"""Bits of one word of a large set, and the most ids that are set one by one."""


def bits(bitset: int) -> Iterator[int]:
    """Yield the ids in a bitset, ascending."""
    if bitset.bit_length() > _WORD and bitset.bit_count() > _FEW:
        # Word by word: removing one bit from the whole set would copy the set.
        words = memoryview(
            bitset.to_bytes(-(-bitset.bit_length() // _WORD) * _WORD // 8, sys.byteorder)
        ).cast("Q")
        for place, word in enumerate(words if sys.byteorder == "little" else reversed(words)):
            base = place * _WORD - 1
            while word:
                low = word & -word
                yield base + low.bit_length()
                word ^= low
        return
    while bitset:
        low = bitset & -bitset
        yield low.bit_length() - 1
        bitset ^= low


def mask(ids: Iterable[int]) -> int:
    """Return the bitset of some ids."""
    ids = tuple(ids)
    if len(ids) > _FEW:
        room = bytearray(max(ids) // 8 + 1)
        for i in ids:
            room[i >> 3] |= 1 << (i & 7)
        return int.from_bytes(room, "little")
    result = 0
    for i in ids:
        result |= 1 << i
    return result
