"""Which groups a network falls into: the fewest bytes, the least work, and everything between.

Every group worth a look (`fold`) is an arrow from the cut where it begins to the one where it ends. What a
row of groups costs is the largest one's bytes and all their work; the best rows are found from the end
backwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from onchip.segments.blocks import Blocks
from onchip.segments.chain import Chain, Fetched, GroupChoice
from onchip.segments.fold import Candidate, Fold, Space
from onchip.segments.options import InputMode

__all__ = ["APART", "ONCE", "Groups", "Row", "Search", "chosen", "rows_of_groups"]

Groups = dict[tuple[int, int], list[Candidate]]
Progress = Callable[[str], None]

WAYS: dict[InputMode, tuple[Fetched, ...] | None] = {
    "held": (),
    "once": ("rows",),
    "again": ("columns", "rows"),
}


WHOLE = 1 << 30
"""A band as high as the map: the only one, beside a row, that makes nothing twice."""

APART = Space(heights=(WHOLE,), strips=(1,), joined=False, anew=False)
"""Every layer sweeps whole rows: what costs no instructions."""

ONCE = Space(heights=(WHOLE,), strips=(1,), anew=False)
"""Nothing is made twice, but layers may make a pixel a call."""


@dataclass(frozen=True, slots=True)
class Row:
    """Groups one behind the other, to the network's end."""

    bytes: int
    work: int
    slower: int
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


class Search:
    """The groups of a network worth a look, in ever larger spaces of plans; what blocks cost is kept.

    `deadline` (of `time.monotonic`) ends it early: what was found by then is given, and `complete` is False.
    """

    def __init__(self, chain: Chain, mode: InputMode, deadline: float = float("inf")) -> None:
        self.chain, self.mode, self.deadline = chain, mode, deadline
        self.complete = True
        self._blocks = [Blocks(chain, chain.net)]
        if chain.mirrored != chain.net:
            self._blocks.append(Blocks(chain, chain.mirrored))

    @property
    def all_orders(self) -> bool:
        """Whether every order of every module's layers was looked at."""
        return all(blocks.all_orders for blocks in self._blocks)

    def groups(self, space: Space, cap: int, progress: Progress | None = None) -> Groups:
        """By beginning and end, the groups within `cap` bytes that none beats in bytes and work alike."""
        found: dict[tuple[int, int], list[Candidate]] = {}
        for blocks in self._blocks:
            chain, net = blocks.chain, blocks.net
            for end in chain.cuts[1:]:
                width = net.maps[net.layers[end - 1].makes].columns
                for strips in dict.fromkeys(-(-width // -(-width // min(n, width))) for n in space.strips):
                    if time.monotonic() > self.deadline:
                        self.complete = False
                        return {ends: _best(candidates) for ends, candidates in found.items()}
                    if progress is not None:
                        progress(f"groups that end with layer {end} of {chain.cuts[-1]}")
                    ways = WAYS[self.mode] if strips == 1 or self.mode != "once" else None
                    if net is not chain.net and self.mode == "once":
                        ways = None  # a camera gives its first row first
                    for candidate in Fold(blocks, space, end, strips, cap).candidates(ways):
                        found.setdefault((candidate.first, end), []).append(candidate)
        return {ends: _best(candidates) for ends, candidates in found.items()}

    def rows(self, space: Space, progress: Progress | None = None) -> tuple[list[Row], Groups]:
        """All rows of groups that none beats, within the least bytes that some row of this space needs, and
        the groups; the cap grows until there is one."""
        cap = sum(m.bytes for m in self.chain.net.maps.values()) // 256 + 1
        while True:
            groups = self.groups(space, cap, progress)
            found = rows_of_groups(self.chain, groups)
            if found:
                return found, groups
            cap += cap // 4 + 1


def _best(candidates: Iterable[Candidate]) -> list[Candidate]:
    kept: list[Candidate] = []
    for new in sorted(candidates, key=lambda c: (c.work, c.slower, c.bytes, len(c.stages))):
        if not kept or new.bytes < kept[-1].bytes:
            kept.append(new)
    return kept


def rows_of_groups(chain: Chain, groups: Groups, *, cap: int | None = None) -> list[Row]:
    """All rows of groups that none beats in bytes and work alike, the one with the least work first.

    With `cap` only work counts among those within so many bytes.
    """
    cuts = chain.cuts
    fronts: dict[int, list[Row]] = {cuts[-1]: [Row(0, 0, 0, None, None)]}
    for first in reversed(cuts[:-1]):
        rows = [
            Row(max(group.bytes, rest.bytes), group.work + rest.work, group.slower + rest.slower, group, rest)
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
    for new in sorted(rows, key=lambda r: (r.work, r.slower, r.bytes)):
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
