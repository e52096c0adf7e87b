"""The rows that each sub-group makes: those that the next band of the escaping maps lacks, backwards.

There are as many bands as the longest escaping map has. A map that another one pulls ahead may be complete
earlier; the remaining sub-groups then make nothing new, but still refill the weights that the plan states.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

from onchip.base.errors import InputError
from onchip.run.tiled.shape import GroupShape

__all__ = ["Band", "bands_of"]


@dataclass(frozen=True, slots=True)
class Band:
    """Rows by tensor: `new` are made (or fetched) now, and all of [`low`, end of `new`) is in its buffer.

    `low` is the first row that this band or a later one reads: a reader may skip some bands and continue
    later.
    """

    new: dict[int, tuple[int, int]]
    low: dict[int, int]

    def held(self, tensor: int) -> int:
        """Return the rows of a tensor in its buffer."""
        return self.new[tensor][1] - self.low[tensor]


def bands_of(shape: GroupShape, rows: int, streamed: Collection[int]) -> list[Band]:
    """Return the sub-groups of one image, `rows` rows of the coarsest map each; `streamed` keep none between.

    Raises `InputError` when the strides of two paths disagree.
    """
    step = {t: scale * rows for t, scale in _scales(shape).items()}
    first = _made_first(shape)
    count = max((-(-shape.maps[t].rows // step[t]) for t in shape.escaping if t not in first), default=1)
    bands: list[Band] = []
    had = dict.fromkeys(shape.tensors, 0)
    for j in range(1, count + 1):
        end = dict(had)
        for t in shape.escaping:
            size = shape.maps[t].rows
            end[t] = max(end[t], size if t in first else min(size, j * step[t]))
        for chain in reversed(shape.chains):
            for operand, window in zip(chain.reads, chain.rows, strict=True):
                end[operand] = max(end[operand], window.end(end[chain.output]))
        low = dict(had)
        new: dict[int, tuple[int, int]] = {}
        for t in reversed(shape.tensors):
            for chain in shape.readers[t]:
                u, v = new[chain.output]
                for operand, window in zip(chain.reads, chain.rows, strict=True):
                    if operand == t and u < v:
                        low[t] = min(low[t], window.start(u))
            new[t] = (low[t] if t in streamed else had[t], end[t])
        bands.append(Band(new, low))
        had = end
    for band, after in reversed([*pairwise(bands)]):
        band.low.update((t, min(row, after.low[t])) for t, row in band.low.items())
    return bands


def _made_first(shape: GroupShape) -> set[int]:
    """Return maps of one row or read whole, and their sources: the first sub-group makes all of them."""
    found = {t for t in shape.tensors if shape.maps[t].rows == 1}
    for chain in reversed(shape.chains):
        found.update(t for t, window in zip(chain.reads, chain.rows, strict=True) if not window.stride)
        if chain.output in found:
            found.update(chain.reads)
    return found


def _scales(shape: GroupShape) -> dict[int, int]:
    """Return the rows of each map for one row of the coarsest map, from the strides between them."""
    links: dict[int, list[tuple[int, int, int]]] = {t: [] for t in shape.tensors}
    for chain in shape.chains:
        out = chain.output
        for operand, window in zip(chain.reads, chain.rows, strict=True):
            if not window.stride or 1 in (shape.maps[operand].rows, shape.maps[out].rows):
                continue
            links[operand].append((out, 1, window.stride))
            links[out].append((operand, window.stride, 1))
    scale: dict[int, int] = {}
    for start in shape.tensors:
        if start in scale:
            continue
        # As fractions of the first map's rows, then all over one denominator.
        ratio, stack = {start: (1, 1)}, [start]
        while stack:
            t = stack.pop()
            for other, times, by in links[t]:
                a, b = ratio[t][0] * times, ratio[t][1] * by
                found = (a // gcd(a, b), b // gcd(a, b))
                if ratio.setdefault(other, found) != found:
                    raise InputError(
                        "cannot be run in tiles: two paths through it have different strides",
                        item=f"group {shape.name}",
                    )
                if other not in scale:
                    scale[other] = 0
                    stack.append(other)
        common = 1
        for _, b in ratio.values():
            common = common * b // gcd(common, b)
        whole = {t: a * common // b for t, (a, b) in ratio.items()}
        divisor = gcd(*whole.values())
        scale |= {t: value // divisor for t, value in whole.items()}
    return scale
