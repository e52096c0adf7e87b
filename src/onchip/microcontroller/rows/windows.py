"""Windows as tables, and the distances from which a row may lie over a row that it is made of."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.microcontroller.rows.graph import Rows

__all__ = ["all_rows", "beside", "by_element", "by_pixel", "clipped", "first_read", "same_rows"]


def clipped(
    size: int, made: int, kernel: int, stride: int, before: int, dilation: int = 1
) -> tuple[Rows, ...]:
    """Return the window of each of `made` places: those of `size` places that its kernel covers."""
    span = (kernel - 1) * dilation + 1
    found = []
    for at in range(made):
        first = at * stride - before
        low, high = max(first, 0), min(first + span, size)
        found.append((low, high) if low < high else (0, 0))
    return tuple(found)


def same_rows(made: int) -> tuple[Rows, ...]:
    """Return windows of one row each, with the same number."""
    return tuple((row, row + 1) for row in range(made))


def all_rows(size: int, made: int) -> tuple[Rows, ...]:
    """Return windows of the whole map."""
    return ((0, size),) * made


def first_read(columns: Sequence[Rows]) -> tuple[int | None, ...]:
    """Return, for each column and one beyond, the first that it or a later one reads; None for none."""
    found: list[int | None] = [None]
    for low, high in reversed(columns):
        known = found[-1]
        if low < high:
            found.append(low if known is None else min(low, known))
        else:
            found.append(known)
    return tuple(reversed(found))


def by_pixel(columns: Sequence[Rows], made: int, read: int) -> int:
    """Return the distance of a kernel whose every element reads all channels of its window: convolutions.

    It makes pixels of `made` bytes from pixels of `read` bytes, left to right, channel after channel.
    """
    return _distance(columns, made, read, made - 1)


def by_element(columns: Sequence[Rows], made: int, read: int, multiplier: int = 1) -> int:
    """Return the distance of a kernel whose elements read their own channel alone, `multiplier` of each.

    With more than one, what is written gets ahead of what is read by each channel of the pixel.
    """
    return _distance(columns, made, read, (multiplier - 1) * read)


def _distance(columns: Sequence[Rows], made: int, read: int, within: int) -> int:
    first = first_read(columns)
    found = None
    for x in range(len(columns)):
        for end, later in ((x * made + within, first[x]), ((x + 1) * made, first[x + 1])):
            if later is not None:
                found = end - later * read if found is None else max(found, end - later * read)
    return beside(len(columns) * made) if found is None else found


def beside(size: int) -> int:
    """Return the distance of a row of `size` bytes that shares none."""
    return size
