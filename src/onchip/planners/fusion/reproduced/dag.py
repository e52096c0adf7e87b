"""The operators of a network as a plain graph of bitsets, the input of fusion algorithms before any cost.

Groups are bitsets over the nodes. A *scheme* is a partition into groups; it can run only if the groups, each
contracted to one node, form no cycle, which is more than the convexity of every single group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from onchip.network import Network, bits, mask

__all__ = ["Dag"]


@dataclass(frozen=True)
class Dag:
    """A directed acyclic graph on nodes 0..n-1.

    `successors[v]` is the bitset of nodes that read what `v` writes; `inputs[v]` is the bitset of the tensors
    that `v` reads, with any ids of the caller's choice: two nodes with a common bit share data.
    """

    successors: tuple[int, ...]
    inputs: tuple[int, ...]

    @classmethod
    def of(cls, network: Network) -> Dag:
        """Return the graph of a network's operators, node ids = operator ids."""
        successors = [0] * len(network.operators)
        for v, before in enumerate(network.predecessors):
            for p in bits(before):
                successors[p] |= 1 << v
        return cls(tuple(successors), network.reads)

    @classmethod
    def from_edges(cls, nodes: int, edges: Iterable[tuple[int, int]]) -> Dag:
        """Return a graph from its edges; every node writes one tensor (its own number), and nodes without
        predecessors read a tensor of their own."""
        successors = [0] * nodes
        inputs = [0] * nodes
        for a, b in edges:
            successors[a] |= 1 << b
            inputs[b] |= 1 << a
        return cls(tuple(successors), tuple(x or 1 << (nodes + v) for v, x in enumerate(inputs)))

    def __len__(self) -> int:
        return len(self.successors)

    @property
    def everything(self) -> int:
        """All nodes."""
        return (1 << len(self.successors)) - 1

    @cached_property
    def predecessors(self) -> tuple[int, ...]:
        """For each node, the bitset of nodes it reads from."""
        result = [0] * len(self)
        for v, after in enumerate(self.successors):
            for s in bits(after):
                result[s] |= 1 << v
        return tuple(result)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """A topological order: nodes as numbered, moved only as far as their inputs require."""
        left = [before.bit_count() for before in self.predecessors]
        ready = mask(v for v, n in enumerate(left) if n == 0)
        result = []
        while ready:
            v = (ready & -ready).bit_length() - 1
            ready ^= 1 << v
            result.append(v)
            for s in bits(self.successors[v]):
                left[s] -= 1
                if not left[s]:
                    ready |= 1 << s
        return tuple(result)

    @cached_property
    def descendants(self) -> tuple[int, ...]:
        """For each node, the bitset of nodes that a path from it reaches, without itself."""
        result = [0] * len(self)
        for v in reversed(self.order):
            for s in bits(self.successors[v]):
                result[v] |= 1 << s | result[s]
        return tuple(result)

    @cached_property
    def siblings(self) -> tuple[int, ...]:
        """For each node, the bitset of other nodes that read one of its input tensors."""
        readers: dict[int, int] = {}
        for v, tensors in enumerate(self.inputs):
            for t in bits(tensors):
                readers[t] = readers.get(t, 0) | 1 << v
        result = [0] * len(self)
        for v, tensors in enumerate(self.inputs):
            for t in bits(tensors):
                result[v] |= readers[t]
            result[v] &= ~(1 << v)
        return tuple(result)

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """For each node, the bitset of nodes that have a path to it, without itself."""
        result = [0] * len(self)
        for v in self.order:
            for p in bits(self.predecessors[v]):
                result[v] |= 1 << p | result[p]
        return tuple(result)

    @cached_property
    def near(self) -> tuple[int, ...]:
        """For each node, the bitset of nodes that feed it, read from it or share an input tensor with it."""
        return tuple(
            before | after | beside
            for before, after, beside in zip(self.predecessors, self.successors, self.siblings, strict=True)
        )

    def closure(self, group: int) -> int:
        """Return the least convex group that holds `group`."""
        above = below = 0
        for v in bits(group):
            above |= self.ancestors[v]
            below |= self.descendants[v]
        return group | above & below

    def convex(self, group: int) -> bool:
        """Return whether no path leaves `group` and comes back."""
        for v in bits(group):
            for s in bits(self.successors[v] & ~group):
                if self.descendants[s] & group:
                    return False
        return True

    def knots(self, groups: Sequence[int]) -> list[list[int]]:
        """Return the cycles between groups: strongly connected sets of two or more, by position in `groups`.

        An empty list means that the scheme can run group by group, each after the groups that it reads from.
        """
        home = {v: i for i, group in enumerate(groups) for v in bits(group)}
        after: list[set[int]] = [set() for _ in groups]
        for v, i in home.items():
            after[i].update(home[s] for s in bits(self.successors[v]))
        return [part for part in _strong(after) if len(part) > 1]

    def in_order(self, groups: Sequence[int]) -> tuple[int, ...]:
        """Return the groups, each after all that it reads; raises `ValueError` for a scheme with a cycle."""
        if self.knots(groups):
            raise ValueError("the groups form a cycle")
        home = {v: i for i, group in enumerate(groups) for v in bits(group)}
        rank = {v: i for i, v in enumerate(self.order)}
        left = [
            len({home[p] for v in bits(group) for p in bits(self.predecessors[v])} - {i})
            for i, group in enumerate(groups)
        ]
        first = [min(rank[v] for v in bits(group)) for group in groups]
        ready = [i for i, n in enumerate(left) if n == 0]
        result: list[int] = []
        while ready:
            i = min(ready, key=first.__getitem__)
            ready.remove(i)
            result.append(groups[i])
            for j in {home[s] for v in bits(groups[i]) for s in bits(self.successors[v])} - {i}:
                left[j] -= 1
                if not left[j]:
                    ready.append(j)
        return tuple(result)


def _strong(after: list[set[int]]) -> Iterator[list[int]]:
    """Yield the strongly connected components of a graph (Tarjan), without recursion: schemes are long."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in range(len(after)):
        if root in index:
            continue
        work = [(root, iter(sorted(after[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            v, rest = work[-1]
            for w in rest:
                if w not in index:
                    index[w] = low[w] = len(index)
                    stack.append(w)
                    on_stack.add(w)
                    work.append((w, iter(sorted(after[w]))))
                    break
                if w in on_stack:
                    low[v] = min(low[v], index[w])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[v])
                if low[v] == index[v]:
                    part: list[int] = []
                    while True:
                        w = stack.pop()
                        on_stack.discard(w)
                        part.append(w)
                        if w == v:
                            break
                    yield part
