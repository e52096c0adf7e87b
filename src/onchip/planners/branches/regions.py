"""Addresses for the pieces that live during one module: some given, some at fixed distances, the rest free.

`place` returns addresses, a proof that there are none (None), or `Undecided`. First fit in a few orders finds
most; then the bases of clusters are tried where regions meet the ends of the memory or each other, with the
packer (`onchip.planners.packing`) for the rest; the remaining cases are searched completely
(`region_search`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from onchip.planners.branches.region_body import ALL_RULES, Bases, Body, Part, RegionRules
from onchip.planners.branches.region_fit import first_fit, with_packer
from onchip.planners.packing import Buffer, fault

__all__ = [
    "ALL_RULES",
    "Overload",
    "Piece",
    "Placed",
    "RegionRules",
    "Undecided",
    "counted",
    "overload",
    "place",
]


@dataclass(frozen=True, slots=True)
class Piece:
    """`bytes` that live on chip in the half-open interval of steps [start, end).

    They occupy `bytes` rounded up to the alignment; none at all when `bytes` is 0. `at` is an address given
    from outside. Pieces of one `cluster` lie at a common base + `offset`.
    """

    name: str
    bytes: int
    start: int
    end: int
    at: int | None = None
    cluster: str | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        if self.bytes < 0:
            raise ValueError(f"{self.name!r}: a negative number of bytes: {self.bytes:,}")
        if self.start >= self.end:
            raise ValueError(f"{self.name!r}: there at no step: [{self.start}, {self.end})")
        if self.offset < 0 or (self.offset and self.cluster is None):
            raise ValueError(f"{self.name!r}: an offset, {self.offset:,}, that is negative or of no cluster")


@dataclass(frozen=True, slots=True)
class Placed:
    """An address in bytes per piece, and the base of every cluster (never negative)."""

    addresses: tuple[int, ...]
    bases: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Undecided:
    """Neither addresses nor a proof that there are none, after `nodes` nodes of search."""

    nodes: int


class Overload(NamedTuple):
    """A step whose live pieces need more bytes than there are, however they lie."""

    step: int
    bytes: int
    pieces: tuple[Piece, ...]


def overload(pieces: Sequence[Piece], capacity: int, alignment: int) -> Overload | None:
    """Return the step with the most bytes, rounded up to the alignment, if they are too many; else None."""
    worst = None
    room = capacity // alignment * alignment
    for step in sorted({p.start for p in pieces}):
        there = tuple(p for p in pieces if p.start <= step < p.end)
        load = sum(-(-p.bytes // alignment) * alignment for p in there)
        if load > max(room, worst.bytes if worst else 0):
            worst = Overload(step, load, there)
    return worst


def place(
    pieces: Sequence[Piece],
    capacity: int,
    alignment: int,
    *,
    prefer: Mapping[str, Sequence[int]] | None = None,
    most_nodes: int = 20_000,
    rules: RegionRules = ALL_RULES,
) -> Placed | Undecided | None:
    """Return addresses in [0, capacity), multiples of `alignment`; no two live pieces share a byte.

    None: proved that there are none. `prefer` gives bases in bytes to try first for a cluster, rounded down
    to the alignment. Raises `ValueError` for a given address or an offset that is no multiple of it.
    """
    found, proved, nodes = counted(pieces, capacity, alignment, prefer or {}, most_nodes, rules)
    return found if found is not None or proved else Undecided(nodes)


def counted(
    pieces: Sequence[Piece],
    capacity: int,
    alignment: int,
    prefer: Mapping[str, Sequence[int]],
    most_nodes: int,
    rules: RegionRules = ALL_RULES,
) -> tuple[Placed | None, bool, int]:
    """Run `place`: return addresses or None, whether that is proved, and the nodes of search spent."""
    room = capacity // alignment
    bodies = _bodies(pieces, room, alignment)
    if overload(pieces, capacity, alignment) is not None:
        return None, True, 0
    units = {c: [at // alignment for at in bases] for c, bases in prefer.items()}
    found, proved, nodes = _solve(bodies, room, units, most_nodes, rules)
    if found is None:
        return None, proved, nodes
    addresses = [0] * len(pieces)
    for body, base in zip(bodies, found, strict=True):
        for part in body.parts:
            addresses[part.piece] = (base + part.offset) * alignment
    named = {b.cluster: at * alignment for b, at in zip(bodies, found, strict=True) if b.cluster is not None}
    return Placed(tuple(addresses), named), True, nodes


def _bodies(pieces: Sequence[Piece], room: int, alignment: int) -> list[Body]:
    """Return the pieces and clusters in units of the alignment; raises `ValueError` as `place` does."""
    if alignment < 1:
        raise ValueError(f"an alignment of {alignment:,} bytes")
    together: dict[str | int, list[int]] = {}
    for i, piece in enumerate(pieces):
        for what, value in (("address", piece.at or 0), ("offset", piece.offset)):
            if value % alignment:
                raise ValueError(
                    f"{piece.name!r}: an {what}, {value:,}, that is no multiple of {alignment:,}"
                )
        together.setdefault(i if piece.cluster is None else piece.cluster, []).append(i)
    bodies = []
    for key, members in together.items():
        parts = []
        low, high = 0, room
        for i in members:
            piece = pieces[i]
            part = Part(i, piece.offset // alignment, -(-piece.bytes // alignment), piece.start, piece.end)
            parts.append(part)
            high = min(high, room - part.offset - part.size)
            if piece.at is not None:
                base = piece.at // alignment - part.offset
                low, high = max(low, base), min(high, base)
        bodies.append(Body(key if isinstance(key, str) else None, tuple(parts), low, high))
    return bodies


def _solve(
    bodies: Sequence[Body], room: int, prefer: Bases, most_nodes: int, rules: RegionRules
) -> tuple[list[int] | None, bool, int]:
    """Return a base per body, in units of the alignment, or None; whether that is proved; nodes."""
    if any(b.impossible for b in bodies):
        return None, True, 0
    found, proved, nodes = None, False, 0
    if rules.quick:
        found = first_fit(bodies, prefer)
        if found is None:
            found, proved, nodes = with_packer(bodies, room, prefer, most_nodes)
    if found is None and not proved:
        from onchip.planners.branches.region_search import search

        found, proved, more = search(bodies, room, most_nodes - nodes, rules)
        nodes += more
    if found is None:
        return None, proved, nodes
    where = [(p, at + p.offset) for b, at in zip(bodies, found, strict=True) for p in b.parts if p.size]
    wrong = fault([Buffer(p.start, p.end, p.size) for p, _ in where], [at for _, at in where], room)
    if wrong is not None or any(not b.low <= at <= b.high for b, at in zip(bodies, found, strict=True)):
        raise AssertionError(f"the address search is wrong: {wrong}")
    return found, True, nodes
