"""Copies of a run of bytes whose length is known: byte by byte, by words, by vectors."""

from __future__ import annotations

from collections.abc import Iterator

from onchip.microcontroller.kernel_language import Kernel, Kind
from onchip.microcontroller.kernel_language.ir import Expr, as_expr

__all__ = ["chunks", "copied", "copied_by_vectors", "copied_by_words"]

WORD, VECTOR = 4, 16
"""Bytes."""


def copied(k: Kernel, row: Expr, o: Expr, count: int, behind: int = 0, *, reverse: bool = False) -> None:
    """Emit the copy of `count` bytes from `row` to `o`, `behind` bytes further."""
    for i in k.span(0, count, reverse=reverse, name="i"):
        k.RAMStore(o, i + behind, k.RAMLoad(row, i, Kind.BYTE, name="byte"))


def copied_by_words(k: Kernel, row: Expr, o: Expr, count: int, behind: int = 0) -> None:
    """Emit the copy between places that do not overlap, four bytes at a time, then two, then one."""
    whole = count - count % WORD
    for i in k.loop(0, whole, WORD, name="i") if whole >= VECTOR else range(0, whole, WORD):
        k.RAMStore(o, i + behind, k.RAMLoad(row, i, Kind.INT, name="four"), Kind.INT)
    if count & 2:
        k.RAMStore(o, whole + behind, k.RAMLoad(row, whole, Kind.HALF, name="two"), Kind.HALF)
    if count & 1:
        k.RAMStore(o, count - 1 + behind, k.RAMLoad(row, count - 1, Kind.BYTE, name="byte"))


def copied_by_vectors(k: Kernel, row: Expr, o: Expr, count: int, behind: int = 0) -> None:
    """Emit the copy between places that do not overlap, sixteen bytes at a time; few whole words by words."""
    if count < VECTOR and count % WORD == 0:
        copied_by_words(k, row, o, count, behind)
        return
    for c, some in chunks(k, count, VECTOR):
        sixteen = k.RAMLoad(row, c, Kind.VECTOR, name="sixteen", count=some)
        k.RAMStore(o, c + behind, sixteen, Kind.VECTOR, some)


def chunks(k: Kernel, count: int, size: int, begin: int = 0) -> Iterator[tuple[Expr, int | None]]:
    """Emit the loop over chunks from `begin`: their first, and how many if there is no whole chunk.

    The last chunk overlaps those before it where `count` is no multiple.
    """
    whole = count - (count - begin) % size
    if whole > begin:
        for c in k.loop(begin, whole, size, name="c"):
            yield c, None
    if whole < count:
        yield (as_expr(count - size), None) if count >= size else (as_expr(whole), count - whole)
