"""The best scheme out of given groups: dynamic programming over the sets of finished operators.

A scheme can run group by group exactly if every set of finished operators is closed under predecessors (a
downset), so the shortest path from nothing to everything over downsets is the best scheme without a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onchip.network import bits
from onchip.planners.fusion.reproduced.algorithm1 import Scheme
from onchip.planners.fusion.reproduced.dag import Dag

__all__ = ["WIDTH", "best_scheme"]

WIDTH = 2000
"""The most downsets of one size that are followed, the most promising first."""


def best_scheme(
    dag: Dag, costs: Mapping[int, int], *, width: int = WIDTH, stop: Callable[[], bool] | None = None
) -> tuple[Scheme, bool]:
    """Return the cheapest runnable scheme of the groups in `costs`, and whether every downset was followed.

    Every operator alone must be among them (`ValueError`). Groups that are no cheaper than their members
    alone are left out: splitting one up keeps a scheme runnable. Beyond `width` downsets with equally many
    operators only those that have saved most so far are followed, and the scheme is not proved best; once
    `stop` returns true, only the single best.
    """
    alone = []
    for v in range(len(dag)):
        if 1 << v not in costs:
            raise ValueError(f"operator {v} has no cost of its own")
        alone.append(costs[1 << v])
    rank = {v: i for i, v in enumerate(dag.order)}
    starting: list[list[tuple[int, int, int]]] = [[] for _ in alone]  # by first operator: group, needs, saved
    wanted = 0
    for group, moved in costs.items():
        saved = sum(alone[v] for v in bits(group)) - moved
        if saved > 0:
            needs = 0
            for v in bits(group):
                needs |= dag.predecessors[v]
            starting[min(bits(group), key=rank.__getitem__)].append((group, needs & ~group, saved))
            wanted |= group
    levels: list[dict[int, tuple[int, int, int]]] = [{} for _ in range(len(alone) + 1)]
    levels[0][0] = (0, 0, 0)  # done -> saved so far, the last group, the set done before it
    complete = True
    states = 0
    for size, level in enumerate(levels[:-1]):
        follow = list(level.items())
        if width > 1 and stop is not None and stop():
            width = 1
        if len(follow) > width:
            complete = False
            follow.sort(key=lambda item: (-item[1][0], item[0]))
            del follow[width:]
        for done, (so_far, _, _) in follow:
            states += 1
            ready = [v for v in bits(dag.everything & ~done) if not dag.predecessors[v] & ~done]
            plain = next((v for v in ready if not wanted >> v & 1), None)
            if plain is not None:  # no other group is worth starting with it, and it blocks none
                ready = [plain]
            for v in ready:
                for group, needs, saved in ((1 << v, 0, 0), *starting[v]):
                    if not group & done and not needs & ~done:
                        after = done | group
                        there = levels[size + group.bit_count()]
                        if after not in there or there[after][0] < so_far + saved:
                            there[after] = (so_far + saved, group, done)
    total = sum(alone) - levels[-1][dag.everything][0]
    groups = []
    done = dag.everything
    while done:
        _, group, done = levels[done.bit_count()][done]
        groups.append(group)
    return Scheme(tuple(reversed(groups)), total, len(costs), states), complete
