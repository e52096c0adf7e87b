"""What running in parts has in common: operands checked, results compared and sent, crossings counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import Mismatch
from onchip.network import Operator
from onchip.run.arena import POISON
from onchip.run.layout import Layout
from onchip.run.tiled.chain import Chain
from onchip.run.tiled.kernels import Kernels
from onchip.run.tiled.maps import Map, Region

if TYPE_CHECKING:
    from onchip.run.machine import Machine

__all__ = ["Part", "patch_bytes", "slab"]

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def slab(layout: Layout, channels: int, rows: int, columns: int | None = None) -> Layout:
    """The layout of some channels, rows and columns of a map in patches, cut at patches."""
    p = layout.patches
    assert p is not None
    cut = replace(p, channels=channels, rows=rows, columns=columns or p.columns)
    shape = (1, channels, rows, cut.columns)
    return replace(layout, slot=cut.elements * layout.pitch, shape=shape, patches=cut, last=False)


def patch_bytes(layout: Layout) -> int:
    """Bytes of one patch in a slot."""
    p = layout.patches
    assert p is not None
    return p.height * p.width * layout.pitch


@dataclass
class Part:
    """One operator that streams the tensors `streamed`."""

    machine: Machine
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
        """The operand that the output is written over: it is read from where it lies, part by part."""
        return self.machine.over.get(self.out)

    @property
    def layout(self) -> Layout:
        """Of the output."""
        return self.machine.slots.layout[self.out]

    @cached_property
    def at(self) -> str:
        return f"{self.op.name} ({self.machine.where()})"

    @property
    def scratch(self) -> Bytes:
        start, end = self.machine.scratch.get(self.op.name, (0, 0))
        return self.machine.arena.bytes[start:end]

    def begin(self) -> None:
        """Every operand is there and right; the output has its range, or will be sent."""
        machine = self.machine
        for t in self.op.inputs:
            if t not in self.streamed:
                value = machine.operand(t, self.op, self.at, {})
                if t != self.over:
                    self.resident[t] = self.maps[t].whole(value)
            else:
                value = machine.value(t, machine.dram[t])
                machine.comparison.same(t, value, f"read by {self.at}")
        machine.expect_reserved(self.op, self.streamed, self.at)
        self.crossed = dict.fromkeys(self.streamed, 0)
        self.sent = np.full(self.layout.slot, POISON, np.uint8)
        if self.out not in self.streamed:
            start, end = machine.slot(self.out)
            self.sent = machine.arena.bytes[start:end]
        self.scratch[:] = POISON

    def end(self) -> None:
        """Everything has crossed, once."""
        machine = self.machine
        for t, crossed in self.crossed.items():
            if crossed != machine.slots.slot[t]:
                raise Mismatch(
                    f"{machine.name(t)}: {crossed // machine.slots.scale:,} bytes crossed in the parts of"
                    f" {self.at}, and it has {machine.network.tensors[t].bytes:,}"
                )
        for t in self.streamed:
            if t == self.out:
                machine.copy_out(t, self.sent)
            else:
                machine.count("compulsory" if machine.first_fetch(t) else "reload", self.crossed[t])
        if self.over is not None:
            written, start = self.sent.copy(), machine.address[self.out]
            machine.give_back(machine.over.pop(self.out))
            machine.arena.write(start, written, machine.claim(self.out))
        machine.weights += self.weights
        machine.ran.add(self.op.id)

    def source(self, t: int) -> Bytes:
        """[channels, rows of patches, bytes] of a streamed operand in DRAM."""
        p = self.machine.slots.layout[t].patches
        assert p is not None
        return self.machine.dram[t].reshape(p.channels, p.grid[0], -1)

    def behind(self, values: dict[str, Array], region: Region, channelled: Mapping[str, Array]) -> Array:
        """The element-wise nodes on a region, with what resident operands have there; compared."""
        for t in self.op.inputs:
            if t in self.resident and (self.chain.head is None or t not in self.chain.reads):
                value = self.resident[t]
                spans = zip(region.slices, value.shape, self.maps[self.out].shape, strict=True)
                cut = tuple(slice(None) if size < whole else span for span, size, whole in spans)
                values[self.kernels.engine.executable.value[t]] = value[cut]
        made = self.kernels.tail(self.chain, values, region, channelled)
        comparison, found = self.machine.comparison, self.maps[self.out]
        comparison.part(self.out, found, made, region, f"written by {self.at}", exact=False)
        return made

    def refuse_room(self, need: int) -> None:
        """The scratch does not hold the smallest part."""
        scale = self.machine.slots.scale
        self.machine.refuse(
            "streaming-unproved",
            f"a part of {self.op.name} needs {-(-need // scale):,} bytes of scratch, and"
            f" {len(self.scratch) // scale:,} are there",
        )
