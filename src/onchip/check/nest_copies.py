"""Copies of a nest's buffers, and the channels through which they come and go: legal or refused.

A buffer with one copy shares the scratch; one with two or more owns so many slots as long as the group runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import prod

from onchip.check.nest_homes import Home
from onchip.check.nest_sizes import Sizes
from onchip.check.parts import up
from onchip.check.rules import broken
from onchip.network.axes import GroupAxes
from onchip.plans import Loop, Nest, Ways
from onchip.plans.nest import COUNTED

__all__ = ["MOST_COPIES", "MOST_LATE", "give_ways", "owned_bytes", "prove_late", "prove_spilled"]

MOST_COPIES = 64
"""The most slots of one buffer."""

MOST_LATE = 64
"""The most further steps whose fetches stand before a store."""

FIELDS = {"loads": "load", "stores": "store"}
"""The fields of a home that have another name than what a body states."""

Where = tuple[int, ...]


def give_ways(group: str, nest: Nest, axes: GroupAxes, homes: Sequence[Home]) -> None:
    """Note in `homes` what a nest states of them. Raises `Broken` by the rules nest-copies and nest-late."""
    for items, keep, ways in _bodies(nest, ()):
        for what in COUNTED:
            for name, number in getattr(ways, what):
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
                if what == "late" and not 1 <= number <= MOST_LATE:
                    broken("nest-late", f"group {group} lets {number} steps pass {name}: 1 to {MOST_LATE}")
                for home in found:
                    setattr(home, FIELDS.get(what, what), number)


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


def prove_late(
    group: str, axes: GroupAxes, homes: Sequence[Home], leaving: Collection[int], sizes: Sizes
) -> None:
    """Refuse late stores of what is not stored, has one copy, comes again, or slides.

    A fill that comes again would be fetched before the store that it needs, and slots are given back in turn
    only if every fill is stored. Raises `Broken` by the rule nest-late.
    """
    for n, home in enumerate(homes):
        if not home.late:
            continue
        buffer, reason = axes.buffers[home.buffer], ""
        if buffer.maker is None or buffer.tensor not in leaving:
            reason = "is never stored"
        elif home.copies < 2:
            reason = "has one copy"
        elif any(turn.over.get(buffer.maker) in axes.operators[buffer.maker].sums for turn in home.above):
            reason = "is stored as partial sums"
        elif any(turn in sizes.windows and n in sizes.windows[turn].side for turn in home.above):
            reason = "is cut along windows"
        if reason:
            broken("nest-late", f"{buffer.name} in group {group}, whose stores are late, {reason}")


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
