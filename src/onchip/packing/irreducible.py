"""A minimal set of buffers that do not fit together: the answer to "which ones?"."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Sequence

from onchip.packing.buffers import ALL_RULES, Buffer, Engine, Rules, max_load
from onchip.packing.pack import pack

__all__ = ["irreducible", "shrink"]

ENGINES: tuple[Engine, ...] = ("greedy", "search")
"""Only a proof drops a buffer; a packing, found quickly, keeps one."""


def irreducible(
    buffers: Sequence[Buffer],
    capacity: int,
    *,
    alignment: int = 1,
    time_limit: float | None = None,
    node_limit: int = 20_000,
    rules: Rules = ALL_RULES,
) -> tuple[int, ...]:
    """Indices of an infeasible subset, by chunked deletion: dropping any one of them makes the rest fit.

    A subset that is not proved infeasible within `node_limit` nodes counts as fitting, so the result is
    always infeasible if `buffers` are, and minimal as far as those limits and `time_limit` (seconds) reach.
    """
    return shrink(
        buffers, capacity, alignment=alignment, time_limit=time_limit, node_limit=node_limit, rules=rules
    )[0]


def shrink(
    buffers: Sequence[Buffer],
    capacity: int,
    *,
    alignment: int = 1,
    time_limit: float | None = None,
    node_limit: int = 20_000,
    rules: Rules = ALL_RULES,
) -> tuple[tuple[int, ...], bool]:
    """`irreducible`, and whether it is proved that any one fewer fits."""
    deadline = None if time_limit is None else time.monotonic() + time_limit
    kept = list(range(len(buffers)))
    crowd = _crowd(buffers)
    if max_load([buffers[i] for i in crowd], alignment=alignment) > capacity:
        kept = crowd
    minimal = len(kept) == 1
    chunk = len(kept) // 2
    while chunk:
        at, minimal = 0, True
        while at < len(kept):
            if deadline is not None and time.monotonic() >= deadline:
                return tuple(kept), False
            rest = kept[:at] + kept[at + chunk :]
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            answer = pack(
                [buffers[i] for i in rest],
                capacity,
                alignment=alignment,
                time_limit=left,
                node_limit=node_limit,
                rules=rules,
                engines=ENGINES,
            )
            if answer.status == "infeasible":
                kept = rest
            else:
                at += chunk
                # What fits without a buffer still fits when others have gone as well.
                minimal = minimal and answer.status == "packed" and chunk == 1
        chunk //= 2
    return tuple(kept), minimal


def _crowd(buffers: Sequence[Buffer]) -> list[int]:
    """The buffers that are live when the most bytes are."""
    times = {start for b in buffers for start, _ in b.live}
    load = dict.fromkeys(times, 0)
    ordered = sorted(times)
    for b in buffers:
        for start, end in b.live:
            for t in ordered[bisect_left(ordered, start) : bisect_left(ordered, end)]:
                load[t] += b.size
    busiest = max(ordered, key=lambda t: load[t], default=0)
    return [i for i, b in enumerate(buffers) if any(s <= busiest < e for s, e in b.live)]
