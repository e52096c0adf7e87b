"""The common steps of running in parts: check operands, compare and send results, count crossings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from onchip.base.errors import Mismatch
from onchip.network import Operator
from onchip.run.arena import POISON
from onchip.run.layout import Layout
from onchip.run.state import State
from onchip.run.streamed.chain import Chain
from onchip.run.streamed.kernels import Kernels
from onchip.run.streamed.maps import Map, Region

__all__ = ["Part", "patch_bytes", "slab"]

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def slab(layout: Layout, channels: int, rows: int, columns: int | None = None) -> Layout:
    """Return the layout of some channels, rows and columns of a map in patches, cut at patches."""
    p = layout.patches
    assert p is not None
    cut = replace(p, channels=channels, rows=rows, columns=columns or p.columns)
    shape = (1, channels, rows, cut.columns)
    return replace(layout, slot=cut.elements * layout.pitch, shape=shape, patches=cut, last=False)


def patch_bytes(layout: Layout) -> int:
    """Return the bytes of one patch in a slot."""
    p = layout.patches
    assert p is not None
    return p.height * p.width * layout.pitch


@dataclass
class Part:
    """One operator that streams the tensors `streamed`."""

    state: State
    op: Operator
    chain: Chain
    kernels: Kernels
    maps: Mapping[int, Map]
    streamed: frozenset[int]
    crossed: dict[int, int] = field(default_factory=dict)
    resident: dict[int, Array] = field(default_factory=dict)
    sent: Bytes = field(default_factory=lambda: np.empty(0, np.uint8))
    weights: int = 0

    @property
    def out(self) -> int:
        return self.op.outputs[0]

    @property
    def over(self) -> int | None:
        """The operand that the output is written over: it is read in place, part by part."""
        return self.state.over.get(self.out)

    @property
    def layout(self) -> Layout:
        """The layout of the output."""
        return self.state.slots.layout[self.out]

    @cached_property
    def at(self) -> str:
        return f"{self.op.name} ({self.state.where()})"

    @property
    def scratch(self) -> Bytes:
        start, end = self.state.scratch.get(self.op.name, (0, 0))
        return self.state.arena.bytes[start:end]

    def begin(self) -> None:
        """Check that every operand is present and correct; give the output its range, unless it is sent."""
        state = self.state
        for t in self.op.inputs:
            if t not in self.streamed:
                value = state.operand(t, self.op, self.at, {})
                if t != self.over:
                    self.resident[t] = self.maps[t].whole(value)
            else:
                value = state.value(t, state.dram[t])
                state.comparison.same(t, value, f"read by {self.at}")
        state.expect_reserved(self.op, self.streamed, self.at)
        self.crossed = dict.fromkeys(self.streamed, 0)
        self.sent = np.full(self.layout.slot, POISON, np.uint8)
        if self.out not in self.streamed:
            start, end = state.slot(self.out)
            self.sent = state.arena.bytes[start:end]
        self.scratch[:] = POISON

    def end(self) -> None:
        """Check that everything has crossed exactly once."""
        state = self.state
        for t, crossed in self.crossed.items():
            if crossed != state.slots.slot[t]:
                raise Mismatch(
                    f"{state.name(t)}: {crossed // state.slots.scale:,} bytes crossed in the parts of"
                    f" {self.at}, and it has {state.network.tensors[t].bytes:,}"
                )
        for t in self.streamed:
            if t == self.out:
                state.copy_out(t, self.sent)
            else:
                state.count("compulsory" if state.first_fetch(t) else "reload", self.crossed[t])
        if self.over is not None:
            written, start = self.sent.copy(), state.address[self.out]
            state.give_back(state.over.pop(self.out))
            state.arena.write(start, written, state.claim(self.out))
        state.weights += self.weights
        state.ran.add(self.op.id)

    def source(self, t: int) -> Bytes:
        """Return [channels, rows of patches, bytes] of a streamed operand in DRAM."""
        p = self.state.slots.layout[t].patches
        assert p is not None
        return self.state.dram[t].reshape(p.channels, p.grid[0], -1)

    def behind(self, values: dict[str, Array], region: Region, channelled: Mapping[str, Array]) -> Array:
        """Run the element-wise nodes on a region, with the resident operands' values there; compare."""
        for t in self.op.inputs:
            if t in self.resident and (self.chain.head is None or t not in self.chain.reads):
                value = self.resident[t]
                spans = zip(region.slices, value.shape, self.maps[self.out].shape, strict=True)
                cut = tuple(slice(None) if size < whole else span for span, size, whole in spans)
                values[self.kernels.engine.executable.value[t]] = value[cut]
        made = self.kernels.tail(self.chain, values, region, channelled)
        comparison, found = self.state.comparison, self.maps[self.out]
        comparison.part(self.out, found, made, region, f"written by {self.at}", exact=False)
        return made

    def refuse_room(self, need: int) -> None:
        """Refuse a scratch that does not hold the smallest part."""
        scale = self.state.slots.scale
        self.state.refuse(
            "streaming-unproved",
            f"a part of {self.op.name} needs {-(-need // scale):,} bytes of scratch, and"
            f" {len(self.scratch) // scale:,} are there",
        )
