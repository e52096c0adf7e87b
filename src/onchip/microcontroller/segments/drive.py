"""The order in which a fused group makes its lines: everything that a band needs first, then the band.

The same rule orders a group's stages along the rows, and the layers of one stage along the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from onchip.network.windows import Range

__all__ = ["Maker", "Turn", "bands_of", "turns"]


@dataclass(frozen=True, slots=True)
class Maker:
    """A maker of `bands` of tensor `makes`, in order; `needs[i][b]` are the lines of reads[i] for band b.

    A band that only adds up makes no line: (n, n).
    """

    makes: int
    bands: tuple[Range, ...]
    reads: tuple[int, ...] = ()
    needs: tuple[tuple[Range, ...], ...] = ()


@dataclass(slots=True)
class Turn:
    """One band's turn: `maker` sweeps `band`, and `live` lines of its tensor are then live."""

    maker: int
    band: int
    live: int = field(default=0)


def bands_of(lines: Range, height: int) -> tuple[Range, ...]:
    """Return the lines cut into bands of `height`; the last may be smaller."""
    first, end = lines
    return tuple((at, min(at + height, end)) for at in range(first, end, height))


def turns(makers: Sequence[Maker]) -> Iterator[Turn]:
    """Yield every band's turn in order, until the last maker is done.

    A line is live from when it is made until no later band reads it.
    """
    by_tensor = {maker.makes: i for i, maker in enumerate(makers)}
    done = [0] * len(makers)
    lowest = [_lowest(makers, maker.makes) for maker in makers]
    # An explicit stack: a group may have more stages than Python allows nested calls.
    stack = [(len(makers) - 1, len(makers[-1].bands))]
    while stack:
        i, upto = stack[-1]
        maker, band = makers[i], done[i]
        if band >= upto:
            stack.pop()
            continue
        asked = _missing(makers, by_tensor, done, maker, band)
        if asked is not None:
            stack.append(asked)
            continue
        first, end = maker.bands[band]
        first_needed = min((low[done[reader]] for reader, low in lowest[i]), default=first)
        done[i] += 1
        yield Turn(i, band, end - min(first, first_needed) if end > first else 0)


def _missing(
    makers: Sequence[Maker], by_tensor: dict[int, int], done: list[int], maker: Maker, band: int
) -> tuple[int, int] | None:
    """Return the first maker, and how many of its bands, that must have their turn before this band."""
    for tensor, needs in zip(maker.reads, maker.needs, strict=True):
        source = by_tensor.get(tensor)
        first, end = needs[band]
        if source is None or first >= end:
            continue
        bands = makers[source].bands
        made = bands[done[source] - 1][1] if done[source] else bands[0][0]
        if made < end:
            upto = done[source]
            while bands[upto][1] < end:
                upto += 1
            return source, upto + 1
    return None


def _lowest(makers: Sequence[Maker], tensor: int) -> list[tuple[int, list[int]]]:
    """Return, for every reader of the tensor, the first line that a later band reads, by bands done."""
    found = []
    for i, maker in enumerate(makers):
        for read, needs in zip(maker.reads, maker.needs, strict=True):
            if read == tensor:
                low = [1 << 60] * (len(needs) + 1)
                for band in range(len(needs) - 1, -1, -1):
                    first, end = needs[band]
                    low[band] = min(low[band + 1], first) if first < end else low[band + 1]
                found.append((i, low))
    return found
