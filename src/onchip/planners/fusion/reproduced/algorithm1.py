"""Optimus' Algorithm 1 as its prose describes it: operator fusion by dynamic programming (section 4, eq. 2).

The listing is not in the text we have, so these are our readings:

- *Groups.* Operators are added in reversed topological order, each to any group of later ones that stays
  valid with it. "Groups that have data dependencies with it" is taken in the widest sense, for only then are
  as many groups evaluated as Table 5 states (VGG16 171, SqueezeNet 1057, ResNet-50 3510, ResNet-152 24250:
  every convex set). Only the on-line variant requires that members feed one another or share an input.
- *Validity* (ISValid): a group with the new operator is refused if a successor of that operator lies outside
  the group and has a descendant in it. This judges one group at a time.
- *Bottom-up* tabulates cost[V'] for the sets V' that a visit has completed, the suffixes of the topological
  order. Eq. 2 needs cost[V' - G']; if that set is no suffix it is not in the table, and the choice of G' is
  dropped. The rest are partitions into intervals of one topological order: always runnable, not always the
  best.
- *Top-down* solves eq. 2 by recursion with a memo for every set V' - G' that occurs, so every partition into
  valid groups counts, and among them some whose groups wait for each other in a cycle: never dearer than the
  optimum, not always runnable. `untangled` cuts such a scheme until it can run.

A group without a known cost (`None`: it does not fit) is not extended: one with more operators needs at least
as much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from onchip.network import bits
from onchip.planners.fusion.reproduced.dag import Dag

__all__ = ["GroupCostFunction", "Scheme", "TooManyStates", "bottom_up", "top_down", "untangled", "valid"]

GroupCostFunction = Callable[[int], int | None]
"""Bytes (or words) that a group moves to and from DRAM, by its bitset; None if it cannot run."""

MAX_STATES = 200_000
"""The most sub-problems that `top_down` remembers before it gives up: some 100 MB."""


class TooManyStates(Exception):
    """Top-down met more sub-problems than it may remember."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """A partition into groups, its cost, the number of distinct groups that the cost function was asked for,
    and the number of sub-problems solved.

    `groups` may form a cycle (`Dag.knots`) if they come from `top_down`.
    """

    groups: tuple[int, ...]
    cost: int
    evaluated: int
    states: int


def valid(dag: Dag, v0: int, group: int) -> bool:
    """Return ISValid: no successor of `v0` outside `group` has a descendant in it (section 4.3)."""
    return not any(dag.descendants[s] & group for s in bits(dag.successors[v0] & ~group))


def bottom_up(dag: Dag, cost: GroupCostFunction) -> Scheme:
    """Run Algorithm 1 by tabulation: the best partition into intervals of one topological order.

    Raises `ValueError` if some operator alone has no cost.
    """
    table = {0: 0}
    best: dict[int, int] = {}
    visited = evaluated = 0
    for v0, choices, asked in _groups(dag, cost):
        evaluated += asked
        now = visited | 1 << v0
        for fused, moved in choices:
            rest = table.get(now & ~fused)
            if rest is not None and (now not in table or rest + moved < table[now]):
                table[now], best[now] = rest + moved, fused
        visited = now
    return Scheme(_trace(best, dag.everything), table[dag.everything], evaluated, len(table))


def top_down(dag: Dag, cost: GroupCostFunction, *, max_states: int = MAX_STATES) -> Scheme:
    """Run Algorithm 1 by recursion with a memo: the best partition into groups that are valid one by one.

    Its cost is never above that of the best scheme that can run, and is below if its groups form a cycle.
    Raises `TooManyStates`, and `ValueError` if some operator alone has no cost.
    """
    starting: dict[int, list[tuple[int, int]]] = {}  # every group, filed under its first operator
    evaluated = 0
    for v0, choices, asked in _groups(dag, cost):
        starting[v0] = choices
        evaluated += asked
    rank = {v: i for i, v in enumerate(dag.order)}
    memo: dict[int, int] = {0: 0}
    best: dict[int, int] = {}
    stack = [dag.everything]  # recursion by hand: networks are deeper than Python's own stack
    while stack:
        here = stack[-1]
        if here in memo:
            stack.pop()
            continue
        v0 = min(bits(here), key=rank.__getitem__)
        options = [(fused, moved) for fused, moved in starting[v0] if not fused & ~here]
        unsolved = [here & ~fused for fused, _ in options if here & ~fused not in memo]
        if unsolved:
            stack.extend(unsolved)
            continue
        memo[here], best[here] = min((memo[here & ~fused] + moved, fused) for fused, moved in options)
        if len(memo) > max_states:
            raise TooManyStates(f"more than {max_states:,} sub-problems")
        stack.pop()
    return Scheme(_trace(best, dag.everything), memo[dag.everything], evaluated, len(memo))


def _groups(dag: Dag, cost: GroupCostFunction) -> Iterator[tuple[int, list[tuple[int, int]], int]]:
    """Yield each operator, last first, the groups that begin with it and their cost, and the number tried."""
    grown: list[int] = []
    for v0 in reversed(dag.order):
        tried = [1 << v0, *(group | 1 << v0 for group in grown if valid(dag, v0, group))]
        choices = [(group, moved) for group in tried if (moved := cost(group)) is not None]
        if not choices or choices[0][0] != 1 << v0:
            raise ValueError(f"operator {v0} has no cost of its own")
        grown += (group for group, _ in choices)
        yield v0, choices, len(tried)


def untangled(dag: Dag, cost: GroupCostFunction, scheme: Scheme) -> Scheme:
    """Cut groups of the scheme in two, the cheapest cut first, until no groups wait for each other.

    A group is cut into the first and the last part of it in topological order, so both stay convex. A scheme
    that can run is returned unchanged.
    """
    rank = {v: i for i, v in enumerate(dag.order)}
    groups, total, evaluated = list(scheme.groups), scheme.cost, scheme.evaluated
    while knots := dag.knots(groups):
        cuts: list[tuple[int, int, int, int]] = []
        for i in (i for knot in knots for i in knot):
            whole = cost(groups[i])
            assert whole is not None
            first = 0
            for v in sorted(bits(groups[i]), key=rank.__getitem__)[:-1]:
                first |= 1 << v
                a, b = cost(first), cost(groups[i] & ~first)
                evaluated += 2
                if a is not None and b is not None:
                    cuts.append((a + b - whole, i, first, groups[i] & ~first))
        if not cuts:
            raise ValueError("the groups form a cycle, and no group in it can be cut in two that fit")
        dearer, i, first, last = min(cuts)
        groups[i : i + 1] = [first, last]
        total += dearer
    return Scheme(dag.in_order(groups), total, evaluated, scheme.states)


def _trace(best: dict[int, int], everything: int) -> tuple[int, ...]:
    """Return the groups of the optimum, first to last: S_opt from the whole graph down to nothing."""
    groups = []
    left = everything
    while left:
        groups.append(best[left])
        left &= ~best[left]
    return tuple(groups)
