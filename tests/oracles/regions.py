"""Whether pieces fit, by trying every base of everything that moves, byte by byte; for tiny memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onchip.planners.branches.regions import Piece

__all__ = ["fits", "wrong"]


def fits(pieces: Sequence[Piece], capacity: int, alignment: int) -> bool:
    """Whether any layout is legal."""
    groups: dict[object, list[Piece]] = {}
    for i, p in enumerate(pieces):
        groups.setdefault(("piece", i) if p.cluster is None else p.cluster, []).append(p)
    order = sorted(groups.values(), key=lambda g: -sum(p.bytes * (p.end - p.start) for p in g))
    used: set[tuple[int, int]] = set()  # (step, byte)

    def rest(k: int) -> bool:
        if k == len(order):
            return True
        for base in range(0, capacity + 1, alignment):
            cells: list[tuple[int, int]] = []
            legal = True
            for p in order[k]:
                at, size = base + p.offset, -(-p.bytes // alignment) * alignment
                legal = legal and at + size <= capacity and p.at in (None, at)
                cells += [(t, byte) for t in range(p.start, p.end) for byte in range(at, at + size)]
            if not legal or len(set(cells)) < len(cells) or used & set(cells):
                continue
            used.update(cells)
            if rest(k + 1):
                return True
            used.difference_update(cells)
        return False

    return rest(0)


def wrong(
    pieces: Sequence[Piece],
    addresses: Sequence[int],
    bases: Mapping[str, int],
    capacity: int,
    alignment: int,
) -> str | None:
    """What is wrong with a layout, or None."""
    if len(addresses) != len(pieces) or set(bases) != {p.cluster for p in pieces} - {None}:
        return "something has no address"
    for i, (p, at) in enumerate(zip(pieces, addresses, strict=True)):
        size = -(-p.bytes // alignment) * alignment
        if at < 0 or at % alignment or at + size > capacity or p.at not in (None, at):
            return f"{p.name} at {at}"
        if p.cluster is not None and (bases[p.cluster] < 0 or at != bases[p.cluster] + p.offset):
            return f"{p.name} at {at} is not where its cluster says"
        for q, other in zip(pieces[:i], addresses[:i], strict=True):
            length = -(-q.bytes // alignment) * alignment
            together = p.start < q.end and q.start < p.end and size and length
            if together and at < other + length and other < at + size:
                return f"{p.name} and {q.name} overlap"
    return None
