"""Quick heuristics for addresses: first fit in a few orders, then the packer for likely bases of clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from onchip.planners.branches.region_body import Bases, Body, forbidden, free_bases
from onchip.planners.packing import Buffer, pack

__all__ = ["first_fit", "with_packer"]

ORDERS: tuple[Callable[[Body], tuple[int, ...]], ...] = (
    lambda b: (-b.size,),
    lambda b: (-b.area,),
    lambda b: (-b.steps, -b.size),
    lambda b: (min(p.start for p in b.parts), -b.size),
)

MOST_CHOICES = 12
"""The most choices of bases that are tried with the packer."""

MOST_NODES = 500
"""The most nodes of the packer for each of them."""


def first_fit(bodies: Sequence[Body], prefer: Bases) -> list[int] | None:
    """Return bases, or None if every order of the bodies failed.

    Fixed bodies come first, then clusters, which take a preferred base or an end of the memory; the rest in
    order of size, area, time or first step, each at an end of the memory by its length of life: the longest
    lie low, the rest high; or all lie low.
    """
    apart: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def taken(i: int, placed: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        for other, base in placed:
            if (other, i) not in apart:
                apart[other, i] = forbidden(bodies[other], bodies[i])
            for low, high in apart[other, i]:
                yield base + low, base + high

    steps = [b.steps for b in bodies]
    group = [0 if b.low == b.high else 1 if b.cluster is not None else 2 for b in bodies]
    for order in ORDERS:
        keys = [(group[i], *order(b), i) for i, b in enumerate(bodies)]
        turns = sorted(range(len(bodies)), key=keys.__getitem__)
        for ends in (False, True):
            placed: list[tuple[int, int]] = []
            for i in turns:
                free = free_bases(bodies[i], taken(i, placed))
                if not free:
                    break
                placed.append((i, _base(bodies[i], free, ends, steps[i] * len(steps) < sum(steps), prefer)))
            else:
                return [base for _, base in sorted(placed)]
    return None


def _base(body: Body, free: Sequence[tuple[int, int]], ends: bool, brief: bool, prefer: Bases) -> int:
    """Return a preferred base, or that at an end: the high one if `ends`, for a cluster or a brief body."""
    wanted = () if body.cluster is None else prefer.get(body.cluster, ())
    high = ends and (brief or body.cluster is not None)
    return next((at for at in wanted if _within(at, free)), free[-1][1] if high else free[0][0])


def _within(at: int, free: Sequence[tuple[int, int]]) -> bool:
    return any(low <= at <= high for low, high in free)


def with_packer(
    bodies: Sequence[Body], room: int, prefer: Bases, most_nodes: int
) -> tuple[list[int] | None, bool, int]:
    """Return bases or None, whether that is proved, and the nodes spent.

    Clusters are put at preferred bases, at the ends, and where given pieces begin or end; without a free
    cluster the packer's answer is the answer.
    """
    nodes = 0
    for choice in _choices(bodies, prefer):
        if nodes >= most_nodes:
            break
        fixed = [choice.get(i, b.low if b.low == b.high else None) for i, b in enumerate(bodies)]
        buffers, index = [], []
        for i, (body, base) in enumerate(zip(bodies, fixed, strict=True)):
            for part in body.parts:
                if part.size:
                    at = None if base is None else base + part.offset
                    buffers.append(Buffer(part.start, part.end, part.size, offset=at))
                    index.append((i, part.offset))
        limit = min(MOST_NODES if choice else most_nodes, most_nodes - nodes)
        answer = pack(buffers, room, node_limit=limit, engines=("greedy", "search"))
        nodes += answer.nodes
        if answer.status == "packed":
            found = [b.low for b in bodies]
            for (i, offset), at in zip(index, answer.offsets, strict=True):
                found[i] = at - offset
            return found, True, nodes
        if answer.status == "infeasible" and not choice:
            return None, True, nodes
    return None, False, nodes


def _choices(bodies: Sequence[Body], prefer: Bases) -> Iterator[dict[int, int]]:
    """Yield bases of the free clusters: the likeliest first, at most `MOST_CHOICES`."""
    given = [(b, b.low) for b in bodies if b.low == b.high]
    options: list[list[int]] = []
    free = [i for i, b in enumerate(bodies) if b.cluster is not None and b.low < b.high]
    for i in free:
        body = bodies[i]
        spans = free_bases(body, [(at + lo, at + hi) for b, at in given for lo, hi in forbidden(b, body)])
        wanted = [at for at in prefer.get(body.cluster or "", ()) if _within(at, spans)]
        ends = [at for lo, hi in [*spans[:1], *spans[-1:], *spans[1:-1]] for at in (lo, hi)]
        options.append(list(dict.fromkeys(wanted + ends)))
    if not all(options):  # one that what is given leaves no base
        return
    if len(free) > 3:  # too many combinations: all low or high, by turns
        combinations = [
            tuple(o[(j + turn) % min(2, len(o))] for j, o in enumerate(options)) for turn in (0, 1)
        ]
    else:
        ranked = sorted(product(*(enumerate(o[:8]) for o in options)), key=lambda c: sum(k for k, _ in c))
        combinations = [tuple(at for _, at in c) for c in ranked]
    for c in combinations[:MOST_CHOICES]:
        yield dict(zip(free, c, strict=True))
