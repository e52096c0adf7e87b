"""The turns of a loop along which windows slide, found index by index: no formula of ends or of scales.

For every turn: the indices that each operator makes, and those that each buffer has there and fetches.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from onchip.network.axes import GroupAxes, Use

__all__ = ["Band", "Place", "bands", "seen"]

MOST_SCALE = 5000
UseAt = tuple[int, int]


@dataclass(frozen=True)
class Place:
    """A buffer with its home in the loop: its own uses, and all that find it there; whether it is a ring."""

    buffer: int
    uses: Sequence[UseAt]
    shared: Sequence[UseAt]
    ring: bool


@dataclass
class Band:
    """One turn. Places are known by their number."""

    made: dict[int, range] = field(default_factory=dict)
    side: dict[int, int] = field(default_factory=dict)
    there: dict[int, range] = field(default_factory=dict)
    fetched: dict[int, range] = field(default_factory=dict)
    redone: set[int] = field(default_factory=set)


def seen(use: Use, side: int, index: int) -> range:
    """The indices along a side, existing or not, that an operator at an index along its axis needs."""
    window = use.slides[side] if use.slides else None
    if window is None:
        return range(index, index + 1)
    first = (index * window.stride - window.before) // window.per
    return range(first, first + window.span)


def along(use: Use, axis: int) -> list[int]:
    """The sides that a use follows."""
    slides = [w is not None and w.axis == axis for w in use.slides]
    return [n for n, a in enumerate(use.axes) if a == axis or (slides and slides[n])]


def bands(
    axes: GroupAxes,
    over: Mapping[int, int],
    tile: int,
    places: Sequence[Place],
    out: Collection[int],
) -> list[Band] | None:
    """The turns of a loop; None if no window slides in it. `over` is in the order in which operators run.

    `out` are the buffers that leave. Raises `ValueError` if strides do not agree.
    """
    links: list[tuple[Hashable, int, int, int, Use]] = []  # what is read, side, size, reader, its use
    cut: dict[int, int] = {}
    for at, axis in over.items():
        write = axes.operators[at].writes
        for side in along(write, axis):
            for r, other in over.items():
                for use in axes.operators[r].uses[:-1]:
                    if use.buffer == write.buffer and side in along(use, other):
                        links.append((at, side, axes.operators[at].axes[axis], r, use))
            cut |= {n: side for n, place in enumerate(places) if place.buffer == write.buffer}
    for n, place in enumerate(places):
        if axes.buffers[place.buffer].maker is None:
            uses = [(at, axes.operators[at].uses[k]) for at, k in place.uses]
            common = set.intersection(*(set(along(use, over[at])) for at, use in uses))
            if common:
                [cut[n]] = common
                size = axes.buffers[place.buffer].sides[cut[n]]
                links += [(("place", n), cut[n], size, at, use) for at, use in uses]
    if not any(use.slides and use.slides[side] for _, side, _, _, use in links):
        return None
    scale = scales([*over], links)
    size = {at: axes.operators[at].axes[axis] for at, axis in over.items()}
    readers = {at: [link for link in links if link[0] == at] for at in over}
    drivers = [at for at in over if not readers[at] or _wanted_elsewhere(axes, at, over, out)]
    gone, turns = dict.fromkeys(over, 0), list[Band]()
    fetched = dict.fromkeys(range(len(places)), 0)
    while any(len(turns) * scale[at] * tile < size[at] for at in drivers):
        band, before = Band(), dict(gone)
        for at in reversed(over):
            if at in drivers:
                gone[at] = max(gone[at], min(size[at], (len(turns) + 1) * scale[at] * tile))
            gone[at] = max(gone[at], _end(readers[at], gone))
            home = next(
                (n for n, p in enumerate(places) if (at, len(axes.operators[at].uses) - 1) in p.shared), None
            )
            first = before[at]
            if readers[at] and home is not None and not places[home].ring:
                need = _least(readers[at], band.made, gone[at])
                first = min(need, before[at]) if at in drivers else need
                band.redone.add(home)
            band.made[at] = range(first, gone[at])
        for n, side in cut.items():
            band.side[n] = side
            maker = axes.buffers[places[n].buffer].maker
            if maker is not None:
                band.there[n] = band.fetched[n] = band.made[maker]
                if places[n].buffer in out:  # what is made again was stored before
                    band.fetched[n] = range(max(band.made[maker].start, before[maker]), band.made[maker].stop)
                continue
            mine = [link for link in links if link[0] == ("place", n)]
            old, fetched[n] = fetched[n], max(fetched[n], _end(mine, gone))
            band.there[n] = band.fetched[n] = range(_least(mine, band.made, fetched[n]), fetched[n])
            if places[n].ring:
                band.fetched[n] = range(old, fetched[n])
        turns.append(band)
    for n in cut:
        if places[n].ring:
            maker = axes.buffers[places[n].buffer].maker
            mine = [link for link in links if link[0] == (("place", n) if maker is None else maker)]
            for j, band in enumerate(turns):  # what this turn or a later one reads, and what is new
                new = band.fetched[n]
                low = min([new.start] + [_least(mine, later.made, new.stop) for later in turns[j:]])
                band.there[n] = range(low, new.stop)
    return turns


def _end(links: Sequence[tuple[Hashable, int, int, int, Use]], gone: Mapping[int, int]) -> int:
    """One past the last index that readers need who went so far."""
    ends = [seen(use, side, o).stop for _, side, _, r, use in links for o in range(gone[r])]
    return max(0, min(links[0][2], max(ends))) if ends else 0


def _least(links: Sequence[tuple[Hashable, int, int, int, Use]], made: Mapping[int, range], most: int) -> int:
    """The first index that readers need in a turn; `most` if they need none."""
    for _, side, _, r, use in links:
        needs = [seen(use, side, o) for o in made.get(r, ())]
        if any(one.stop > 0 for one in needs):  # not all of it lies before the first index
            most = min(most, max(0, needs[0].start))
    return most


def _wanted_elsewhere(axes: GroupAxes, at: int, over: Mapping[int, int], out: Collection[int]) -> bool:
    buffer = axes.operators[at].writes.buffer
    users = [r for r, cut in enumerate(axes.operators) for use in cut.uses if use.buffer == buffer]
    return buffer in out or any(r not in over for r in users)


def scales(order: Sequence[int], links: Sequence[tuple[Hashable, int, int, int, Use]]) -> dict[Hashable, int]:
    """The least whole numbers by which operators and places go on together, by trying one after the other."""
    steps = []
    for key, side, _, reader, use in links:
        window = use.slides[side] if use.slides else None
        steps.append((key, reader, window.stride if window else 1, window.per if window else 1))
    found: dict[Hashable, int] = {}
    for first in order:
        if first not in found:
            for base in range(1, MOST_SCALE):
                part = _spread(first, base, steps)
                if part is not None:
                    found |= part
                    break
            else:
                raise ValueError("no whole numbers")
    return found


def _spread(
    first: int, base: int, steps: Sequence[tuple[Hashable, int, int, int]]
) -> dict[Hashable, int] | None:
    """What follows from one scale; None if that takes fractions."""
    part: dict[Hashable, int] = {first: base}
    while True:
        before = len(part)
        for made, reader, stride, per in steps:
            if made in part and reader in part and part[made] * per != part[reader] * stride:
                raise ValueError("strides do not agree")
            for known, other, up, down in ((made, reader, per, stride), (reader, made, stride, per)):
                if known in part and other not in part:
                    if part[known] * up % down:
                        return None
                    part[other] = part[known] * up // down
        if len(part) == before:
            return part
