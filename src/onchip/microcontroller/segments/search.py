"""The partition of a network into groups: the fewest bytes, the least work, and the front between.

Every group to try (`fold`) is an edge from the cut where it begins to the one where it ends. The cost of a
row of groups is the largest group's bytes and the sum of their work; the best rows are found from the end
backwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from onchip.base.errors import ModelError
from onchip.microcontroller.segments.blocks import Blocks
from onchip.microcontroller.segments.bound import Allowed, Point
from onchip.microcontroller.segments.chain import Chain, Fetched, GroupChoice
from onchip.microcontroller.segments.fold import Candidate, Fold, Space
from onchip.microcontroller.segments.options import InputMode
from onchip.planners.limits import NO_LIMITS, Limits

__all__ = ["APART", "ONCE", "Groups", "Row", "Search", "chosen", "rows_of_groups", "simplest"]

Groups = dict[tuple[int, int], list[Candidate]]

WAYS: dict[InputMode, tuple[Fetched, ...] | None] = {
    "held": (),
    "once": ("rows",),
    "again": ("columns", "rows"),
}


WHOLE = 1 << 30
"""A band as high as the map, which makes nothing twice."""

APART = Space(strips=(1,), joined=False, anew=False)
"""The space where every layer sweeps whole rows, which costs no extra instructions."""

ONCE = Space(heights=(1, WHOLE), strips=(1,), anew=False)
"""The space where nothing is made twice, but layers may make a pixel a call."""


@dataclass(frozen=True, slots=True)
class Row:
    """Groups in sequence, to the network's end."""

    bytes: int
    work: int
    slower: int
    group: Candidate | None
    rest: Row | None

    def groups(self) -> tuple[Candidate, ...]:
        """Return the groups in their order."""
        found: list[Candidate] = []
        row: Row | None = self
        while row is not None and row.group is not None:
            found.append(row.group)
            row = row.rest
        return tuple(found)


class Search:
    """The groups of a network to try, in ever larger spaces of plans; it caches the costs of blocks.

    `limits` end the search early: it returns what it found by then, and `complete` is False. `complete` is
    also False when more than `MOST_LABELS` were to be kept at once: from there on only some are.
    """

    def __init__(self, chain: Chain, mode: InputMode, limits: Limits = NO_LIMITS) -> None:
        """Raise `ModelError` where a layer that is `blind` cannot run alone."""
        _must_be_possible(chain, mode)
        self.chain, self.mode, self.limits = chain, mode, limits
        self.complete = True
        self._blocks = [Blocks(chain, chain.net)]
        if chain.mirrored != chain.net:
            self._blocks.append(Blocks(chain, chain.mirrored))

    @property
    def all_orders(self) -> bool:
        """True if every order of every module's layers was tried."""
        return all(blocks.all_orders for blocks in self._blocks)

    def groups(
        self,
        space: Space,
        cap: int,
        stage: str = "",
        *,
        known: Sequence[Point] | None = None,
        beam: int | None = None,
        into: Groups | None = None,
        every: bool = False,
    ) -> Groups:
        """Return, by beginning and end, the groups within `cap` bytes that no group dominates.

        With the bytes and work of `known` plans, only groups of a plan that none of them dominates are
        returned; the groups of the known plans must then be in `into`, to which the others are added. A
        `beam` makes a quick look that keeps so many labels at a place; `every` keeps all of them.
        """
        found: Groups = {} if into is None else into
        fronts: dict[int, list[Row]] = {}
        for end in reversed(self.chain.cuts[1:]):
            fronts[end] = _rows_from(self.chain, found, fronts, end)
            allowed = None
            if known is not None:
                allowed = Allowed(known, [(row.bytes, row.work) for row in fronts[end]])
            for blocks in self._blocks:
                width = blocks.net.maps[blocks.net.layers[end - 1].makes].columns
                for strips in dict.fromkeys(-(-width // -(-width // min(n, width))) for n in space.strips):
                    if stage:
                        self.limits.say(f"{stage}: groups that end with layer {end} of {self.chain.cuts[-1]}")
                    fold = Fold(blocks, space, end, strips, cap, allowed, beam, self.limits, every=every)
                    ways = self._ways(blocks, strips)
                    candidates = [c for c in fold.candidates(ways) if self._may_share(c)]
                    for first in {candidate.first for candidate in candidates}:
                        mine = [candidate for candidate in candidates if candidate.first == first]
                        found[first, end] = _best([*found.get((first, end), ()), *mine])
                    self.complete &= fold.complete or beam is not None
                    if fold.late:
                        self.complete = False
                        return found
        return found

    def _ways(self, blocks: Blocks, strips: int) -> tuple[Fetched, ...] | None:
        """Return the ways in which a group at the beginning gets its input; None if there is none."""
        if self.mode == "once" and (strips > 1 or blocks.net is not self.chain.net):
            return None  # a camera gives its first row first, and once
        return WAYS[self.mode]

    def rows(self, space: Space) -> tuple[list[Row], Groups]:
        """Return all rows of groups that none dominates, within the least bytes that some row of this space
        needs, and the groups; the cap grows until there is one."""
        cap = sum(m.bytes for m in self.chain.net.maps.values()) // 256 + 1
        while True:
            groups = self.groups(space, cap)
            found = rows_of_groups(self.chain, groups)
            if found:
                return found, groups
            cap += cap // 4 + 1

    def _may_share(self, group: Candidate) -> bool:
        """Return whether none of the group's layers is `blind`, or it is one layer alone."""
        if not any(layer.blind for layer in self.chain.net.layers[group.first : group.end]):
            return True
        return group.end - group.first == 1 and group.strips == 1 and group.fetched is None


def _must_be_possible(chain: Chain, mode: InputMode) -> None:
    cuts = set(chain.cuts)
    for i, layer in enumerate(chain.net.layers):
        if not layer.blind:
            continue
        op = chain.net.network.operators[layer.operator]
        where = chain.net.network.source or chain.net.network.name
        if not {i, i + 1} <= cuts:
            raise ModelError(
                "reads no window that a group could follow, while other tensors are kept for later",
                where=where,
                item=op.name,
            )
        if i == 0 and mode != "held":
            raise ModelError(
                "reads no window, so that the input cannot come piece by piece", where=where, item=op.name
            )


def _best(candidates: Iterable[Candidate]) -> list[Candidate]:
    kept: list[Candidate] = []
    for new in sorted(candidates, key=lambda c: (c.work, c.slower, c.bytes, len(c.stages))):
        if not kept or new.bytes < kept[-1].bytes:
            kept.append(new)
    return kept


def rows_of_groups(chain: Chain, groups: Groups) -> list[Row]:
    """Return all rows of groups that none dominates in bytes and work, the one with the least work first."""
    fronts: dict[int, list[Row]] = {}
    for first in reversed(chain.cuts):
        fronts[first] = _rows_from(chain, groups, fronts, first)
    return fronts[0]


def simplest(chain: Chain, groups: Groups, row: Row) -> Row:
    """Return, of the rows with no more bytes and no more work, the one with the fewest layers in groups."""
    best: dict[int, tuple[int, Row]] = {chain.cuts[-1]: (0, Row(0, 0, 0, None, None))}
    for first in reversed(chain.cuts[:-1]):
        found: list[tuple[int, Row]] = []
        for end, (fused, rest) in best.items():
            for group in groups.get((first, end), ()):
                if group.bytes <= row.bytes:
                    more = 0 if group.alone else end - first
                    found.append((fused + more, _before(group, rest)))
        if found:
            best[first] = min(found, key=lambda f: (f[1].work, f[1].slower, f[0], f[1].bytes))
    return best[0][1]


def _before(group: Candidate, rest: Row) -> Row:
    """Return the row that begins with this group."""
    return Row(max(group.bytes, rest.bytes), group.work + rest.work, group.slower + rest.slower, group, rest)


def _rows_from(chain: Chain, groups: Groups, fronts: Mapping[int, list[Row]], first: int) -> list[Row]:
    """Return the rows of groups from a cut on, given those from every later cut."""
    if first == chain.cuts[-1]:
        return [Row(0, 0, 0, None, None)]
    return _front(
        [
            _before(group, rest)
            for end, rests in fronts.items()
            for group in groups.get((first, end), ())
            for rest in rests
        ]
    )


def _front(rows: Sequence[Row]) -> list[Row]:
    kept: list[Row] = []
    for new in sorted(rows, key=lambda r: (r.work, r.slower, r.bytes)):
        if not kept or new.bytes < kept[-1].bytes:
            kept.append(new)
    return kept


def chosen(chain: Chain, row: Row, mode: InputMode) -> tuple[GroupChoice, ...]:
    """Return the groups of a row with their figures in both directions."""
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
