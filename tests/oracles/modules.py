"""Modules by their definition: every tensor tried as the start of every merge, ways followed one by one."""

from __future__ import annotations

from functools import cache

from onchip.network import Network, bits

__all__ = ["dominates", "longest_way", "longs", "modules"]

Pair = tuple[int, int]


def dominates(predecessors: list[list[int]], above: int, node: int) -> bool:
    """Whether no way from node 0 to `node` avoids `above`, in a graph given by predecessors."""
    seen, pending = {above}, [node]
    while pending:
        n = pending.pop()
        if n in seen:
            continue
        if n == 0:
            return False
        seen.add(n)
        pending += predecessors[n]
    return True


def longest_way(
    network: Network, layers: frozenset[int], tensor: int, end: int, skips: frozenset[Pair]
) -> int:
    """Most layers on a way from a tensor to an operator, itself not counted; -1 where there is no way."""

    @cache
    def to(v: int) -> int:
        best = -1
        for t in bits(network.reads[v]):
            if (t, v) in skips:
                continue
            p = network.producer[t]
            if t == tensor:
                best = max(best, 0)
            elif p is not None and (way := to(p)) >= 0:
                best = max(best, way + (p in layers))
        return best

    return to(end)


def longs(network: Network, layers: frozenset[int], limit: int) -> dict[Pair, int]:
    """Each long skip, tensor and reader, with its span."""
    found = {}
    for v in range(len(network.operators)):
        for t in bits(network.reads[v]):
            span = longest_way(network, layers, t, v, frozenset())
            if span > limit:
                found[t, v] = span
    return found


def modules(network: Network, merges: frozenset[int], layers: frozenset[int], limit: int) -> dict[Pair, int]:
    """Start and merge of all modules in the network without its long skips, and their operators."""
    skips = frozenset(longs(network, layers, limit))
    count = len(network.operators)
    near = [{t for t in bits(network.reads[v]) if (t, v) not in skips} for v in range(count)]

    def reached(t: int) -> set[int]:
        found: set[int] = set()
        tensors = {t}
        for v in network.order:
            if near[v] & tensors:
                found.add(v)
                tensors |= set(bits(network.writes[v]))
        return found

    after = [reached(t) for t in range(len(network.tensors))]
    found = {}
    for merge in merges:
        if network.writes[merge].bit_count() > 1:
            continue
        for start in bits(network.roots):
            if merge not in after[start]:
                continue
            inner = {v for v in after[start] if any(merge in after[t] for t in bits(network.writes[v]))}
            made = {t for v in inner for t in bits(network.writes[v])}
            if any(near[v] - made - {start} for v in inner | {merge}):
                continue  # something else enters
            if made & set(bits(network.output_roots)):
                continue
            if any(near[v] & made for v in range(count) if v not in inner and v != merge):
                continue  # something leaves
            if longest_way(network, layers, start, merge, skips) > limit:
                continue
            groups = [{v} for v in inner]
            for t in made:
                joined = [g for g in groups if any(t in near[v] or network.writes[v] >> t & 1 for v in g)]
                groups = [g for g in groups if g not in joined] + [set().union(*joined)]
            if len(groups) + (start in near[merge]) < 2:
                continue
            found[start, merge] = sum(1 << v for v in inner) | 1 << merge
    return found
