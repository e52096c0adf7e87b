"""The network as lists of root tensors, the form in which detection walks it."""

from __future__ import annotations

from dataclasses import dataclass

from onchip.network import Network
from onchip.planners.branches.merges import is_layer

__all__ = ["Graph", "graph_of"]

Operands = tuple[tuple[int, ...], ...]
"""For each operator, distinct root tensors in the order of its operands."""


@dataclass(frozen=True, slots=True)
class Graph:
    """The reads and writes of operators, and the readers and producers of tensors; views are their roots.

    `order` is the network's, `place` an operator's position in it; `layer` is 1 for an operator that counts
    as a layer, else 0.
    """

    order: tuple[int, ...]
    place: tuple[int, ...]
    reads: Operands
    writes: Operands
    readers: tuple[tuple[int, ...], ...]
    producer: tuple[int | None, ...]
    layer: tuple[int, ...]


def graph_of(network: Network) -> Graph:
    """Return the lists of a network."""
    root = network.root
    reads = tuple(tuple(dict.fromkeys(root[t] for t in op.inputs)) for op in network.operators)
    readers: list[list[int]] = [[] for _ in network.tensors]
    place = [0] * len(network.operators)
    for at, v in enumerate(network.order):
        place[v] = at
        for t in reads[v]:
            readers[t].append(v)
    return Graph(
        order=network.order,
        place=tuple(place),
        reads=reads,
        writes=tuple(op.outputs for op in network.operators),
        readers=tuple(tuple(row) for row in readers),
        producer=network.producer,
        layer=tuple(int(is_layer(op)) for op in network.operators),
    )
