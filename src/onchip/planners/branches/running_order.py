"""The order in which modules and the operators between them run."""

from __future__ import annotations

import heapq
from itertools import groupby

from onchip.network import bits
from onchip.planners.branches.graph import Graph
from onchip.planners.branches.modules import Module, Stretch

__all__ = ["running_order"]


def running_order(graph: Graph, modules: tuple[Module, ...]) -> tuple[Module | Stretch, ...]:
    """Return the outermost modules and the stretches between them, every operator once, in a legal order.

    An item that the last one made ready follows it, so that an output is used at once if possible; otherwise
    the network's own order decides. Modules run without a pause: a tensor that leaves one before its merge,
    over a long skip, never comes back into it, for its reader would then lie on a way through the module.
    """
    item = list(range(len(graph.order)))  # operator -> the item that runs it: itself, or its module's merge
    module = {m.merge: m for m in modules}
    for m in modules:
        for v in bits(m.operators):
            item[v] = m.merge
    place: dict[int, int] = {}
    before: dict[int, set[int]] = {}
    after: dict[int, list[int]] = {}
    for v in graph.order:
        i = item[v]
        place.setdefault(i, len(place))
        waits = before.setdefault(i, set())
        for t in graph.reads[v]:
            p = graph.producer[t]
            if p is not None and item[p] != i and item[p] not in waits:
                waits.add(item[p])
                after.setdefault(item[p], []).append(i)
    waiting = {i: len(waits) for i, waits in before.items()}
    ready = [(place[i], i) for i, count in waiting.items() if not count]
    heapq.heapify(ready)
    ran: list[int] = []
    while ready:
        _, i = heapq.heappop(ready)
        follows: int | None = i
        while follows is not None:
            ran.append(follows)
            able = []
            for j in after.get(follows, ()):
                waiting[j] -= 1
                if not waiting[j]:
                    able.append((place[j], j))
            follows = min(able)[1] if able else None
            for entry in able:
                if entry[1] != follows:
                    heapq.heappush(ready, entry)
    return _items(ran, module)


def _items(ran: list[int], module: dict[int, Module]) -> tuple[Module | Stretch, ...]:
    """Return modules, and stretches of the operators between them."""
    found: list[Module | Stretch] = []
    for between, group in groupby(ran, key=lambda i: i not in module):
        run = tuple(group)
        found += [Stretch(run)] if between else [module[i] for i in run]
    return tuple(found)
