"""Copies of a nest's buffers, and the channels through which they come and go: legal or refused.

A buffer with one copy shares the scratch; one with two or more owns so many slots as long as the group runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from onchip.check.nest_homes import Home
from onchip.check.nest_sizes import Sizes
from onchip.check.parts import up
from onchip.check.rules import broken
from onchip.network.axes import GroupAxes
from onchip.plans import Loop, Nest, Ways

__all__ = ["MOST_COPIES", "give_ways", "owned_bytes", "prove_spilled"]

MOST_COPIES = 64
"""The most slots of one buffer."""

Where = tuple[int, ...]


def give_ways(group: str, nest: Nest, axes: GroupAxes, homes: Sequence[Home]) -> None:
    """Note in `homes` the copies and channels that a nest states. Raises `Broken` by the rule nest-copies."""
    for items, keep, ways in _bodies(nest, ()):
        for what, given in (("copies", ways.copies), ("loads", ways.loads), ("stores", ways.stores)):
            for name, number in given:
                found = [h for h in homes if h.body == items and axes.buffers[h.buffer].name == name]
                if name not in keep or not found:
                    broken(
                        "nest-copies",
                        f"a body of group {group} states {what} of {name}, and does not keep it",
                    )
                if what == "copies" and not 1 <= number <= MOST_COPIES:
                    broken(
                        "nest-copies", f"group {group} keeps {number} copies of {name}: 1 to {MOST_COPIES}"
                    )
                for home in found:
                    if what == "copies":
                        home.copies = number
                    elif what == "loads":
                        home.load = number
                    else:
                        home.store = number


def prove_spilled(group: str, axes: GroupAxes, homes: Sequence[Home], sizes: Sizes) -> None:
    """Refuse copies of partial sums where the next fill may be the same box.

    Its fetch would stand before the store that it needs. Raises `Broken` by the rule nest-copies.
    """
    for home in homes:
        buffer = axes.buffers[home.buffer]
        if home.copies < 2 or buffer.maker is None:
            continue
        cut = axes.operators[buffer.maker]
        sums = [turn for turn in home.above if turn.over[buffer.maker] in cut.sums]
        if not any(sizes.entries([turn]) > 1 for turn in sums):
            continue
        last = home.above[-1]
        apart = last.over[buffer.maker] in cut.writes.axes and last.before is None
        if not apart or last in sizes.windows or min(sizes.turns(last)) < 2:
            broken(
                "nest-copies",
                f"group {group} keeps {home.copies} copies of the sums {buffer.name}, and two fills one after"
                " the other may be one part of it",
            )


def owned_bytes(home: Home, held: Sequence[int], new: int | None, width: int, alignment: int) -> int:
    """Return the bytes of all slots of a buffer that holds `held` indices along its sides.

    A ring, of which at most `new` indices along its side are new in a turn, has room for these beside it for
    every further copy. At the root a buffer is filled once, and has one slot.
    """
    slot = up(prod(held) * width, alignment)
    if not home.above:
        return slot
    if new is None:
        return home.copies * slot
    return slot + (home.copies - 1) * up(new * width, alignment)


def _bodies(nest: Nest | Loop, items: Where) -> Iterator[tuple[Where, tuple[str, ...], Ways]]:
    yield items, nest.keep, nest.ways
    for n, item in enumerate(nest.body):
        if isinstance(item, Loop):
            yield from _bodies(item, (*items, n))
