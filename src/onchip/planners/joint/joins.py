"""Concats whose operands lie side by side in DRAM, where they are the output.

Nothing runs then, and nothing crosses."""

from __future__ import annotations

from onchip.check import one_begins_the_other, plain_concat
from onchip.network import Network, mask

__all__ = ["joinable"]


def joinable(network: Network) -> tuple[int, ...]:
    """Return the concats that may be joined in DRAM: their operands' bytes in order are the output.

    A tensor lies in one output, or in several of which each begins the next; of other concats that share an
    operand the largest one is taken. Graph inputs lie where the caller has them, and a graph output is
    written by those who make it.
    """
    place: dict[int, int] = {}  # tensor -> the largest concat that it is a part of
    found = []
    sizes = {op.id: sum(network.tensors[t].bytes for t in op.outputs) for op in network.operators}
    for v in sorted(sizes, key=lambda v: (-sizes[v], v)):
        op = network.operators[v]
        if not plain_concat(network, v) or op.workspace or network.writes[v] & network.output_roots:
            continue
        if mask(op.inputs) & network.input_roots:
            continue
        around = {place[t] for t in op.inputs if t in place}  # larger ones, which come first
        if any(not one_begins_the_other(network, other, v) for other in around):
            continue
        (made,) = op.outputs
        if around and place.setdefault(made, max(around, key=lambda w: sizes[w])) not in around:
            continue  # it lies elsewhere already
        found.append(v)
        for t in op.inputs:
            place.setdefault(t, v)
    return tuple(sorted(found))
