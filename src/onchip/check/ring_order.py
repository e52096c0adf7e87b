"""The rule by which a group in rings runs: bands along one axis are made when later bands need them.

The same rule holds for the rows of a group's stages and, turned by 90 degrees, for the columns of the
operators within one stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onchip.network.access import Access
from onchip.network.windows import Range

__all__ = ["Node", "drive", "pyramid"]

NEVER = 1 << 60


@dataclass(frozen=True, slots=True)
class Node:
    """Makes lines of tensor `makes`, band by band; `bands` are the lines of each.

    `needs` gives, for every tensor that it reads, the lines that each band needs (an empty range is no need).
    A band may make nothing, as in a pool that adds up a line at a time. A node without needs fetches.
    """

    makes: int
    bands: Sequence[Range]
    needs: Mapping[int, Sequence[Range]]


def drive(nodes: Sequence[Node]) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Run until the last node has made everything: its (node, band) in order, and the most lines at once.

    Nodes that come before make all that a band needs before it is swept. The live lines of a tensor are those
    from the first that an unfinished band needs to the last one made, those being made included.
    """
    maker = {node.makes: i for i, node in enumerate(nodes)}
    order: list[tuple[int, int]] = []
    most = {node.makes: 0 for node in nodes}
    done = [0] * len(nodes)
    made = [node.bands[0][0] if node.bands else 0 for node in nodes]
    lowest: dict[int, list[tuple[int, list[int]]]] = {node.makes: [] for node in nodes}
    for i, node in enumerate(nodes):
        for tensor, ranges in node.needs.items():
            if tensor in maker:
                lowest[tensor].append((i, _from_here_on(ranges)))

    def make(i: int, upto: int) -> None:
        node = nodes[i]
        while made[i] < upto:
            band = done[i]
            for tensor, ranges in node.needs.items():
                first, end = ranges[band]
                if first < end and tensor in maker:
                    make(maker[tensor], end)
            first, end = node.bands[band]
            if first < end:
                needed = min((low[done[reader]] for reader, low in lowest[node.makes]), default=first)
                most[node.makes] = max(most[node.makes], end - min(first, needed))
            order.append((i, band))
            done[i] += 1
            made[i] = end

    if nodes and nodes[-1].bands:
        make(len(nodes) - 1, nodes[-1].bands[-1][1])
    return order, most


def _from_here_on(ranges: Sequence[Range]) -> list[int]:
    """Return for every band the first line that it or a later one needs; `NEVER` after the last one."""
    found = [NEVER] * (len(ranges) + 1)
    for i in range(len(ranges) - 1, -1, -1):
        first, end = ranges[i]
        found[i] = min(found[i + 1], first) if first < end else found[i + 1]
    return found


def pyramid(pieces: Sequence[Access], tensor: int, lines: Range, *, rows: bool) -> dict[int, Range]:
    """Return the lines of every tensor that lines of `tensor`, made by `pieces`, depend on.

    `pieces` come in topological order. The lines go from the first to the last, clipped to the maps; along
    `rows`, or else columns.
    """
    need = {tensor: lines}
    for piece in reversed(pieces):
        (made,) = piece.writes
        if made not in need:
            continue
        first, end = need[made]
        for operand in piece.operands:
            t, window = operand.tensor, operand.rows if rows else operand.columns
            low, high = window.start(first), window.end(end)
            if low < high:
                known = need.get(t, (low, high))
                need[t] = min(low, known[0]), max(high, known[1])
    return need
