"""Optimus' Algorithm 2 (which maps of a group are streamed by channel: ISOA) beside the exact problem.

A map kept whole takes `full` bytes, a streamed one `slim` (T_c channels of it). An operator that sums over
its input channels cannot have both its input and its output streamed, so no two neighbours may be (section
5.2). `tree_dp` is the listing as its prose describes it: in reversed topological order dp[l][1] = slim + sum
over readers of dp[.][0], dp[l][0] = full + sum over readers of min(dp[.][0], dp[.][1]). Where no map has two
parents that is exact. Where branches join, even in a tree, each parent of a map with two parents pays for
it, and the parents may decide it differently: `IsoaChoice.torn` names such maps. The intended problem is a
minimum-weight independent set, which `independent_set` solves exactly on any graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onchip.network import bits

__all__ = ["IsoaChoice", "independent_set", "tree_dp"]


@dataclass(frozen=True, slots=True)
class IsoaChoice:
    """The streamed maps (a bitset), the bytes that the method claims for the maps, and those they take.

    `torn` are the maps that the method decided both ways: `taken` counts them as kept whole.
    `clashes` are neighbours that are both streamed, which no execution allows.
    """

    streamed: int
    claimed: int
    taken: int
    torn: int = 0
    clashes: tuple[tuple[int, int], ...] = ()


def tree_dp(readers: Sequence[int], full: Sequence[int], slim: Sequence[int]) -> IsoaChoice:
    """Run Algorithm 2 as printed. `readers[x]` is the bitset of maps made from map x, in topological order.

    The decision of a map follows from its parents': a streamed parent requires it whole, any other leaves
    it the better of the two.
    """
    whole = list(full)
    streaming = list(slim)
    for x in reversed(range(len(readers))):
        for y in bits(readers[x]):
            whole[x] += min(whole[y], streaming[y])
            streaming[x] += whole[y]
    wants: list[set[bool]] = [set() for _ in readers]
    roots = (1 << len(readers)) - 1
    for after in readers:
        roots &= ~after
    for x in bits(roots):
        wants[x].add(streaming[x] < whole[x])
    for x in range(len(readers)):
        for streams in wants[x]:
            for y in bits(readers[x]):
                wants[y].add(not streams and streaming[y] < whole[y])
    torn = sum(1 << x for x, w in enumerate(wants) if len(w) == 2)
    streamed = sum(1 << x for x, w in enumerate(wants) if w == {True})
    claimed = sum(min(whole[x], streaming[x]) for x in bits(roots))
    clashes = tuple((x, y) for x in bits(streamed) for y in bits(readers[x] & streamed))
    return IsoaChoice(streamed, claimed, _taken(streamed, full, slim), torn, clashes)


def independent_set(readers: Sequence[int], full: Sequence[int], slim: Sequence[int]) -> IsoaChoice:
    """Return the streamed maps, no two of them neighbours, that leave the fewest bytes: exact on any graph.

    The search branches on a map of most neighbours, treats disconnected parts separately, and caches every
    part.
    """
    near = [0] * len(readers)
    for x, after in enumerate(readers):
        near[x] |= after
        for y in bits(after):
            near[y] |= 1 << x
    saved = [f - s for f, s in zip(full, slim, strict=True)]
    memo: dict[int, tuple[int, int]] = {0: (0, 0)}

    def best(rest: int) -> tuple[int, int]:
        """Return the most bytes that streaming saves among the maps `rest`, and a set that does."""
        if rest in memo:
            return memo[rest]
        part = _connected(near, rest)
        if part != rest:
            a, b = best(part), best(rest & ~part)
            memo[rest] = (a[0] + b[0], a[1] | b[1])
            return memo[rest]
        x = max(bits(rest), key=lambda v: ((near[v] & rest).bit_count(), v))
        without = best(rest & ~(1 << x))
        gain, chosen = best(rest & ~near[x] & ~(1 << x))
        memo[rest] = max(without, (gain + saved[x], chosen | 1 << x))
        return memo[rest]

    _, streamed = best(sum(1 << x for x, s in enumerate(saved) if s > 0))
    taken = _taken(streamed, full, slim)
    return IsoaChoice(streamed, taken, taken)


def _connected(near: Sequence[int], rest: int) -> int:
    """Return the connected part of `rest` that contains its lowest map."""
    part = frontier = rest & -rest
    while frontier:
        reached = 0
        for x in bits(frontier):
            reached |= near[x]
        frontier = reached & rest & ~part
        part |= frontier
    return part


def _taken(streamed: int, full: Sequence[int], slim: Sequence[int]) -> int:
    return sum(slim[x] if streamed >> x & 1 else full[x] for x in range(len(full)))
