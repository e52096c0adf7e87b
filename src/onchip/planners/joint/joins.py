"""Concats whose operands lie side by side in DRAM, where they are the output.

Nothing runs then, and nothing crosses."""

from __future__ import annotations

from onchip.check import joined_offsets, one_begins_the_other
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
        joined = joined_offsets(network, v)
        if isinstance(joined, str) or op.workspace or network.writes[v] & network.output_roots:
            continue
        if mask(joined) & network.input_roots:
            continue
        around = {place[t] for t in joined if t in place}  # larger ones, which come first
        if any(not one_begins_the_other(network, other, v) for other in around):
            continue
        (made,) = op.outputs
        if around and place.setdefault(made, max(around, key=lambda w: sizes[w])) not in around:
            continue  # it lies elsewhere already
        found.append(v)
        for t in joined:
            place.setdefault(t, v)
    return tuple(sorted(found))
