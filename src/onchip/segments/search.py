"""Which groups a network falls into: the fewest bytes, the least work, and everything between.

Every group worth a look (`fold`) is an arrow from the cut where it begins to the one where it ends. What a
row of groups costs is the largest one's bytes and all their work; the best rows are found from the end
backwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from onchip.segments.blocks import Blocks
from onchip.segments.chain import Chain, Fetched, GroupChoice
from onchip.segments.fold import Candidate, Fold, Space
from onchip.segments.options import InputMode

__all__ = ["Row", "chosen", "rows_of_groups", "without_recomputation", "worth"]

WAYS: dict[InputMode, tuple[Fetched, ...]] = {"held": (), "once": ("rows",), "again": ("columns", "rows")}


WHOLE = 1 << 30
"""A band as high as the map: the only one, beside a row, that makes nothing twice."""


@dataclass(frozen=True, slots=True)
class Row:
    """Groups one behind the other, to the network's end."""

    bytes: int
    macs: int
    calls: int
    group: Candidate | None
    rest: Row | None

    def groups(self) -> tuple[Candidate, ...]:
        """The groups in their order."""
        found: list[Candidate] = []
        row: Row | None = self
        while row is not None and row.group is not None:
            found.append(row.group)
            row = row.rest
        return tuple(found)


def blocks_of(chain: Chain) -> tuple[Blocks, ...]:
    """The network's blocks forward and in reverse; once where that is the same."""
    forward = Blocks(chain, chain.net)
    return (forward,) if chain.mirrored == chain.net else (forward, Blocks(chain, chain.mirrored))


def worth(
    ways_to_run: Sequence[Blocks], mode: InputMode, space: Space, cap: int
) -> dict[tuple[int, int], list[Candidate]]:
    """By beginning and end, the groups within `cap` bytes that none beats in bytes and work alike."""
    found: dict[tuple[int, int], list[Candidate]] = {}
    for blocks in ways_to_run:
        chain, net = blocks.chain, blocks.net
        for end in chain.cuts[1:]:
            width = net.maps[net.layers[end - 1].makes].columns
            counts = dict.fromkeys(-(-width // -(-width // min(n, width))) for n in space.strips)
            for strips in counts:
                ways = WAYS[mode] if strips == 1 or mode == "again" else ()
                if net is not chain.net and mode == "once":
                    ways = ()
                for candidate in Fold(blocks, space, end, strips, cap).candidates(ways):
                    found.setdefault((candidate.first, end), []).append(candidate)
    return {ends: _best(candidates) for ends, candidates in found.items()}


def _best(candidates: Iterable[Candidate]) -> list[Candidate]:
    kept: list[Candidate] = []
    for new in sorted(candidates, key=lambda c: (c.macs, c.calls, c.bytes, len(c.stages))):
        if not kept or new.bytes < kept[-1].bytes:
            kept.append(new)
    return kept


def rows_of_groups(
    chain: Chain, groups: dict[tuple[int, int], list[Candidate]], *, cap: int | None = None
) -> list[Row]:
    """All rows of groups that none beats in bytes and work alike, the one with the least work first.

    With `cap` only work counts among those within so many bytes.
    """
    cuts = chain.cuts
    fronts: dict[int, list[Row]] = {cuts[-1]: [Row(0, 0, 0, None, None)]}
    for first in reversed(cuts[:-1]):
        rows = [
            Row(max(group.bytes, rest.bytes), group.macs + rest.macs, group.calls + rest.calls, group, rest)
            for end in cuts
            if end > first
            for group in groups.get((first, end), ())
            if cap is None or group.bytes <= cap
            for rest in fronts.get(end, ())
        ]
        fronts[first] = _front(rows, flat=cap is not None)
    return fronts[cuts[0]]


def _front(rows: Sequence[Row], *, flat: bool) -> list[Row]:
    kept: list[Row] = []
    for new in sorted(rows, key=lambda r: (r.macs, r.calls, r.bytes)):
        if not kept or (not flat and new.bytes < kept[-1].bytes):
            kept.append(new)
    return kept


def chosen(chain: Chain, row: Row, mode: InputMode) -> tuple[GroupChoice, ...]:
    """The groups of a row with their figures both ways."""
    return tuple(
        chain.group(
            c.first,
            c.end,
            c.stages,
            strips=c.strips,
            fetched=c.fetched,
            forward_only=c.fetched is not None and mode == "once",
        )
        for c in row.groups()
    )


def without_recomputation(chain: Chain, mode: InputMode) -> Row:
    """The fewest bytes in which nothing is made twice; among those the fewest calls of kernels."""
    space, blocks = Space(heights=(WHOLE,), strips=(1,), anew=False), blocks_of(chain)
    cap = sum(m.bytes for m in chain.net.maps.values()) // 16
    while True:
        groups = worth(blocks, mode, space, cap)
        rows = rows_of_groups(chain, groups)
        if rows:
            return rows_of_groups(chain, groups, cap=rows[-1].bytes)[0]
        cap += cap // 4 + 1
