"""One group, executed band by band and slice by slice in its scratch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from onchip.plans import Group, Tiling
from onchip.run.state import State
from onchip.run.tiled.bands import Band, bands_of
from onchip.run.tiled.chain import Chain
from onchip.run.tiled.dram import Dram
from onchip.run.tiled.kernels import Kernels, fitting
from onchip.run.tiled.maps import Region
from onchip.run.tiled.memory import lay_out
from onchip.run.tiled.passes import IllegalTiling, Pass, passes_of, takes_two
from onchip.run.tiled.poison import poison_of
from onchip.run.tiled.shape import GroupShape
from onchip.run.tiled.whole import Whole

__all__ = ["Executed", "run_in_bands"]

Array = np.ndarray[Any, Any]
Span = tuple[int, int]


@dataclass(frozen=True)
class Executed:
    """The bytes and elements of a group's execution: planned bytes by tensor, weights, elements (again)."""

    subgroups: int
    crossed: Mapping[int, int]
    weights: int
    made: int
    again: int
    written: Mapping[int, Array]


def run_in_bands(
    state: State,
    kernels: Kernels,
    group: Group,
    tiling: Tiling,
    shape: GroupShape,
    whole: Mapping[int, Whole],
) -> Executed:
    """Run a group by its tiling, its `whole` operands in place. Raises `IllegalTiling` if it cannot."""
    names = {t: state.name(t) for t in shape.tensors}
    streamed = set()
    for name in tiling.streamed:
        t = state.network.tensor_id.get(name)
        if t not in names:
            raise IllegalTiling("tiling-streamed", f"it streams {name}, which it neither reads nor writes")
        if t in whole:
            raise IllegalTiling("tiling-operands", f"its tiling streams {name}, and its run does not")
        streamed.add(t)
    if tiling.rows < 1 or tiling.channels < 1 or not 1 <= tiling.images <= shape.images:
        raise IllegalTiling(
            "tiling-sizes", f"bands of {tiling.rows} rows, {tiling.channels} channels, {tiling.images} images"
        )
    passes = passes_of(shape, streamed, tiling.channels, names)
    bands = bands_of(shape, tiling.rows, streamed)
    subgroups = -(-shape.images // tiling.images) * len(bands)
    if subgroups != group.subgroups:
        raise IllegalTiling(
            "tiling-subgroups", f"it states {group.subgroups:,} sub-groups, and its bands are {subgroups:,}"
        )
    return _Run(state, kernels, group, tiling, shape, passes, bands, whole).all(subgroups)


class _Run:
    def __init__(
        self,
        state: State,
        kernels: Kernels,
        group: Group,
        tiling: Tiling,
        shape: GroupShape,
        passes: list[Pass],
        bands: list[Band],
        whole: Mapping[int, Whole],
    ) -> None:
        self.state, self.kernels, self.group, self.shape = state, kernels, group, shape
        self.passes, self.bands, self.step = passes, bands, tiling.channels
        self.memory = lay_out(state, group, tiling, shape, bands, whole)
        self.rings, self.slices, self.weights = self.memory.rings, self.memory.slices, self.memory.weights
        self.dram = Dram(state, shape, whole)
        self.chunk = tiling.images
        self.images: Span = (0, 0)
        self.band = bands[0]
        self.had: dict[int, int] = {}
        self.ready: set[int] = set()
        self.parked: dict[int, set[int]] = {}  # by output: operands that lie in its buffer, not yet combined
        self.waiting: dict[int, np.dtype[Any]] = {}  # by operand that waits or has waited: its elements
        self.places: Mapping[int, int] = {}  # of the current pass
        self.partial: set[int] = set()  # outputs whose buffer has a sum that is not complete
        self.beside: dict[int, Array] = {}  # by operand that waits: numbers wider than its output's
        self.wide: dict[int, Array] = {}  # by output: what came of the operand of a sum of whole numbers
        self.emitted: set[tuple[int, Span]] = set()  # slices that a pass has made from several operands
        self.made = self.again = 0

    # -- the loops -----------------------------------------------------------------------------------------

    def all(self, subgroups: int) -> Executed:
        for first in range(0, self.shape.images, self.chunk):
            self.images = (first, min(first + self.chunk, self.shape.images))
            for ring in self.rings.values():
                ring.begin(self.images)
            self.had = dict.fromkeys(self.shape.tensors, 0)
            for band in self.bands:
                self.band = band
                self.subgroup()
                self.had = {t: end for t, (_, end) in self.band.new.items()}
            for t in self.dram.sources:
                self.cross_the_rest(t)
        weights = sum(w.moved for w in self.weights.values())
        written = {t: self.shape.maps[t].stored(value) for t, value in self.dram.written.items()}
        return Executed(subgroups, self.dram.crossed, weights, self.made, self.again, written)

    def subgroup(self) -> None:
        """Run one band of one or some images: every operator with all its needs runs, until all have."""
        self.ready = set()
        for chain in self.shape.chains:
            self.weights[chain.op.id].forget()
        for t, ring in self.rings.items():
            ring.drop(self.band.low[t])
            if t in self.dram.sources:
                self.bring_rows(t, self.band.new[t])
            if t in self.shape.external:
                self.ready.add(t)
        waiting: list[Chain | Pass] = [c for c in self.shape.chains if c.output in self.rings]
        waiting += self.passes
        while waiting:
            job = next((job for job in waiting if self.can_run(job)), None)
            if job is None:
                stuck = waiting[0]
                name = stuck.op.name if isinstance(stuck, Chain) else self.state.name(stuck.tensors[0])
                raise IllegalTiling("tiling-passes", f"its streamed tensors wait for one another, at {name}")
            waiting.remove(job)
            if isinstance(job, Pass):
                self.run_pass(job)
            else:
                self.finish(job)

    def can_run(self, job: Chain | Pass) -> bool:
        if isinstance(job, Chain):
            return self.ready.issuperset(job.reads)
        needs = [self.shape.maker[t] for t in job.tensors if t in self.shape.maker]
        # One operand can wait in the output's buffer for held ones, two cannot.
        needs += [c for t in job.tensors for c in self.shape.readers[t] if takes_two(c, self.slices)]
        return all(t in self.ready or t in job.tensors for c in needs for t in c.reads)

    def cross_the_rest(self, t: int) -> None:
        """Count the rows of an external map behind the last that a window reads: they cross with the rest."""
        rows = (self.had[t], self.shape.maps[t].rows)
        if rows[0] == rows[1]:
            return
        if t in self.rings:
            ring = self.rings[t]
            for first in range(*rows, ring.rows):
                ring.begin(self.images)
                self.bring_rows(t, (first, min(first + ring.rows, rows[1])))
            return
        height = max(band.held(t) for band in self.bands)
        for first in range(*rows, height):
            for c in range(0, self.shape.maps[t].channels, self.step):
                span = (c, min(c + self.step, self.shape.maps[t].channels))
                self.bring_slice(t, (first, min(first + height, rows[1])), span)
        self.slices[t].empty()

    # -- from and to DRAM ----------------------------------------------------------------------------------

    def region(self, t: int, rows: Span, channels: Span | None = None) -> Region:
        found = self.shape.maps[t]
        return Region(self.images, channels or (0, found.channels), rows, (0, found.columns))

    def bring_rows(self, t: int, rows: Span) -> None:
        if rows[0] < rows[1]:
            self.rings[t].put(rows, self.dram.read(t, self.region(t, rows)), slice(None), done=True)

    def bring_slice(self, t: int, rows: Span, channels: Span) -> None:
        self.slices[t].put(rows, channels, self.dram.read(t, self.region(t, rows, channels)))

    def made_rows(
        self, t: int, rows: Span, channels: Span, value: Array, chain: Chain, *, exact: bool
    ) -> None:
        """Compare and count a finished part of a map; the rows that are new go out if it escapes."""
        region = self.region(t, rows, channels)
        self.state.comparison.part(
            t,
            self.shape.maps[t],
            value,
            region,
            f"written by {chain.op.name} ({self.state.where()})",
            exact,
        )
        old = max(0, min(rows[1], self.had[t]) - rows[0])
        line = value.size // (rows[1] - rows[0])
        self.made += value.size
        self.again += old * line
        if t in self.dram.written and old < rows[1] - rows[0]:
            self.dram.write(t, self.region(t, (rows[0] + old, rows[1]), channels), value[:, :, old:])

    # -- operators -----------------------------------------------------------------------------------------

    def finish(self, chain: Chain) -> None:
        """Make a held output, from held operands, or the rest that passes have left."""
        t, rows = chain.output, self.band.new[chain.output]
        self.ready.add(t)
        weights = self.weights[chain.op.id]
        channels = (0, self.shape.maps[t].channels)
        inputs = [x for x in chain.reads if x in self.slices]
        if rows[0] == rows[1]:
            if not inputs:
                weights.fetch(channels)
            return
        ring = self.rings[t]
        if not inputs:
            value = self.whole(chain, rows)
            self.take_tiles(chain, rows)
            ring.put(rows, value, slice(None), done=True)
            exact = self.is_whole(chain, rows)
        elif t in self.partial:
            self.partial.discard(t)
            if t in self.wide:
                value = self.gathered(chain, [self.wide.pop(t)], rows, channels)
                ring.put(rows, value, slice(None), done=True)
                # Rows of floats may be added up in another order than the whole.
                exact = value.dtype.kind != "f" or self.is_whole(chain, rows)
                self.made_rows(t, rows, channels, value, chain, exact=exact)
                return
            total = ring.raw(rows, self.count, slice(None)).copy()
            bias = weights.vector(chain.bias, channels)
            value = self.kernels.closed(chain, total, bias)
            value = self.behind(chain, {chain.result: value}, rows, channels)
            ring.put(rows, value, slice(None), done=True)
            exact = False
        else:
            self.finish_pieces(chain, rows)
            ring.done(rows)
            value, exact = ring.get(rows, self.count, slice(None), "itself"), False
        self.made_rows(t, rows, channels, value, chain, exact=exact)

    def finish_pieces(self, chain: Chain, rows: Span) -> None:
        """Add the held operands' part to an output whose streamed ones have come."""
        if chain.kind == "concat":
            for t, first in chain.pieces:
                if t in self.rings:
                    self.emit_piece(chain, t, (0, self.shape.maps[t].channels), first, rows)
            return
        parked = self.parked.pop(chain.output, set())
        if any(t in self.rings for t in chain.reads if parked and t not in parked):
            self.combine(chain, rows, (0, self.shape.maps[chain.output].channels), parked)

    def whole(self, chain: Chain, rows: Span) -> Array:
        """Return all channels of some rows, from held operands; weights come slice by slice, all of them."""
        out = self.shape.maps[chain.output]
        channels = (0, out.channels)
        weights = self.weights[chain.op.id]
        weights.fetch(channels)
        operands = [self.operand(chain, i, rows, None) for i in range(len(chain.reads))]
        if chain.kind == "elementwise":
            values = dict(zip(chain.names, operands, strict=True))
        else:
            values = {chain.result: self.gathered(chain, operands, rows, channels)}
        return self.behind(chain, values, rows, channels)

    def take_tiles(self, chain: Chain, rows: Span) -> None:
        """Follow the tiles of an operator's weights where its output shares bytes with an input.

        Each reads its channels of all these rows and then writes its own. A later one must not read bytes
        that it has overwritten. (The values are those of one call.)
        """
        ring, weights = self.rings[chain.output], self.weights[chain.op.id]
        apart = self.state.plan.chip.weight_scratchpad_bytes is not None
        if apart or not isinstance(ring, Whole) or not ring.shadow:
            return
        for outs, ins in weights.tiles():
            for i in range(len(chain.reads)):
                for channels in _read_by(chain, outs, ins):
                    self.operand(chain, i, rows, channels)
            ring.overwrite(rows, slice(*outs))

    def gathered(self, chain: Chain, operands: list[Array], rows: Span, channels: Span) -> Array:
        """Run the head on some output channels, from the input channels that they read."""
        weights, out = self.weights[chain.op.id], self.shape.maps[chain.output]
        if chain.nodes:
            return self.kernels.reached(chain, operands, self.images, rows, channels, weights.held())
        kernels = None if weights.kernels is None else weights.kernels[channels[0] : channels[1]]
        return self.kernels.head(
            chain,
            operands,
            self.missing(chain, 0, rows),
            (rows[1] - rows[0], out.columns),
            kernels,
            weights.vector(chain.bias, channels),
            whole=rows == (0, out.rows) and channels == (0, out.channels),
        )

    def behind(self, chain: Chain, values: Mapping[str, Array], rows: Span, channels: Span) -> Array:
        """Run the element-wise nodes of a chain."""
        channelled = self.weights[chain.op.id].channelled(channels)
        return self.kernels.tail(chain, values, self.region(chain.output, rows, channels), channelled)

    def operand(self, chain: Chain, i: int, rows: Span, channels: Span | None) -> Array:
        """Return an operator's operand for some rows and channels of its output; None: all channels."""
        t, found = chain.reads[i], self.shape.maps[chain.reads[i]]
        window = chain.rows[i].reads(rows)
        every = channels is None or found.channels == 1 < self.shape.maps[chain.output].channels
        span = (0, found.channels) if every or channels is None else channels
        if t in self.slices:
            return self.slices[t].get(window, span, chain.op.name)
        return self.rings[t].get(window, self.count, slice(*span), chain.op.name)

    def missing(self, chain: Chain, i: int, rows: Span) -> tuple[int, int, int, int]:
        top, bottom = chain.rows[i].missing(rows)
        left, right = chain.columns[i].missing((0, self.shape.maps[chain.output].columns))
        return top, left, bottom, right

    def is_whole(self, chain: Chain, rows: Span) -> bool:
        """Return whether the operator runs once, on whole maps whose values are exact."""
        whole = rows == (0, self.shape.maps[chain.output].rows) and self.count == self.shape.images
        return whole and not chain.apart and not self.state.comparison.approximate(chain.reads)

    @property
    def count(self) -> int:
        """The number of images of this sub-group."""
        return self.images[1] - self.images[0]

    # -- passes --------------------------------------------------------------------------------------------

    def run_pass(self, job: Pass) -> None:
        """Run all channels of the pass's tensors, a slice at a time."""
        whole: dict[int, Array] = {}
        self.places = job.places
        for t in job.tensors:
            chain = self.shape.maker.get(t)
            rows = self.band.new[t]
            if chain is None or any(x in self.slices for x in chain.reads):
                continue
            if rows[0] < rows[1]:
                whole[t] = self.whole(chain, rows)  # in one call: channel by channel it is the same
        covered = dict.fromkeys(job.tensors, 0)
        self.emitted.clear()
        for t, channels in job.steps:
            rows = self.band.new[t]
            if rows[0] == rows[1]:
                continue
            if t in whole:
                self.slices[t].put(rows, channels, whole[t][:, slice(*channels)])
                part = whole[t][:, slice(*channels)]
                self.made_rows(t, rows, channels, part, self.shape.maker[t], exact=False)
            elif t in self.shape.maker:
                self.emit_held(self.shape.maker[t], channels, rows)
            else:
                self.bring_slice(t, rows, channels)
            self.push(t, channels, covered)
        for t in job.tensors:
            rows = self.band.new[t]
            if rows[0] < rows[1] and covered[t] != self.shape.maps[t].channels:
                raise IllegalTiling(
                    "tiling-passes", f"the slices of {self.state.name(t)} do not meet those it is read with"
                )
            self.slices[t].empty()
            chain = self.shape.maker.get(t)
            if rows[0] == rows[1] and chain is not None:
                self.weights[chain.op.id].fetch((0, self.shape.maps[t].channels))
        self.idle_weights(job)
        self.ready.update(job.tensors)

    def idle_weights(self, job: Pass) -> None:
        """Refill the weights of operators that make no rows in a sub-group, as the plan states."""
        for chain in self.shape.chains:
            idle = self.band.new[chain.output][0] == self.band.new[chain.output][1]
            first = next((t for t in chain.reads if t in self.slices), None)
            if idle and chain.output in self.rings and first in job.tensors:
                self.weights[chain.op.id].fetch((0, self.shape.maps[chain.output].channels))

    def push(self, t: int, channels: Span, covered: dict[int, int]) -> None:
        """Hand a new slice of a streamed tensor to all its readers."""
        covered[t] += channels[1] - channels[0]
        for chain in self.shape.readers[t]:
            rows = self.band.new[chain.output]
            if rows[0] == rows[1]:
                continue
            if chain.kind == "concat":
                for x, first in chain.pieces:
                    if x == t:
                        self.emit_piece(chain, t, channels, first, rows)
                        self.after_slice(chain, (first + channels[0], first + channels[1]), covered)
            elif chain.reduces:
                self.accumulate(chain, t, channels, rows)
            elif (chain.op.id, channels) not in self.emitted and self.arrived(chain, t, channels):
                self.emitted.add((chain.op.id, channels))
                self.emit(chain, channels, rows)
                self.after_slice(chain, channels, covered)

    def after_slice(self, chain: Chain, channels: Span, covered: dict[int, int]) -> None:
        if chain.output in self.slices:
            self.push(chain.output, channels, covered)

    def in_step(self, x: int, t: int) -> bool:
        """Return whether a tensor's channels come in the current pass together with the same ones of t."""
        return x in self.places and self.places[x] == self.places[t]

    def arrived(self, chain: Chain, t: int, channels: Span) -> bool:
        """Return whether all operands of an element-wise operator are there; if not, this one may wait."""
        others = [x for x in dict.fromkeys(chain.reads) if x != t]
        here = [x for x in others if self.in_step(x, t) and self.slices[x].has(channels)]
        here += [x for x in others if x in self.rings and x in self.ready]
        if len(here) == len(others):
            return True
        if all(self.in_step(x, t) for x in others if x not in here):
            return False  # the other slice comes in this step
        waits_for_held = all(x in self.rings for x in others if x not in here)
        if chain.output in self.slices or (len(others) > 1 and not waits_for_held):
            raise IllegalTiling(
                "tiling-passes", f"{chain.op.name} has too few operands when {self.state.name(t)} passes"
            )
        self.park(chain, t, channels)
        return False

    def park(self, chain: Chain, t: int, channels: Span) -> None:
        """Let one of two operands wait in the output's buffer, or combine it with the other one there."""
        rows, parked = self.band.new[chain.output], self.parked.setdefault(chain.output, set())
        if parked - {t}:
            self.combine(chain, rows, channels, parked)
            return
        parked.add(t)
        value = self.slices[t].get(rows, channels, chain.op.name)
        ring = self.rings[chain.output]
        found = self.shape.maps[chain.output]
        if not self.shape.maps[t].same_as(found):
            raise IllegalTiling(
                "tiling-passes", f"{self.state.name(t)} cannot wait in the buffer of {chain.op.name}"
            )
        self.waiting[t] = value.dtype
        fits = value.dtype == ring.data.dtype or value.dtype == np.bool_  # false and true are numbers there
        if fits:
            ring.put(rows, value.astype(ring.data.dtype), slice(*channels), done=False)
            return
        # Planned as wide as the output; a number that is wider here lies beside the scratch.
        size = (value.shape[0], found.channels, *value.shape[2:])
        beside = self.beside.get(t)
        if beside is None or beside.shape != size or beside.dtype != value.dtype:
            beside = self.beside[t] = np.zeros(size, value.dtype)
        beside[:, slice(*channels)] = value

    def combine(self, chain: Chain, rows: Span, channels: Span, parked: set[int]) -> None:
        """Run an element-wise operator on a parked operand and one that is there."""
        ring, span = self.rings[chain.output], slice(*channels)
        if chain.op.weight_bytes:
            self.weights[chain.op.id].fetch(channels)
        values = {
            name: self.parked_value(x, ring.raw(rows, self.count, span), span)
            if x in parked
            else self.operand(chain, i, rows, channels)
            for i, (name, x) in enumerate(zip(chain.names, chain.reads, strict=True))
        }
        ring.put(rows, self.behind(chain, values, rows, channels), span, done=False)

    def parked_value(self, t: int, lying: Array, channels: slice) -> Array:
        """Return an operand that waits in the output's buffer, where `lying` is, or beside the scratch."""
        if t in self.beside and self.waiting[t] != lying.dtype:
            found: Array = self.beside[t][:, channels]
            return found
        return lying.astype(self.waiting[t])

    def accumulate(self, chain: Chain, t: int, channels: Span, rows: Span) -> None:
        """Add the share of some input channels of a sum to the output's buffer."""
        ring, weights = self.rings[chain.output], self.weights[chain.op.id]
        missing = self.missing(chain, 0, rows)
        if chain.output not in self.partial:
            self.partial.add(chain.output)
            zero = np.zeros(self.region(chain.output, rows).shape, ring.data.dtype)
            ring.put(rows, zero, slice(None), done=False)
        operand = self.slices[t].get(chain.rows[0].reads(rows), channels, chain.op.name)
        outs = self.shape.maps[chain.output].channels
        if chain.kind == "reached":
            self.widen(chain, t, channels, operand)
        for into, out, of in _parts(chain, channels, outs):
            weights.fetch(out, of)
            assert weights.kernels is not None
            if chain.kind == "reached":
                continue
            kernels = weights.kernels[out[0] : out[1], of[0] : of[1]]
            part = operand[:, into[0] - channels[0] : into[1] - channels[0]]
            added = self.kernels.partial(chain, part, kernels, missing)
            span = slice(*out)
            lying = ring.raw(rows, self.count, span)
            ring.put(rows, lying + fitting(chain, added, lying.shape), span, done=False)

    def widen(self, chain: Chain, t: int, channels: Span, operand: Array) -> None:
        """Keep a slice for a sum of whole numbers, whose bits the elements of its output cannot hold.

        Chips have wide accumulators beside the scratch; here its operand waits there until it is complete.
        """
        shape = (operand.shape[0], self.shape.maps[t].channels, *operand.shape[2:])
        waiting = self.wide.setdefault(
            chain.output, np.full(shape, poison_of(chain.nodes, operand.dtype), operand.dtype)
        )
        waiting[:, slice(*channels)] = operand

    def emit(self, chain: Chain, channels: Span, rows: Span) -> None:
        """Make a slice of the output of an operator that does not mix channels."""
        self.weights[chain.op.id].fetch(channels)
        operands = [self.operand(chain, i, rows, channels) for i in range(len(chain.reads))]
        if chain.kind == "elementwise":
            values = dict(zip(chain.names, operands, strict=True))
        else:
            values = {chain.result: self.gathered(chain, operands, rows, channels)}
        self.place(chain, self.behind(chain, values, rows, channels), rows, channels)

    def emit_piece(self, chain: Chain, t: int, channels: Span, first: int, rows: Span) -> None:
        """Make channels of a concat's output from some channels of its operand."""
        out = (first + channels[0], first + channels[1])
        self.weights[chain.op.id].fetch(out)
        if t in self.slices:
            value = self.slices[t].get(rows, channels, chain.op.name)
        else:
            value = self.rings[t].get(rows, self.count, slice(*channels), chain.op.name)
        if chain.nodes:
            value = self.kernels.joined(chain, t, value, self.images, rows, (channels, out))
        self.place(chain, self.behind(chain, {chain.result: value}, rows, out), rows, out)

    def emit_held(self, chain: Chain, channels: Span, rows: Span) -> None:
        """Make a streamed concat's channels from a held operand."""
        for t, first in chain.pieces:
            if first <= channels[0] and channels[1] <= first + self.shape.maps[t].channels:
                self.emit_piece(chain, t, (channels[0] - first, channels[1] - first), first, rows)

    def place(self, chain: Chain, value: Array, rows: Span, channels: Span) -> None:
        t = chain.output
        if t in self.rings:
            self.rings[t].put(rows, value, slice(*channels), done=False)
            return
        self.slices[t].put(rows, channels, value)
        self.made_rows(t, rows, channels, value, chain, exact=False)


def _read_by(chain: Chain, outs: Span, ins: Span) -> list[Span | None]:
    """Return the input channels that a tile of weights reads for its output channels; None: all of them."""
    if chain.kind in ("rowwise", "concat") or (chain.kind == "reached" and chain.weight is None):
        return [None]
    if not chain.reduces:
        return [outs if chain.views[0].channels == chain.view.channels else None]
    assert chain.weight is not None
    each, per = chain.weight.shape[1], chain.weight.shape[0] // chain.groups
    groups = range(outs[0] // per, (outs[1] - 1) // per + 1)
    return [(g * each + ins[0], g * each + ins[1]) for g in groups]


def _parts(chain: Chain, channels: Span, outs: int) -> list[tuple[Span, Span, Span]]:
    """Return for a slice of input channels: (input channels, output channels, the same along the kernels)."""
    assert chain.weight is not None
    each, groups = chain.weight.shape[1], chain.groups
    per = outs // groups
    if groups == 1:
        return [(channels, (0, outs), channels)]
    first, last = channels[0] // each, -(-channels[1] // each)
    if channels == (first * each, last * each):
        return [(channels, (first * per, last * per), (0, each))]
    found = []
    for g in range(first, last):
        into = (max(channels[0], g * each), min(channels[1], (g + 1) * each))
        found.append((into, (g * per, (g + 1) * per), (into[0] - g * each, into[1] - g * each)))
    return found
