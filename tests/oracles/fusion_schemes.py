"""Small random graphs with a made-up cost of their groups, and the best scheme by brute force."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

from onchip.network import bits
from onchip.planners.fusion.reproduced.dag import Dag


@dataclass(frozen=True)
class Traffic:
    """Words that cross for a group: each tensor read from outside, and each read outside or by nobody.

    Node v writes tensor v of `words[v]` words; `weights[v]` cross once. A group of more than `most` nodes
    does not fit: monotone in the group, as the buffer need of a real one is.
    """

    dag: Dag
    words: tuple[int, ...]
    weights: tuple[int, ...]
    most: int

    def __call__(self, group: int) -> int | None:
        if group.bit_count() > self.most:
            return None
        read = written = 0
        for v in bits(group):
            read |= self.dag.inputs[v]
            after = self.dag.successors[v]
            if not after or after & ~group:
                written |= 1 << v
        from_outside = read & ~group
        crossing = sum(self.words[t] for t in bits(from_outside)) + sum(self.words[t] for t in bits(written))
        return crossing + sum(self.weights[v] for v in bits(group))


def random_dag(random: Random, nodes: int, density: float = 0.35) -> Dag:
    """A graph whose edges go from lower to higher numbers."""
    return Dag.from_edges(
        nodes, [(a, b) for b in range(nodes) for a in range(b) if random.random() < density]
    )


def random_traffic(random: Random, dag: Dag, most: int) -> Traffic:
    """Tensors of 1 to 20 words, weights of 0 to 5; tensors from nowhere have numbers from n on."""
    n = len(dag)
    return Traffic(
        dag,
        tuple(random.randint(1, 20) for _ in range(2 * n)),
        tuple(random.randint(0, 5) for _ in range(n)),
        most,
    )


def best_runnable(dag: Dag, cost: Traffic) -> int:
    """The least cost over all schemes that can run group by group, by trying every one."""
    everything = dag.everything

    @cache
    def least(done: int) -> int:
        if done == everything:
            return 0
        rest = everything & ~done
        found = []
        group = rest
        while group:
            ready = all(not dag.predecessors[v] & ~(done | group) for v in bits(group))
            moved = cost(group) if ready else None
            if moved is not None:
                found.append(moved + least(done | group))
            group = (group - 1) & rest
        return min(found)

    return least(0)


def runnable(dag: Dag, groups: tuple[int, ...]) -> bool:
    """Whether the groups are a partition and some order of them has every group after what it reads."""
    done = 0
    left = list(groups)
    while left:
        for group in left:
            if all(not dag.predecessors[v] & ~(done | group) for v in bits(group)):
                break
        else:
            return False
        if done & group:
            return False
        done |= group
        left.remove(group)
    return done == dag.everything
