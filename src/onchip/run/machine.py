"""The machine that a plan's program runs on: a scratchpad, a DRAM, and one method per instruction.

It trusts no plan: it executes each instruction on real bytes, and stops with one line when that is impossible
(`IllegalPlan`) or has damaged another tensor (`Mismatch`). It shares no code with the checker. Groups in
bands, blocks and boxes come to it as nests of loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onchip.base.errors import InputError
from onchip.network import Operator, mask
from onchip.plans import (
    Alloc,
    Free,
    Instruction,
    Join,
    Load,
    Move,
    Plan,
    Run,
    Scratch,
    Store,
)
from onchip.plans.text_writing import instruction_text
from onchip.run.arena import Claim
from onchip.run.compare import Comparison
from onchip.run.joins import join, reserve_around, write_around
from onchip.run.slots import Slots
from onchip.run.state import Kernel, State
from onchip.run.streamed import run_in_parts, stream_in, streamable, through_scratch
from onchip.run.streamed.kernels import Kernels
from onchip.run.tiled import Tiles

__all__ = ["Machine"]

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Machine(State):
    """One execution of one plan, on its state; `tiles` run the groups that have a tiling."""

    def __init__(
        self,
        plan: Plan,
        slots: Slots,
        inputs: Mapping[int, Array],
        kernel: Kernel,
        comparison: Comparison,
        tiles: Tiles,
        before: State | None = None,
    ) -> None:
        super().__init__(plan, slots, inputs, kernel, comparison, before)
        self.tiles = tiles
        self.parts_of = None if tiles.engine is None else Kernels(tiles.engine)

    # -- the program ---------------------------------------------------------------------------------------

    def execute(self, progress: Callable[[str], None] | None = None) -> None:
        """Run the whole program, then check the claims about its end."""
        total = len(self.plan.program)
        for index, instruction in enumerate(self.plan.program):
            self.index = index
            self.instruction = instruction_text(instruction)
            if progress is not None and isinstance(instruction, Run):
                progress(f"executing {len(self.ran) + 1} of {len(self.network.operators)} operators")
            self.step(instruction)
        self.index, self.instruction = total, "the end"
        self.finish()

    def step(self, instruction: Instruction) -> None:
        match instruction:
            case Load(name, address, memory):
                self.load(self.tensor(name), address, memory)
            case Alloc(name, address, parts=parts, memory=memory) if parts:
                operands = [self.tensor(x) for x in parts]
                reserve_around(self, self.tensor(name), address, operands, memory)
            case Alloc(name, address, over, by, memory=memory):
                under = None if over is None else self.tensor(over)
                self.alloc(self.tensor(name), address, under, by, memory)
            case Scratch(name, address, memory):
                self.take_scratch(name, address, memory)
            case Move(name, address, memory):
                self.move(self.tensor(name), address, memory)
            case Run(name, streaming):
                self.run(name, streaming)
            case Store(name):
                self.store(self.tensor(name))
            case Free(name):
                self.free(self.tensor(name))
            case Join(name):
                join(self, name)

    def load(self, t: int, address: int, memory: str | None) -> None:
        if t not in self.dram:
            self.refuse("load-no-dram-copy", f"{self.name(t)} has no copy in DRAM")
        if self.settles(t, address) and t not in self.address:
            self.settle(t)
            self.put(t, self.dram[t])
            self.count("reload", len(self.dram[t]))
            return
        start, end = self.reserve(t, address, memory)
        self.arena.write(start, self.dram[t], self.claim(t))
        self.count("compulsory" if self.first_fetch(t) else "reload", end - start)

    def alloc(self, t: int, address: int, over: int | None, by: int, memory: str | None) -> None:
        self.expect_new(t)
        if self.grows(t) or (self.settles(t, address) and over is None):
            self.append(t, address, over)
            return
        if over in self.settled:
            self.refuse("cache-moved", f"{self.name(over)} is a cache, and stays in its buffer")
        if over is None:
            self.reserve(t, address, memory)
            return
        if over not in self.address:
            self.refuse("not-resident", f"{self.name(over)} is not resident")
        if self.address[over] != (self.place(address, memory) + by) * self.slots.scale:
            self.refuse(
                "overlap-distance", f"{self.name(over)} does not lie {by} bytes above address {address}"
            )
        self.reserve(t, address, memory, (over,))
        self.over[t] = over

    def append(self, t: int, address: int, over: int | None) -> None:
        """Let a cache's output lie in its buffer, in which its input lies."""
        buffer = self.caches[t]
        if t in self.address or address != buffer.address or over != buffer.first:
            self.refuse("cache-moved", f"{self.name(t)} lies in its buffer at {buffer.address}")
        self.settle(t)
        if over is not None:
            self.over[t] = over

    def move(self, t: int, address: int, memory: str) -> None:
        self.expect_whole(t, "moved")
        old = self.slot(t)
        source = self.arrays.home(old[0] // self.slots.scale) or ""
        start, end = self.range(address, self.network.tensors[t].bytes, self.name(t), memory)
        taken = next((claim for *_, claim in self.arena.pieces(start, end) if claim is not None), None)
        if taken is not None:
            self.refuse("range-not-free", f"{self.name(t)} would move onto {taken.owner}")
        data = self.arena.read(*old)
        self.arena.release(*old, self.owner(t))
        self.arena.write(start, data, self.claim(t))
        self.address[t] = start
        self.between[source, memory] = self.between.get((source, memory), 0) + end - start

    def take_scratch(self, name: str, address: int, memory: str | None) -> None:
        size = self.scratch_size(name)
        if name in self.scratch:
            self.refuse("scratch-twice", f"the scratch of {name} is reserved already")
        start, end = self.range(address, size, f"the scratch of {name}", memory)
        self.arena.reserve(start, end, Claim(f"the scratch of {name}", self.index))
        self.scratch[name] = (start, end)

    def store(self, t: int) -> None:
        self.expect_whole(t, "stored")
        self.copy_out(t, self.resident(t))

    def free(self, t: int) -> None:
        if t in self.settled:
            self.refuse("cache-moved", f"{self.name(t)} is a cache, and stays in its buffer")
        self.expect_whole(t, "freed")
        self.give_back(t)

    def run(self, name: str, streaming: Sequence[tuple[str, int]]) -> None:
        operators = self.operators(name)
        for op in operators:
            if op.id in self.ran:
                self.refuse("already-run", f"{op.name} ran before")
        if self.scratch_size(name) and name not in self.scratch:
            self.refuse("no-scratch", f"{name} has no scratch")
        if name in self.scratch:
            self.expect_owner(*self.scratch[name], f"the scratch of {name}", f"used by {name}")
        if name in self.held.weights:
            at, size = self.held.weights[name]
            start, end = at * self.slots.scale, (at + size) * self.slots.scale
            self.expect_owner(start, end, f"the weights of {name}", f"used by {name}")
        if name in self.groups and self.groups[name].tiling is not None:
            self.tiles.run(self, name, operators, streaming)
            self.release_scratch(name)
            return
        wanted = streamable(self, name, operators, streaming)
        alone = name not in self.groups
        if wanted and alone and run_in_parts(self, self.parts_of, operators[0], wanted):
            self.release_scratch(name)
            return
        self.weights += self.fetched_weights(name, operators)
        streamed = stream_in(self, name, operators, wanted)
        inner = self.inner_addresses(name, operators) if name in self.groups else {}
        for t, first in inner.items():
            self.occupy(
                t, first * self.slots.scale, (first + self.network.tensors[t].bytes) * self.slots.scale
            )
        for op in operators:
            self.run_operator(op, streamed)
        for t in inner:
            self.free(t)
        for t, value in streamed.items():
            if value is not None and self.network.producer[t] in {op.id for op in operators}:
                self.copy_out(t, through_scratch(self, name, t, self.to_slot(t, value)))
        self.release_scratch(name)

    def release_scratch(self, name: str) -> None:
        if name in self.scratch:
            start, end = self.scratch.pop(name)
            self.arena.release(start, end, f"the scratch of {name}")

    def run_operator(self, op: Operator, streamed: dict[int, Array | None]) -> None:
        """Run one operator: inputs out of the bytes, outputs into them, every one compared."""
        at = f"{op.name} ({self.where()})"
        inputs = {t: self.operand(t, op, at, streamed) for t in op.inputs}
        self.expect_reserved(op, streamed, at)
        results = self.kernel(op, inputs)
        self.ran.add(op.id)
        self.comparison.follow(op.inputs, op.outputs)
        for t in op.outputs:
            self.comparison.same(t, results[t], f"written by {at}")
            root = self.network.root[t]
            if root in streamed:
                streamed[root] = results[t]
                continue
            if root in self.parts:
                write_around(self, op, results, self.parts.pop(root))
                continue
            start, end = self.slot(root)
            if root in self.settled:
                self.put(root, self.to_slot(t, results[t]))
                ended = self.over.pop(root, -1)
                self.address.pop(ended, None)
                self.settled.discard(ended)
                continue
            if root in self.over:
                # After its last read, it releases the bytes that the output leaves of it.
                self.give_back(self.over.pop(root))
                self.arena.reserve(start, end, self.claim(root))
            self.arena.write(start, self.to_slot(t, results[t]), self.claim(root))

    def finish(self) -> None:
        missing = [op.name for op in self.network.operators if op.id not in self.ran]
        if missing:
            self.refuse("operator-not-run", f"{missing[0]} never ran ({len(missing)} operators in all)")
        for t in self.address:
            self.expect_owner(*self.slot(t), self.owner(t), "left resident")
        for t, at in self.held.last.items():
            if self.address.get(t) != at * self.slots.scale:
                self.refuse("state-not-kept", f"{self.name(t)} is not at {at:,}")
            self.expect_whole(t, "handed to the next inference")
            found = self.value(t, self.arena.read(*self.slot(t)))
            self.comparison.same(t, found, "handed to the next inference")
        for buffer in self.caches.values():
            t = buffer.last
            if t not in self.settled:
                self.refuse("cache-not-kept", f"{self.name(t)} is not in its buffer")
            self.expect_whole(t, "handed to the next inference")
            self.comparison.same(t, self.value(t, self.resident(t)), "handed to the next inference")
        for t in self.network.outputs:
            root = self.network.root[t]
            if root in self.held.last or t in self.handed_over:
                continue
            if root not in self.dram:
                self.refuse("output-not-stored", f"output {self.name(t)} has no copy in DRAM")
            self.comparison.same(t, self.value(t, self.dram[root]), "read from DRAM at the end")

    # -- groups ------------------------------------------------------------------------------

    def inner_addresses(self, name: str, operators: Sequence[Operator]) -> dict[int, int]:
        """Return the places in the group's scratch, one after another, of tensors that live only there."""
        members = mask(op.id for op in operators)
        start, end = (x // self.slots.scale for x in self.scratch.get(name, (0, 0)))
        placed: dict[int, int] = {}
        for op in operators:
            for t in (self.network.root[t] for t in op.outputs):
                readers = self.network.readers[t]
                if t in placed or not readers or readers & ~members or self.network.output_roots >> t & 1:
                    continue
                placed[t] = start
                start += self.plan.chip.round_up(self.network.tensors[t].bytes)
        if placed and start > end:
            raise InputError(
                "its inner tensors do not fit its scratch whole: a group cannot be executed in tiles yet",
                item=f"group {name}",
            )
        return placed
