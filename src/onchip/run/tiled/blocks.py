"""A single operator executed in blocks of its output, where no band of rows fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from onchip.base.errors import InputError
from onchip.network.windows import Window
from onchip.plans import Blocks, Group
from onchip.run.arena import Claim
from onchip.run.state import State
from onchip.run.tiled.buffers import SliceBuffer
from onchip.run.tiled.chain import Chain
from onchip.run.tiled.dram import Dram
from onchip.run.tiled.group import Executed
from onchip.run.tiled.kernels import Kernels, fitting
from onchip.run.tiled.maps import Region
from onchip.run.tiled.parameters import Fetched, Parameters
from onchip.run.tiled.passes import IllegalTiling
from onchip.run.tiled.poison import poison_of
from onchip.run.tiled.shape import GroupShape
from onchip.run.tiled.whole import Place, Whole

__all__ = ["run_in_blocks"]

Array = np.ndarray[Any, Any]
Span = tuple[int, int]


def run_in_blocks(
    state: State,
    kernels: Kernels,
    group: Group,
    blocks: Blocks,
    shape: GroupShape,
    whole: Mapping[int, Whole],
) -> Executed:
    """Run a group of one operator block by block. Raises `IllegalTiling` where that cannot be done."""
    sizes = (blocks.rows, blocks.columns, blocks.output_channels, blocks.channels)
    if min(sizes) < 1:
        raise IllegalTiling("tiling-sizes", f"blocks of {' x '.join(map(str, sizes))}")
    if len(shape.chains) != 1 or group.resident_weights or len(shape.external) != 1:
        raise IllegalTiling(
            "tiling-blocks", "it is not one operator of one operand, or keeps all its weights"
        )
    [chain] = shape.chains
    if chain.kind == "reached" and not (chain.reduces or chain.by_channel):
        raise InputError("cannot be run in blocks: its nodes are no chain", item=f"operator {chain.op.name}")
    if chain.kind not in ("conv", "matrix", "pool", "pad", "reached"):
        raise IllegalTiling("tiling-blocks", f"{chain.op.name} has no windows")
    return _Run(state, kernels, group, blocks, shape, chain, whole).all()


class _Run:
    def __init__(
        self,
        state: State,
        kernels: Kernels,
        group: Group,
        blocks: Blocks,
        shape: GroupShape,
        chain: Chain,
        whole: Mapping[int, Whole],
    ) -> None:
        self.state, self.kernels, self.shape, self.blocks, self.chain = (
            state,
            kernels,
            shape,
            blocks,
            chain,
        )
        self.source, self.target = chain.reads[0], chain.output
        self.read, self.made = shape.maps[self.source], shape.maps[self.target]
        self.rows = list(_cut(self.made.rows, blocks.rows))
        self.columns = list(_cut(self.made.columns, blocks.columns))
        self.subgroups = self.made.images * len(self.rows) * len(self.columns)
        if self.subgroups != group.subgroups:
            raise IllegalTiling(
                "tiling-subgroups",
                f"it states {group.subgroups:,} sub-groups, and its blocks are {self.subgroups:,}",
            )
        self.dram, self.whole = Dram(state, shape, whole), whole
        self._lay_out(group)

    def _lay_out(self, group: Group) -> None:
        state, blocks, chain = self.state, self.blocks, self.chain
        start, end = state.scratch.get(group.name, (0, 0))
        scale, round_up = state.slots.scale, state.plan.chip.round_up
        parameters = Parameters(chain, self.made.channels, scale)
        inputs = parameters.inputs if blocks.keep_weights else blocks.channels
        self.weights = Fetched(parameters, (blocks.output_channels, inputs))
        outs = list(_cut(self.made.channels, blocks.output_channels))
        most = max(b - a for a, b in map(self.inputs_of, outs))
        area = _most(chain.rows[0], self.rows) * _most(chain.columns[0], self.columns)
        window = min(blocks.channels, most) * area
        block = min(blocks.output_channels, self.made.channels)
        block *= min(blocks.rows, self.made.rows) * min(blocks.columns, self.made.columns)
        width = self.shape.width
        sizes = (
            0 if self.source in self.whole else window * width[self.source],
            0 if self.target in self.whole else block * width[self.target],
            parameters.largest(self.weights.steps),
        )
        need = sum(map(round_up, sizes))
        if need * scale > end - start:
            raise IllegalTiling(
                "group-scratch",
                f"its window, block and weights take {need:,} bytes, and its scratch has"
                f" {(end - start) // scale:,}",
            )
        claims, at, ranges = f"the scratch of {group.name}", start, []
        for size in sizes:
            ranges.append((at, at + size * scale))
            at += round_up(size) * scale
        dtypes = state.slots.dtype
        owners = (f"tensor {state.name(self.source)}", f"tensor {state.name(self.target)}", "weights")
        claim = [Claim(f"{owner} in {claims}", state.index) for owner in owners]
        if self.source not in self.whole:
            self.window = SliceBuffer(state.arena, *ranges[0], dtypes[self.source], window, claim[0])
        self.block: SliceBuffer | Place
        if self.target not in self.whole:
            self.block = SliceBuffer(state.arena, *ranges[1], dtypes[self.target], block, claim[1])
        state.arena.reserve(*ranges[2], claim[2])
        self.weights.through(state.arena.bytes[slice(*ranges[2])])

    def inputs_of(self, outs: Span) -> Span:
        """Return the input channels that some output channels read."""
        if not self.chain.reduces:
            return outs
        assert self.chain.weight is not None
        each, per = self.chain.weight.shape[1], self.made.channels // self.chain.groups
        return outs[0] // per * each, ((outs[1] - 1) // per + 1) * each

    def all(self) -> Executed:
        for outs in _cut(self.made.channels, self.blocks.output_channels):
            if self.blocks.keep_weights:
                self.weights.forget(slice(*outs))
                self.weights.fetch(outs)
            for image in range(self.made.images):
                for rows in self.rows:
                    for columns in self.columns:
                        self.one(Region((image, image + 1), outs, rows, columns))
        written = {t: self.made.stored(value) for t, value in self.dram.written.items()}
        crossed = self.dram.crossed
        return Executed(self.subgroups, crossed, self.weights.moved, self.made.size, 0, written)

    def one(self, region: Region) -> None:
        """Make one block of the output, from all slices of its inputs."""
        chain, outs = self.chain, region.channels
        if not self.blocks.keep_weights:
            self.weights.forget(slice(*outs))
        if self.target in self.whole:
            self.block = Place(self.whole[self.target], region)
        self.block.put(region.rows, outs, np.zeros(region.shape, self.state.slots.dtype[self.target]))
        gathered: list[Array] = []
        for channels in _cut(*self.inputs_of(outs), self.blocks.channels):
            operand = self.bring(region, channels)
            if chain.kind == "reached":
                self.fetch(region, channels)
                gathered.append(operand)
            elif chain.reduces:
                self.add(region, channels, operand)
            else:
                self.finish(region, channels, operand)
        if chain.kind == "reached":
            self.block.put(region.rows, outs, self.at_once(region, np.concatenate(gathered, axis=1)))
        elif chain.reduces:
            total = self.block.get(region.rows, outs, chain.op.name)
            value = self.kernels.closed(chain, total, self.weights.vector(chain.bias, outs))
            self.block.put(region.rows, outs, self.behind(region, {chain.result: value}))
        value = self.block.get(region.rows, outs, chain.op.name)
        self.state.comparison.part(
            self.target,
            self.made,
            value,
            region,
            f"written by {chain.op.name} ({self.state.where()})",
            exact=False,
        )
        if self.target not in self.whole:
            self.dram.write(self.target, region, value)

    def bring(self, region: Region, channels: Span) -> Array:
        """Return the window of some channels that a block reads, through its buffer or in place."""
        rows = self.chain.rows[0].reads(region.rows)
        columns = self.chain.columns[0].reads(region.columns)
        window = Region(region.images, channels, rows, columns)
        if self.source in self.whole:
            return self.whole[self.source].read(window.slices, self.chain.op.name)
        value = self.dram.read(self.source, window)
        self.window.put(rows, channels, value)
        return self.window.get(rows, channels, self.chain.op.name)

    def add(self, region: Region, channels: Span, operand: Array) -> None:
        """Add the contribution of a slice of input channels to the block."""
        chain, outs = self.chain, region.channels
        total = self.block.get(region.rows, outs, chain.op.name)
        for into, out, of in self.groups(outs, channels):
            if not self.blocks.keep_weights:
                self.weights.fetch(out, of)
            assert self.weights.kernels is not None
            kernels = self.weights.kernels[slice(*out), slice(*of)]
            part = operand[:, into[0] - channels[0] : into[1] - channels[0]]
            place = total[:, out[0] - outs[0] : out[1] - outs[0]]
            added = self.kernels.partial(chain, part, kernels, self.missing(region))
            place += fitting(chain, added, place.shape)
        self.block.put(region.rows, outs, total)

    def groups(self, outs: Span, channels: Span) -> Iterator[tuple[Span, Span, Span]]:
        """Yield for a slice of input channels: (input channels, output channels, those along the kernels)."""
        assert self.chain.weight is not None
        each, per = self.chain.weight.shape[1], self.made.channels // self.chain.groups
        for g in range(channels[0] // each, -(-channels[1] // each)):
            into = (max(channels[0], g * each), min(channels[1], (g + 1) * each))
            out = (max(outs[0], g * per), min(outs[1], (g + 1) * per))
            yield into, out, (into[0] - g * each, into[1] - g * each)

    def fetch(self, region: Region, channels: Span) -> None:
        """Fetch the weights for a slice of input channels, unless those of the block stay."""
        if self.blocks.keep_weights:
            return
        if not self.chain.reduces:
            self.weights.fetch(channels)
            return
        for _, out, of in self.groups(region.channels, channels):
            self.weights.fetch(out, of)

    def at_once(self, region: Region, operand: Array) -> Array:
        """Return the block of a sum of whole numbers, from all slices of its operand.

        The elements of a block cannot hold a part of such a sum: its operand waits beside the scratch.
        """
        first, end = self.inputs_of(region.channels)
        images, channels, rows, columns = region.images, region.channels, region.rows, region.columns
        if self.chain.reduces:
            shape = (operand.shape[0], self.read.channels, *operand.shape[2:])
            whole = np.full(shape, poison_of(self.chain.nodes, operand.dtype), operand.dtype)
            whole[:, first:end] = operand
            operand = whole
        held = self.weights.held()
        return self.kernels.reached(self.chain, [operand], images, rows, channels, held, columns)

    def finish(self, region: Region, channels: Span, operand: Array) -> None:
        """Make some channels of an operator that does not mix them."""
        chain, outs = self.chain, region.channels
        if not self.blocks.keep_weights:
            self.weights.fetch(channels)
        kernels = None if self.weights.kernels is None else self.weights.kernels[slice(*channels)]
        bias = self.weights.vector(chain.bias, channels)
        part = Region(region.images, channels, region.rows, region.columns)
        shape = (part.shape[2], part.shape[3])
        value = self.kernels.head(chain, [operand], self.missing(region), shape, kernels, bias)
        total = self.block.get(region.rows, outs, chain.op.name)
        total[:, channels[0] - outs[0] : channels[1] - outs[0]] = self.behind(part, {chain.result: value})
        self.block.put(region.rows, outs, total)

    def behind(self, region: Region, values: dict[str, Array]) -> Array:
        return self.kernels.tail(self.chain, values, region, self.weights.channelled(region.channels))

    def missing(self, region: Region) -> tuple[int, int, int, int]:
        top, bottom = self.chain.rows[0].missing(region.rows)
        left, right = self.chain.columns[0].missing(region.columns)
        return top, left, bottom, right


def _cut(*span_and_step: int) -> Iterator[Span]:
    """Yield consecutive ranges of [first, last) by step; arguments are ([first,] last, step)."""
    first, last, step = (0, *span_and_step)[-3:]
    return ((a, min(a + step, last)) for a in range(first, last, step))


def _most(window: Window, spans: list[Span]) -> int:
    """Return the most positions that one of some ranges of the output reads."""
    return max(b - a for a, b in (window.reads(span) for span in spans))
