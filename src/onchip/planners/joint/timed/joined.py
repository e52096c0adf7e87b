"""Two nests of neighbouring groups as one nest of both, with which the search for a nest of both begins.

What the first makes and the second reads stays inside, and lies around both. So it takes about as long as the
two groups take, less what need not cross any more; if it does not fit, the search makes it smaller. A loop of
the first and one of the second may become one: then what goes from one to the other need not be there whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from onchip.network.axes import GroupAxes
from onchip.plans import Leaf, Loop, Nest, Ways
from onchip.plans.nest import COUNTED, Numbers

__all__ = ["joined", "seamed"]


def joined(first: Nest, second: Nest, axes: GroupAxes, parts: Collection[GroupAxes]) -> Nest | None:
    """Return the nests of two groups behind each other, `axes` being those of both together, and `parts` each
    one's own; None where an operator has other axes, or other buffers, together than alone.
    """
    alone = {cut.name: cut.axes for part in parts for cut in part.operators}
    if any(cut.axes != alone.get(cut.name) for cut in axes.operators):
        return None
    sides_of = {b.name: b.sides for b in axes.buffers}  # a view has its own where what it looks at is outside
    if any(sides_of.get(b.name) != b.sides for part in parts for b in part.buffers):
        return None
    users: dict[str, set[str]] = {}
    for cut in axes.operators:
        for use in cut.uses:
            users.setdefault(axes.buffers[use.buffer].name, set()).add(cut.name)
    sides = [{cut.name for cut in part.operators} for part in parts]
    both = {name for name, names in users.items() if all(names & side for side in sides)}
    made = {b.name for b in axes.buffers if b.maker is not None} & both
    around = [name for name in dict.fromkeys((*first.keep, *second.keep)) if name not in made]
    shared = made | (both & set(around))
    body = tuple(_without(item, shared) for item in (*first.body, *second.body))
    copies = {**dict(second.ways.copies), **dict(first.ways.copies)}
    return Nest(body, tuple(around), Ways(tuple((n, copies[n]) for n in around if n in copies)))


def seamed(nest: Nest, first: int) -> Iterator[Nest]:
    """Yield the nests in which a loop among the `first` items and one behind them are one loop.

    It stands where either of them stood, in the tile of either. Not all of these are legal.
    """
    for n, one in enumerate(nest.body[:first]):
        for m, other in enumerate(nest.body[first:], first):
            if not (isinstance(one, Loop) and isinstance(other, Loop)):
                continue
            keep = tuple(dict.fromkeys((*one.keep, *other.keep)))
            ways = Ways(*(_both(getattr(one.ways, key), getattr(other.ways, key)) for key in COUNTED))
            ring = tuple(dict.fromkeys((*one.ring, *other.ring)))
            for tile in sorted({one.tile, other.tile}):
                both = Loop((*one.over, *other.over), tile, (*one.body, *other.body), keep, ring, ways)
                for at in (n, m):
                    body = [
                        both if k == at else item
                        for k, item in enumerate(nest.body)
                        if k in (at,) or k not in (n, m)
                    ]
                    yield replace(nest, body=tuple(body))


def _both(one: Numbers, other: Numbers) -> Numbers:
    return tuple({**dict(other), **dict(one)}.items())


def _without(item: Loop | Leaf, names: Collection[str]) -> Loop | Leaf:
    """Return an item of which no body keeps some names."""
    if isinstance(item, Leaf):
        return item if item.over not in names else replace(item, over=None)
    ways = Ways(*(tuple(one for one in getattr(item.ways, key) if one[0] not in names) for key in COUNTED))
    return replace(
        item,
        body=tuple(_without(inner, names) for inner in item.body),
        keep=tuple(name for name in item.keep if name not in names),
        ring=tuple(name for name in item.ring if name not in names),
        ways=ways,
    )
