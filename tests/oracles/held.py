"""Least traffic with pinned tensors, pinned weights and state: exact states over the network itself.

Written from docs/plan-program.md alone: no added operators, no prices that forbid. Capacity only, like
`oracles.states`.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping

from onchip.network import Network

__all__ = ["least_traffic_held"]

Where = tuple[frozenset[int], frozenset[int], frozenset[int], frozenset[int]]
"""Operators that have run, tensors on chip, tensors with a DRAM copy, graph inputs that were loaded."""


def least_traffic_held(
    network: Network,
    budget: int,
    alignment: int,
    *,
    pinned: Collection[int] = (),
    weights: Collection[int] = (),
    state: Mapping[int, int] | None = None,
) -> int | None:
    """The least non-compulsory traffic in bytes, None when no program fits.

    `pinned` are tensors, `weights` operators whose weights stay, `state` outputs by input.
    """
    state = dict(state or {})
    handed = set(state.values())
    inputs = {t.id for t in network.tensors if t.kind == "input"} - set(state)
    outputs = {t for t in range(len(network.tensors)) if network.output_roots >> t & 1} - handed
    size = [t.bytes for t in network.tensors]
    reads = [{t for t in range(len(size)) if network.reads[op.id] >> t & 1} for op in network.operators]
    writes = [{t for t in range(len(size)) if network.writes[op.id] >> t & 1} for op in network.operators]

    def up(n: int) -> int:
        return -(-n // alignment) * alignment

    room = budget - sum(up(network.operators[v].weight_bytes) for v in weights)

    def wanted(done: Collection[int]) -> set[int]:
        """What somebody still reads, or has to be there at the end."""
        later = set().union(*(reads[v] for v in range(len(reads)) if v not in done), set())
        return later | handed | (set(pinned) & outputs)

    def used(on_chip: Collection[int]) -> int:
        return sum(up(size[t]) for t in on_chip)

    first: Where = (frozenset(), frozenset(state), frozenset(inputs), frozenset())
    if used(first[1]) > room:
        return None
    queue: list[tuple[int, int, Where]] = [(0, 0, first)]
    best = {first: 0}
    count = 0
    while queue:
        cost, _, here = heapq.heappop(queue)
        if cost > best[here]:
            continue
        done, on_chip, copies, loaded = here
        if len(done) == len(reads) and handed <= on_chip:
            return cost
        moves: list[tuple[int, Where]] = []
        need = wanted(done)
        for t in on_chip:
            if t not in need:
                moves.append((0, (done, on_chip - {t}, copies, loaded)))
            elif t not in pinned:
                write = 0 if t in copies else size[t]
                moves.append((write, (done, on_chip - {t}, copies | {t}, loaded)))
        for t in (copies & need) - on_chip:
            if used(on_chip) + up(size[t]) <= room:
                free = t in inputs and t not in loaded
                moves.append((0 if free else size[t], (done, on_chip | {t}, copies, loaded | ({t} & inputs))))
        for v in set(range(len(reads))) - done:
            if reads[v] <= on_chip:
                beside = used(on_chip) + used(writes[v]) + up(network.operators[v].workspace)
                if beside <= room:
                    made = copies | (writes[v] & outputs)
                    moves.append((0, (done | {v}, on_chip | writes[v], made, loaded)))
        for price, there in moves:
            if cost + price < best.get(there, cost + price + 1):
                best[there] = cost + price
                count += 1
                heapq.heappush(queue, (cost + price, count, there))
    return None
