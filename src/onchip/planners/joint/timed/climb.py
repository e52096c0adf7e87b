"""A search near a nest for a faster one: small changes, kept where they take not much longer.

What is taken may be a little slower at first, and no slower at last; the fastest of all is the answer. The
number of nests that are looked at is fixed, so that an answer does not depend on the machine.
"""

from __future__ import annotations

from random import Random

from onchip.network.axes import GroupAxes, axes_of
from onchip.planners.joint.timed.copies import Chosen, best_copies
from onchip.planners.joint.timed.moves import Moves
from onchip.planners.joint.timed.pricing import TimedGroup
from onchip.planners.limits import Limits
from onchip.plans import Nest

__all__ = ["climbed"]

SLACK = 0.04
"""The part by which a change may be slower at first."""

QUICK_PRICES = 12
"""The most copies that are looked at for a nest on the way."""


def climbed(
    group: TimedGroup, start: Nest, known: Chosen, room: int, looks: int, limits: Limits, seed: int = 0
) -> tuple[Nest, Chosen]:
    """Return the fastest nest found within `looks` changes of a nest without copies, with its copies."""
    axes = axes_of(group.network, group.operators)
    assert isinstance(axes, GroupAxes)
    moves = Moves(axes, group.tiles, Random(seed))
    best, nest, now = (start, known), start, known.priced.time
    seen: set[Nest] = {start}
    for n in range(looks):
        if n % 64 == 0 and limits.over():
            break
        tried = moves.several(nest)
        if tried is None or tried in seen:
            continue
        seen.add(tried)
        opened = group.opened(tried)
        if opened is None or opened.need([1] * len(opened.units)) > room:
            continue
        below = now + round(now * SLACK * max(0.0, 1 - 1.25 * n / looks))
        below = max(below, 1)
        if opened.floor() >= below:
            continue
        chosen = best_copies(opened, room, below=below, most_prices=QUICK_PRICES)
        if chosen is None:
            continue
        nest, now = tried, chosen.priced.time
        if now < best[1].priced.time:
            best = tried, chosen
    return best
