"""The bands of a tiled group: which rows of every tensor are made and read, sub-group by sub-group.

In sub-group j an escaping tensor must be complete up to row (j + 1) * scale * t. Here t is
`Tiling.rows`, and scale the number of rows of the tensor's map for one of those: the smallest whole numbers
that agree with all strides (`_scales`), as a rule 1 for the coarsest map. A backward pass over the group
gives for every tensor the row up to which it must be complete (`high`) and the first row that is read
(`low`). Held tensors make rows [high before, high); streamed ones do not keep the overlap and make
[low, high) again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from onchip.check.rules import broken
from onchip.network.access import Access
from onchip.network.windows import Window

__all__ = ["MOST_STEPS", "Band", "Bands", "bands_of"]

MOST_STEPS = 1 << 22
"""The most bands times tensors of a group: no real network has more, and more takes minutes."""

Band = tuple[Sequence[int], Sequence[int], Sequence[int]]
"""(high before, low, high) of every tensor, by its place in `Bands.tensors`."""


@dataclass(frozen=True)
class Bands:
    """A group's tensors in topological order, and how they are cut into bands.

    By place in `tensors`: `rows` of the map, rows of one band (`step`), its `readers` inside the group as
    (window, place of the tensor made), `escaping` if it leaves the group, `at_once` if the first sub-group
    makes all of it, and `streamed`. `count` is the number of bands of an image.
    """

    tensors: tuple[int, ...]
    rows: tuple[int, ...]
    step: tuple[int, ...]
    readers: tuple[tuple[tuple[Window, int], ...], ...]
    escaping: tuple[bool, ...]
    at_once: tuple[bool, ...]
    streamed: tuple[bool, ...]
    count: int

    def __iter__(self) -> Iterator[Band]:
        """Yield the rows of every sub-group of one image."""
        everyone = range(len(self.tensors) - 1, -1, -1)
        before = [0] * len(self.tensors)
        for j in range(self.count):
            high = [0] * len(self.tensors)
            for x in everyone:
                size = self.rows[x]
                due = size if self.at_once[x] else min(size, (j + 1) * self.step[x])
                high[x] = max(
                    due if self.escaping[x] else 0,
                    max((window.end(high[y]) for window, y in self.readers[x]), default=0),
                )
            low, first = before.copy(), before.copy()  # `first` is the first row that is made
            for x in everyone:
                for window, y in self.readers[x]:
                    if first[y] < high[y]:
                        low[x] = min(low[x], window.start(first[y]))
                if self.streamed[x]:
                    first[x] = low[x]
            yield before, low, high
            before = high

    def needs(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return by tensor id the most rows [low, high) of any sub-group, and the rows that are repeated.

        Only streamed tensors repeat rows; the number is the sum over all sub-groups of an image.
        """
        most, again = [0] * len(self.tensors), [0] * len(self.tensors)
        for before, low, high in self:
            for x in range(len(self.tensors)):
                most[x] = max(most[x], high[x] - low[x])
                if self.streamed[x]:
                    again[x] += before[x] - low[x]
        names = self.tensors
        return dict(zip(names, most, strict=True)), dict(zip(names, again, strict=True))


def bands_of(
    pieces: Sequence[Access],
    rows: Mapping[int, int],
    escaping: Collection[int],
    streamed: Collection[int],
    band: int,
    group: str,
) -> Bands:
    """Return the bands of a group whose `pieces` come in topological order, `band` base rows each.

    `rows` are those of every tensor's map. Raises `Broken` (`group-unproved`) when strides along two paths
    contradict each other, or for more than `MOST_STEPS` bands times tensors.
    """
    written = [t for piece in pieces for t in piece.writes]
    external = dict.fromkeys(t for piece in pieces for t in piece.reads if t not in set(written))
    tensors = (*external, *written)
    place = {t: i for i, t in enumerate(tensors)}
    readers: list[list[tuple[Window, int]]] = [[] for _ in tensors]
    for piece in pieces:
        for operand in piece.operands:
            readers[place[operand.tensor]] += [(operand.rows, place[y]) for y in piece.writes]
    sizes = tuple(rows[t] for t in tensors)
    scales = _scales(sizes, readers, group)
    at_once = [size == 1 for size in sizes]
    for x in range(len(tensors) - 1, -1, -1):
        for window, y in readers[x]:
            # A map of one row, or one that is read whole, needs all rows of its inputs first, and they need
            # all rows of theirs.
            at_once[x] = at_once[x] or at_once[y] or not window.stride
    leaves = tuple(t in escaping for t in tensors)
    count = max(
        (
            -(-size // (scale * band))
            for size, scale, out, once in zip(sizes, scales, leaves, at_once, strict=True)
            if out and not once
        ),
        default=1,
    )
    if count * len(tensors) > MOST_STEPS:
        broken("group-unproved", f"group {group} runs in an absurd {count:,} bands")
    return Bands(
        tensors,
        sizes,
        tuple(scale * band for scale in scales),
        tuple(map(tuple, readers)),
        leaves,
        tuple(at_once),
        tuple(x in streamed for x in tensors),
        count,
    )


def _scales(
    rows: Sequence[int], readers: Sequence[Sequence[tuple[Window, int]]], group: str
) -> tuple[int, ...]:
    """Return the rows of every map per base row: the smallest whole numbers that agree with every stride.

    Maps of one row constrain nothing; parts connected only through them are scaled separately.
    """
    beside: list[list[tuple[int, Fraction]]] = [[] for _ in rows]
    for x, read in enumerate(readers):
        for window, y in read:
            if rows[x] > 1 and rows[y] > 1 and window.stride:
                beside[x].append((y, Fraction(1, window.stride)))
                beside[y].append((x, Fraction(window.stride)))
    scales = [Fraction(0)] * len(rows)
    for start in range(len(rows)):
        if scales[start]:
            continue
        scales[start] = Fraction(1)
        part = [start]
        for x in part:  # grows
            for y, factor in beside[x]:
                if not scales[y]:
                    scales[y] = scales[x] * factor
                    part.append(y)
                elif scales[y] != scales[x] * factor:
                    broken("group-unproved", f"in group {group} strides along two paths do not fit together")
        whole = lcm(*(scales[x].denominator for x in part))
        for x in part:
            scales[x] *= whole
    return tuple(map(int, scales))
