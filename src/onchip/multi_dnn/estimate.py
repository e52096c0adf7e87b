"""The requested bandwidth of a black-box unit, from observable figures (HaX-CoNN 3.3, four steps, Fig. 3).

A DLA has no counter for the bytes it requests, but the memory controller's utilisation (EMC) can be read
while a layer runs alone on either unit, and the two are proportional. The black box's bandwidth is therefore
that counted on the visible unit, divided by the ratio of the controller's utilisation there to that on the
black box. Without those readings the same bytes are assumed to cross in the unit's own time.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["estimate_bandwidth"]


def estimate_bandwidth(
    ms: Sequence[float | None], counted: Sequence[float | None], emc_percent: Sequence[float | None]
) -> tuple[float, ...]:
    """Return GB/s on every unit from those that were `counted` (None: a black box).

    It is 0 where the group does not run. The first unit with a count is the reference. `ms` is the group's
    time alone, `emc_percent` the memory controller's utilisation meanwhile. A group that was counted nowhere
    requests nothing.
    """
    seen = next((u for u, gb in enumerate(counted) if gb is not None and ms[u] is not None), None)
    found = []
    for own, gb, there in zip(ms, counted, emc_percent, strict=True):
        if gb is None and own is not None and seen is not None:
            gb = _compared(counted[seen] or 0.0, ms[seen] or 0.0, own, emc_percent[seen], there)
        found.append(0.0 if gb is None else gb)
    return tuple(found)


def _compared(known: float, ms: float, own: float, here: float | None, there: float | None) -> float:
    """Return GB/s of a unit that takes `own` ms, beside one that takes `ms` ms and requests `known`."""
    if here and there is not None:
        return known * there / here
    return known * ms / own if own else 0.0
