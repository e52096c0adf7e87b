"""In which order modules and the operators between them run."""

from __future__ import annotations

import heapq

from onchip.branches.graph import Graph
from onchip.branches.modules import Module, Stretch
from onchip.network import bits

__all__ = ["running_order"]


def running_order(graph: Graph, modules: tuple[Module, ...]) -> tuple[Module | Stretch, ...]:
    """The outermost modules and stretches of what lies between, every operator once, in a legal order.

    What has just become able to run goes first, so that an output is used at once where that may be; else
    the network's own order decides. Modules run without a pause: what leaves one before its merge, over a
    long skip, never comes back into it, for its reader would then lie on a way through the module itself.
    """
    item = list(range(len(graph.order)))  # operator -> what it runs in: itself, or its module's merge
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
    ready = [(0, place[i], i) for i, count in waiting.items() if not count]
    heapq.heapify(ready)
    found: list[Module | Stretch] = []
    stretch: list[int] = []
    ran = 0
    while ready:
        _, _, i = heapq.heappop(ready)
        ran += 1
        if i in module:
            if stretch:
                found.append(Stretch(tuple(stretch)))
                stretch = []
            found.append(module[i])
        else:
            stretch.append(i)
        for j in after.get(i, ()):
            waiting[j] -= 1
            if not waiting[j]:
                heapq.heappush(ready, (-ran, place[j], j))
    if stretch:
        found.append(Stretch(tuple(stretch)))
    return tuple(found)
