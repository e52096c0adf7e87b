"""Groups that end at a cut: for every first layer, the stages that need the fewest bytes for their work.

A dynamic programme goes from the end backwards over blocks. A label states the cost of the stages from a cut
to the group's end; dominated labels are dropped. The columns of a tensor that a strip needs follow from the
layers between it and the group's end alone, not from how they are cut into stages, so the costs of labels add
up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from onchip.microcontroller.segments.blocks import Blocks, Staged
from onchip.microcontroller.segments.bound import Allowed
from onchip.microcontroller.segments.chain import Fetched
from onchip.microcontroller.segments.distances import Distances
from onchip.microcontroller.segments.drive import bands_of
from onchip.microcontroller.segments.group import StageChoice, figures
from onchip.microcontroller.segments.label import Label, Reaches
from onchip.microcontroller.segments.layers import ACCUMULATOR_BYTES, Layer, Layers
from onchip.microcontroller.segments.overlap import readings
from onchip.microcontroller.segments.sweep import by_column, pyramid, swept
from onchip.network.windows import Range
from onchip.planners.limits import NO_LIMITS, Limits

__all__ = ["Candidate", "Fold", "Space"]


@dataclass(frozen=True, slots=True)
class Space:
    """The space of plans to search, and the unit of work.

    Stages may have several layers (`joined`), in bands of these `heights`, and do work `anew`. Work is
    counted in multiply-accumulates; or in `instructions`, estimated with `PERCENT`, where the work of a layer
    without multiplications is the bytes that it makes.
    """

    heights: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12)
    strips: tuple[int, ...] = (1, 2, 3, 4, 6, 8)
    joined: bool = True
    anew: bool = True
    instructions: bool = False


PERCENT = {"conv": 125, "fully_connected": 125, "depthwise": 106}
"""Instructions of a layer that makes one pixel a call, in percent of those for whole rows."""

OTHERS_PERCENT = 107


MOST_LABELS = 4_000_000
"""The limit of one fold; about a gigabyte."""

FEW = 16
"""The number of labels kept at a place where not all can be."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A group, layers [first, end): its bytes with input and output, its work, and its stages."""

    first: int
    end: int
    bytes: int
    work: int
    slower: int
    stages: tuple[StageChoice, ...]
    strips: int
    fetched: Fetched | None

    @property
    def alone(self) -> bool:
        """True if the group is one layer without rings."""
        return self.end - self.first == 1 and self.fetched is None and self.strips == 1


@dataclass(frozen=True, slots=True)
class _Part:
    """The cost that a block with its heights adds to any label behind it; `taken` as in `BlockRows`."""

    rings: int
    columns: int
    workspace: int
    work: int
    slower: int
    upto: int
    taken: int

    @property
    def bytes(self) -> int:
        return self.rings + self.columns + self.workspace


class Fold:
    """Groups that end before layer `end`, in so many strips, within `cap` bytes.

    Groups that `allowed` rules out are left out. Dominated labels are dropped unless `every` is set; with a
    `beam`, only so many are kept at a place. `late` is true if the limits ended the search, `complete` if the
    number of labels stayed within `MOST_LABELS`.
    """

    def __init__(
        self,
        blocks: Blocks,
        space: Space,
        end: int,
        strips: int,
        cap: int,
        allowed: Allowed | None = None,
        beam: int | None = None,
        limits: Limits = NO_LIMITS,
        *,
        every: bool = False,
    ) -> None:
        self.blocks, self.space, self.end, self.strips, self.cap = blocks, space, end, strips, cap
        self.allowed, self.beam, self.limits, self.every = allowed, beam, limits, every
        self.complete, self.late, self._kept_labels = True, False, 0
        self.before = blocks.work_before(space.instructions)
        self.chain, self.net = blocks.chain, blocks.net
        last = self.net.layers[end - 1].makes
        self.out = self.net.maps[last]
        flat = self.net.layers[:end]
        lines = bands_of((0, self.out.columns), -(-self.out.columns // strips))
        found = [pyramid(flat, last, strip, rows=False) for strip in lines]
        tensors = {t for strip in found for t in strip}
        self.across = {t: tuple(strip.get(t, (0, 0)) for strip in found) for t in tensors}
        self.wide = {t: max(b - a for a, b in lines) for t, lines in self.across.items()}
        self.count = {t: sum(b - a for a, b in lines) for t, lines in self.across.items()}
        self.reaches = Reaches()
        self._percents: dict[tuple[int, ...], list[tuple[int, bool, int, int, int]]] = {}
        self._columns: dict[tuple[tuple[int, ...], int, int | None, int | None], int] = {}
        self._always: dict[int, bool] = {}
        self.always = self._always_read(0)
        self._distances: dict[tuple[Staged, int, int], Distances] = {}
        self._whole: dict[int, list[Label]] = {}
        self._states: dict[tuple[int, int], list[Label]] = {}

    def candidates(self, fetched: Sequence[Fetched] | None) -> list[Candidate]:
        """Return every group to try. One from the network's beginning fetches in each way of `fetched`.

        If `fetched` is empty, it finds its input in memory, as every other group does; if `fetched` is None,
        there is no such group.
        """
        closed: list[Candidate] = []
        for first in reversed([c for c in self.chain.cuts if c < self.end]):
            self._whole[first] = self._all(first)
            if self.late:
                break
            if first == 0 and fetched is None:
                continue
            if first == 0 and fetched:
                for label in self._whole[first]:
                    closed += self._fetching(label, fetched)
            else:
                closed += self._all_resident(first)
        return closed

    # -- labels ------------------------------------------------------------------------------------------

    def _all(self, first: int) -> list[Label]:
        """Return the labels from a cut on; only some of them when the time is up."""
        found = []
        for label in self._labels(first):
            found.append(label)
            if len(found) % 256 == 0 and self.limits.over():
                self.late = True
                return found
        self.late = self.limits.over()
        self._room_for(len(found))
        return found

    def _room_for(self, labels: int) -> None:
        """Count labels that are kept; above `MOST_LABELS`, keep only `FEW` at each later place."""
        self._kept_labels += labels
        if self._kept_labels > MOST_LABELS and self.beam is None:
            self.complete, self.beam = False, FEW

    def _behind(self, first: int, height: int) -> list[Label]:
        """Return the labels from a cut on, with the ring of the tensor there in bands of this height."""
        if (first, height) not in self._states:
            entering = self.chain.entering(first)
            pixel = self.wide.get(entering, 0) * self.net.maps[entering].pixel
            room = self.cap - self.out.bytes
            found = []
            for label in self._whole[first]:
                more = label.block.entering_rows(self._made(label), height) * pixel
                bytes_ = label.rings + label.columns + label.workspace + more
                if bytes_ <= room and self._worth(first, bytes_ + self.out.bytes, label.work):
                    found.append(label._replace(rings=label.rings + more))
            self._states[first, height] = self._fewest(found)
            self._room_for(len(self._states[first, height]))
        return self._states[first, height]

    def _worth(self, first: int, bytes_: int, work: int) -> bool:
        """Return whether a group that begins here or before may be in a plan that no known plan dominates."""
        return self.allowed is None or work + self.before[first] < self.allowed.work(bytes_)

    def _fewest(self, labels: list[Label]) -> list[Label]:
        """Return the labels that no other dominates, wherever the group begins."""
        if self.every:
            return labels
        ahead = self.reaches.ahead
        kept: list[Label] = []
        for new in sorted(labels, key=lambda x: (x.work, x.slower, x.rings + x.columns + x.workspace)):
            _, _, rings, columns, workspace, upto, reach, _, _ = new
            if self.beam is not None:
                if not kept or new.scratch < kept[-1].scratch:
                    kept.append(new)
                continue
            for old in kept:
                if (
                    old.rings <= rings
                    and old.columns <= columns
                    and old.workspace <= workspace
                    and old.upto == upto
                    and (old.reach == reach or ahead(old.reach, reach))
                ):
                    break
            else:
                kept.append(new)
        if self.beam is not None and len(kept) > self.beam:
            kept = [kept[i * (len(kept) - 1) // (self.beam - 1)] for i in range(self.beam)]
        return kept

    def _made(self, label: Label) -> int:
        """Return the rows of its own output that the label's first block makes."""
        return self.out.rows if label.rest is None else label.rest.upto

    def _labels(self, first: int) -> Iterator[Label]:
        """Yield every block that begins here in front of every label behind it."""
        for end, cut in self.blocks.beginning_at(first):
            if not self.space.joined and any(len(stage) > 1 for stage in cut):
                continue
            for last in (c for c in self.chain.cuts if end <= c <= self.end):
                stages = (*cut[:-1], cut[-1] + tuple(range(end, last)))
                if any(self.net.layers[i].adds_up for i in stages[-1][:-1]):
                    break
                opening = self._column_bytes(stages[-1], 1, None, 1) if last > end else 0
                if opening + self.out.bytes > self.cap and self._always_read(last):
                    break  # longer stages have larger column rings
                if last > end and not self.space.joined:
                    break
                offered = self.space.heights, self.space.anew, self.strips == 1
                for block in self.blocks.staged(first, stages, *offered):
                    yield from self._joined(first, last, block)

    def _joined(self, first: int, end: int, block: Staged) -> Iterator[Label]:
        """Yield the block in front of every label behind it."""
        room = self.cap - self.out.bytes
        opening = self._opening(block)
        if opening > room or not self._worth(end, opening + self.out.bytes, 0):
            return
        if end == self.end:
            part = self._part(block, self.out.rows)
            if part is None:
                return
            reach = self.reaches.number(self.reaches.rows[part.taken][1:]) if self.strips == 1 else 0
            label = Label(
                part.work,
                part.slower,
                part.rings,
                part.columns,
                part.workspace,
                part.upto,
                reach,
                block,
                None,
            )
            kept = self._kept(label)
            if kept <= room and self._worth(first, kept + self.out.bytes, label.work):
                yield label
            return
        parts: dict[int, _Part | None] = {}
        for rest in self._behind(end, block.stages[-1].rows):
            least = rest.rings + max(rest.columns, opening) + rest.workspace
            if least > room or not self._worth(end, least + self.out.bytes, rest.work):
                continue
            if rest.upto not in parts:
                parts[rest.upto] = self._part(block, rest.upto)
            part = parts[rest.upto]
            if part is None:
                continue
            rings = rest.rings + part.rings
            columns = max(rest.columns, part.columns)
            workspace = max(rest.workspace, part.workspace)
            work, slower = rest.work + part.work, rest.slower + part.slower
            bytes_ = rings + columns + workspace
            if bytes_ > room or not self._worth(first, bytes_ + self.out.bytes, work):
                continue
            reach = self.reaches.composed(part.taken, rest.reach) if self.strips == 1 else 0
            yield Label(work, slower, rings, columns, workspace, part.upto, reach, block, rest)

    def _always_read(self, first: int) -> bool:
        if first not in self._always:
            self._always[first] = self._reads_always(first)
        return self._always[first]

    def _reads_always(self, first: int) -> bool:
        """Return whether every line made by the layers from here on reads a line that exists."""
        for layer in self.net.layers[first : self.end]:
            made = self.net.maps[layer.makes]
            for windows, size in (layer.rows, made.rows), (layer.columns, made.columns):
                for window in windows:
                    for line in (0, size - 1):
                        low, high = window.reads((line, line + 1))
                        if low >= high:
                            return False
        return True

    def _opening(self, block: Staged) -> int:
        """Return the least bytes of the block's column rings: those of one band of each stage.

        This rules out most blocks that need too much before their other figures are computed.
        """
        if not self.always:
            return 0
        return max(self._column_bytes(stage.layers, stage.rows, None, 1) for stage in block.stages)

    def _part(self, block: Staged, upto: int) -> _Part | None:
        """Return the cost of the block while it makes `upto` rows; None where the space excludes it."""
        rows = block.rows(upto)
        maps = self.net.maps
        made = dict(rows.made)
        work = slower = 0
        rings = sum(n * self.wide.get(t, 0) * maps[t].pixel for t, n in rows.rings)
        for stage in block.stages:
            for i, adds, macs, moved, percent in self._works(stage.layers):
                t = self.net.layers[i].makes
                pixels = made[i] * (1 if adds else self.count.get(t, 0))
                if not self.space.anew and pixels > maps[t].rows * maps[t].columns:
                    return None
                later = pixels * moved * percent // 100
                work += pixels * moved + later if self.space.instructions else pixels * macs
                slower += later
            last = self.net.layers[stage.layers[-1]]
            if last.adds_up:
                rings += ACCUMULATOR_BYTES * maps[last.makes].pixel
        columns = 0
        for stage, n in zip(block.stages, rows.bands, strict=True):
            columns = max(columns, self._column_bytes(stage.layers, stage.rows, None, n))
        return _Part(
            rings,
            columns,
            max(self.net.layers[i].workspace for stage in block.stages for i in stage.layers),
            work,
            slower,
            rows.taken[-1],
            self.reaches.number(rows.taken),
        )

    def _works(self, stage: tuple[int, ...]) -> list[tuple[int, bool, int, int, int]]:
        """Return per layer: index, whether it adds up, a pixel's work in both units, percent more of it."""
        if stage not in self._percents:
            layers = self.blocks.layers(stage)
            slower = by_column(layers, ())
            self._percents[stage] = [
                (
                    i,
                    layer.adds_up,
                    layer.macs,
                    max(layer.macs, self.net.maps[layer.makes].pixel),
                    percent(self.net, layer) - 100 if slower else 0,
                )
                for i, layer in zip(stage, layers, strict=True)
            ]
        return self._percents[stage]

    def _column_bytes(
        self, stage: tuple[int, ...], height: int, fetched: int | None, bands: int | None = None
    ) -> int:
        """Return the bytes of a stage's column rings in its first `bands`, or in all."""
        if len(stage) == 1 and fetched is None:
            return 0
        key = stage, height, fetched, bands
        if key not in self._columns:
            across = self.across.get(swept(self.blocks.layers(stage))[-1].makes)
            run = len(self.blocks.sweep(stage, height).taken) if bands is None else bands
            self._columns[key] = (
                0 if across is None else self.blocks.column_bytes(stage, height, across, fetched, run)
            )
        return self._columns[key]

    # -- whole groups ------------------------------------------------------------------------------------

    def _candidate(self, first: int, bytes_: int, label: Label, fetched: Fetched | None) -> list[Candidate]:
        if bytes_ > self.cap or not self._worth(first, bytes_, label.work):
            return []
        stages = label.all_stages()
        return [Candidate(first, self.end, bytes_, label.work, label.slower, stages, self.strips, fetched)]

    def _all_resident(self, first: int) -> list[Candidate]:
        """Return the groups from a cut on that find their input in memory and that no group dominates."""
        least = max(self.net.maps[self.chain.entering(first)].bytes, self.out.bytes)
        found: list[Candidate] = []
        for label in sorted(self._whole[first], key=lambda x: (x.work, x.slower)):
            room = found[-1].bytes if found else self.cap + 1
            if least + self._kept(label) < room:
                found += (c for c in self._resident(first, label) if c.bytes < room)
        return found

    def _alone(self, label: Label) -> bool:
        return self.strips == 1 and label.rest is None and sum(len(s.layers) for s in label.block.stages) == 1

    def _kept(self, label: Label) -> int:
        """Return the bytes beside input and output: a pool that is no group of its own keeps no sums."""
        return label.workspace if self._alone(label) else label.scratch

    def _resident(self, first: int, label: Label) -> list[Candidate]:
        entering = self.chain.entering(first)
        source = self.net.maps[entering]
        if self.strips > 1:
            ends = source.bytes + self.out.bytes
        elif label.rest is None:
            alone = self._alone(label)
            found = figures(self.net, label.block.stages, resident=entering, alone=alone)
            ends = found.span(source.bytes, self.out.bytes)
        else:
            ends = self._over(label, label.rest, entering).span(source.bytes, self.out.bytes)
        return self._candidate(first, ends + self._kept(label), label, None)

    def _over(self, label: Label, rest: Label, entering: int) -> Distances:
        """Return the legal distances of a group whose first and last block differ.

        The first block reads the input in whole rows, in the columns of the layer that reads them; whole rows
        of the output are written in between.
        """
        import numpy as np

        key = label.block, rest.upto, rest.reach
        if key not in self._distances:
            block, source = label.block, self.net.maps[entering]
            reach = np.array(self.reaches.rows[rest.reach], dtype=np.int64)
            across = [
                one.columns
                for stage in block.stages
                for one in readings(self.net, self.blocks.layers(stage.layers), self._wide(stage), entering)
            ]
            late = np.array(block.rows(rest.upto).late, dtype=np.int64)
            written = np.searchsorted(reach, late - 1, "right")
            edges = sorted({edge for columns in across for edge in columns})
            lows, highs = [], []
            for left, right in pairwise(edges):
                covers = [i for i, (a, b) in enumerate(across) if a <= left and right <= b]
                if not covers:
                    continue
                end = written[covers].max(axis=0) * self.out.row
                row = np.flatnonzero(end)
                lows.append(1 - row * source.row - right * source.pixel)
                highs.append(end[row] - 1 - row * source.row - left * source.pixel)
            none = np.zeros(0, dtype=np.int64)
            lost = np.concatenate((none, *lows)), np.concatenate((none, *highs))
            self._distances[key] = Distances.but(*lost)
        return self._distances[key]

    def _wide(self, stage: StageChoice) -> Range:
        """Return the columns that a stage sweeps, in one strip."""
        return self.across.get(swept(self.blocks.layers(stage.layers))[-1].makes, ((0, 0),))[0]

    def _fetching(self, label: Label, fetched: Sequence[Fetched]) -> list[Candidate]:
        found = []
        entering = self.chain.entering(0)
        if "rows" in fetched:
            ring = label.block.entering_rows(self._made(label), 1)
            more = ring * self.wide.get(entering, 0) * self.net.maps[entering].pixel
            found += self._candidate(0, self.out.bytes + label.scratch + more, label, "rows")
        later = any(entering in self.net.layers[i].reads for s in label.block.stages[1:] for i in s.layers)
        if "columns" in fetched and not later:
            first = label.block.stages[0]
            run = label.block.rows(self._made(label)).bands[0]
            opening = self._column_bytes(first.layers, first.rows, entering, run)
            scratch = label.rings + max(label.columns, opening) + label.workspace
            found += self._candidate(0, self.out.bytes + scratch, label, "columns")
        return found


def percent(net: Layers, layer: Layer) -> int:
    """Return the instructions of a layer that makes one pixel a call, in percent of those for whole rows."""
    geometry = net.network.operators[layer.operator].geometry
    return PERCENT.get(geometry.kind, OTHERS_PERCENT) if geometry is not None else OTHERS_PERCENT
