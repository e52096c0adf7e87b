"""A minimal set of buffers that do not fit together: the answer to "which ones?"."""

from __future__ import annotations

from collections.abc import Sequence

from onchip.planners.limits import Limits
from onchip.planners.packing.buffers import ALL_RULES, Buffer, Engine, Rules, max_load
from onchip.planners.packing.large import is_large
from onchip.planners.packing.pack import pack

__all__ = ["irreducible", "shrink"]

ENGINES: tuple[Engine, ...] = ("greedy", "search")
"""Only a proof drops a buffer; a quickly found packing keeps one."""


def irreducible(
    buffers: Sequence[Buffer],
    capacity: int,
    *,
    alignment: int = 1,
    time_limit: float | None = None,
    node_limit: int = 20_000,
    rules: Rules = ALL_RULES,
) -> tuple[int, ...]:
    """Return indices of an infeasible subset, by chunked deletion: without any one of them the rest fits.

    A subset that is not proved infeasible within `node_limit` nodes counts as fitting, so the result is
    always infeasible if `buffers` are, and minimal as far as those limits and `time_limit` (seconds) allow.
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
    """Run `irreducible`; return also whether it is proved that any one fewer fits."""
    limits = Limits(time_limit)
    kept = list(range(len(buffers)))
    crowd = _crowd(buffers)
    if max_load([buffers[i] for i in crowd], alignment=alignment) > capacity:
        kept = crowd
        if is_large(buffers):
            return _fewest(buffers, crowd, capacity, alignment)
    minimal = len(kept) == 1
    chunk = len(kept) // 2
    while chunk:
        at, minimal = 0, True
        while at < len(kept):
            if limits.over():
                return tuple(kept), False
            rest = kept[:at] + kept[at + chunk :]
            answer = pack(
                [buffers[i] for i in rest],
                capacity,
                alignment=alignment,
                time_limit=limits.left(),
                node_limit=node_limit,
                rules=rules,
                engines=ENGINES,
            )
            if answer.status == "infeasible":
                kept = rest
            else:
                at += chunk
                # A set that fits without a buffer still fits when others have gone as well.
                minimal = minimal and answer.status == "packed" and chunk == 1
        chunk //= 2
    return tuple(kept), minimal


def _fewest(
    buffers: Sequence[Buffer], crowd: list[int], capacity: int, alignment: int
) -> tuple[tuple[int, ...], bool]:
    """Return the fewest, largest buffers of too many live ones that are still too many, and whether any one
    fewer is proved to fit: without alignments and fixed offsets they can be stacked."""
    kept, load = [], 0
    for i in sorted(crowd, key=lambda i: -buffers[i].size):
        kept.append(i)
        load += buffers[i].size
        if load > capacity:
            break
    plain = alignment == 1 and all(b.alignment == 1 and b.offset is None for b in (buffers[i] for i in crowd))
    if plain or load > capacity:
        return tuple(sorted(kept)), plain
    return tuple(crowd), False


def _crowd(buffers: Sequence[Buffer]) -> list[int]:
    """Return the buffers that are live when the most bytes are."""
    change: dict[int, int] = {}
    for b in buffers:
        for start, end in b.live:
            change[start] = change.get(start, 0) + b.size
            change[end] = change.get(end, 0) - b.size
    load, most, busiest = 0, -1, 0
    for time_, size in sorted(change.items()):
        load += size
        if load > most:
            most, busiest = load, time_
    return [i for i, b in enumerate(buffers) if any(s <= busiest < e for s, e in b.live)]
