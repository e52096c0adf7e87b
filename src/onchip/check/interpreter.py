"""The abstract machine: runs a program on ranges and states instead of bytes, and refuses what is illegal.

It knows the instruction table and the definitions of bytes, and nothing about how a plan was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onchip.check.group_overlap import prove_group_overlap
from onchip.check.joins import concat_offsets, joined_offsets
from onchip.check.machine_state import State
from onchip.check.memories import Space, accesses_of
from onchip.check.nest_beside import prove_beside, prove_nests_on_chip
from onchip.check.nest_layouts import prove_layouts
from onchip.check.operator_overlap import prove_overlap
from onchip.check.ring_overlap import loses_a_byte
from onchip.check.rules import Broken, broken
from onchip.check.sections import prove_sections
from onchip.check.streaming import crossing_bytes
from onchip.check.units import Unit, macs_of
from onchip.plans import (
    Alloc,
    Free,
    Instruction,
    Join,
    Load,
    MemoryUse,
    Move,
    Moved,
    Plan,
    Run,
    Scratch,
    Store,
)
from onchip.plans.text_writing import instruction_text

__all__ = ["Figures", "Machine", "interpret"]


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of a program: bytes moved and occupied, and multiply-accumulates (None if unknown).

    With several memories: the use of each, the bytes moved between them, and the time of all accesses.
    """

    compulsory: int
    reload: int
    spill: int
    weights: int
    peak: int
    extent: int
    macs: int | None
    memories: tuple[MemoryUse, ...] = ()
    moves: tuple[Moved, ...] = ()
    picoseconds: int | None = None


def interpret(plan: Plan, start: Callable[[Plan], Machine] | None = None) -> Figures:
    """Return the figures of a plan's program; the plan's `result` is ignored.

    `start` makes the machine that runs it, such as one that reports events (`check.replay`). Raises
    `IllegalPlan` with the first instruction that breaks a rule, and the rule.
    """
    try:
        machine = (start or Machine)(plan)
        prove_nests_on_chip(plan, machine.units)
        prove_layouts(plan, machine.units)
    except Broken as refusal:
        raise refusal.illegal() from None
    for index, instruction in enumerate(plan.program):
        try:
            machine.step(instruction)
            if isinstance(instruction, Run):
                prove_beside(plan, machine.units, index)
        except Broken as refusal:
            raise refusal.illegal(index, instruction_text(instruction)) from None
    try:
        figures = machine.end()
        prove_sections(plan, machine.member)
    except Broken as refusal:
        raise refusal.illegal() from None
    return figures


class Machine(State):
    """Runs one plan's program on ranges and states; proves every instruction legal, then executes it."""

    def step(self, instruction: Instruction) -> None:
        match instruction:
            case Load(name, address, memory):
                self.load(self.tensor(name), self.space(memory), address)
            case Alloc(name, address, None, _, (), memory):
                self.alloc(self.tensor(name), self.space(memory), address)
            case Alloc(name, address, None, _, parts, memory):
                operands = [self.tensor(part) for part in parts]
                self.alloc_of(self.tensor(name), self.space(memory), address, operands)
            case Alloc(name, address, str(over), by, _, memory):
                self.alloc_over(self.tensor(name), self.space(memory), address, self.tensor(over), by)
            case Scratch(name, address, memory):
                self.reserve_scratch(self.unit(name), self.space(memory), address)
            case Move(name, address, memory):
                self.move(self.tensor(name), self.space(memory), address)
            case Run(name, streaming):
                self.run(self.unit(name), {self.tensor(t): n for t, n in streaming})
            case Store(name):
                self.store(self.tensor(name))
            case Free(name):
                self.free(self.tensor(name))
            case Join(name):
                self.join(self.unit(name))
            case _:
                raise NotImplementedError(f"the checker has no rule for {type(instruction).__name__}")

    def append(self, t: int, address: int, over: int | None, by: int) -> None:
        """Reserve the output of a cache that grows in its buffer, over its input."""
        cache = self.caches.by_tensor[t]
        if (t, address, over, by) != (cache.last, cache.address, cache.first, 0):
            start = "" if cache.first is None else f", over {self.name(cache.first)} by 0"
            broken("cache-moved", f"the cache {self.name(cache.last)} lies at {cache.address}{start}")
        assert over is not None
        self.ends_with(over, self.producer[t], t)
        self.not_ended(over)
        self.over[over] = t
        self.settle(t, address)

    def load(self, t: int, at: Space, address: int) -> None:
        if t not in self.ledger.copies:
            broken("load-no-dram-copy", f"{self.name(t)} has no DRAM copy")
        self.not_resident(t)
        if self.settles(t, address):
            self.settle(t, address)
        else:
            self.reserve(t, at, at.range(address, self.size(t)))
        self.ledger.bring_in(t, self.size(t), self.size(t))
        self.accesses.touch(at.name, self.size(t))

    def alloc(self, t: int, at: Space, address: int) -> None:
        self.not_produced(t)
        self.not_resident(t)
        if self.caches.grows(t):
            self.append(t, address, None, 0)
        if self.settles(t, address):
            self.settle(t, address)
            return
        self.reserve(t, at, at.range(address, self.size(t)))

    def move(self, t: int, at: Space, address: int) -> None:
        self.holds_value(t)
        if t in self.over:
            broken("overlap-freed", f"{self.name(self.over[t])} is reserved over {self.name(t)}, which moves")
        wanted = at.range(address, self.size(t))
        source, old = self.home[t], self.owned[t]
        assert source.name is not None
        assert at.name is not None  # a move names its memory
        self.reserve(t, at, wanted)
        for part in old:
            source.ranges.release(*part)
        self.accesses.move(source.name, at.name, self.size(t))

    def alloc_over(self, t: int, at: Space, address: int, x: int, by: int) -> None:
        self.not_produced(t)
        self.not_resident(t)
        if self.caches.grows(t) or x in self.settled:
            self.append(t if t in self.caches else x, address, x, by)
            return
        unit = self.producer[t]
        self.ends_with(x, unit, t)
        self.together(t, x, at)
        if by != self.address[x] - address:
            distance = f"{self.address[x]} - {address} = {self.address[x] - address}"
            broken("overlap-distance", f"{self.name(x)} is {distance} bytes above, not {by}")
        self.not_ended(x)
        wanted = self.beside(at, address, t, [x])
        if unit.rings is not None:
            last = self.network.operators[unit.operators[-1]]
            if loses_a_byte(unit.rings, last.geometry, t, x, by):
                broken(
                    "overlap-unsafe", f"{unit.name} overwrites a byte of {self.name(x)} before it has read it"
                )
        elif unit.group:
            prove_group_overlap(self.network, unit, t, x, by, weights_apart=self.weights_apart)
        else:
            prove_overlap(self.network, unit.operators[0], t, x, by)
        self.reserve_over(t, at, wanted, [x])

    def alloc_of(self, t: int, at: Space, address: int, operands: list[int]) -> None:
        self.not_produced(t)
        self.not_resident(t)
        for x in (t, *operands):
            self.not_cached(x)
        unit = self.producer[t]
        for x in operands:
            self.ends_with(x, unit, t)
        offsets = self.plain(unit)
        for x in operands:
            self.together(t, x, at)
            if self.address[x] != address + offsets[x]:
                place = f"{address} + {offsets[x]} = {address + offsets[x]}"
                broken("join-place", f"{self.name(x)} lies at {self.address[x]}, its part at {place}")
            self.not_ended(x)
        self.reserve_over(t, at, self.beside(at, address, t, operands), operands)
        self.in_place[t] = set(operands)

    def join(self, unit: Unit) -> None:
        if unit.name in self.run_already:
            broken("already-run", f"{unit.name} has run")
        self.plain(unit, joined=True)
        if unit.workspace:
            broken("join-not-concat", f"{unit.name} has a workspace of {unit.workspace:,} bytes")
        (t,) = unit.writes
        for x in (t, *unit.reads):
            self.not_cached(x)
        if t in self.pinned.tensors:
            broken("pin-moved", f"{self.name(t)} is pinned, and joined in DRAM")
        if t in self.address:
            broken("join-reserved", f"{self.name(t)} is joined in DRAM and has a range")
        for x in unit.reads:
            if self.network.input_roots >> x & 1:
                broken("join-graph-input", f"{self.name(x)} is a graph input")
        for x in unit.reads:
            if x not in self.ledger.copies:
                broken("join-no-dram-copy", f"{self.name(x)} has no DRAM copy")
        self.joins.add(unit.operators[0])
        self.run_already.add(unit.name)
        for x in unit.reads:
            self.to_read[x] -= 1
        self.produced.add(t)
        self.ledger.copies.add(t)
        self.scratch.pop(unit.name, None)  # without a workspace it has no bytes

    def plain(self, unit: Unit, *, joined: bool = False) -> Mapping[int, int]:
        """Return where the operands of a concat begin in its output, in bytes. Refuse other units.

        In DRAM (`joined`) they may be the tensors of its views.
        """
        found = joined_offsets if joined else concat_offsets
        offsets = "it is a group" if unit.group else found(self.network, unit.operators[0])
        if isinstance(offsets, str):
            broken("join-not-concat", f"{unit.name} cannot be joined: {offsets}")
        return offsets

    def reserve_scratch(self, unit: Unit, at: Space, address: int) -> None:
        if unit.name in self.run_already:
            broken("already-run", f"{unit.name} has run")
        if unit.name in self.scratch:
            broken("scratch-twice", f"the scratch of {unit.name} is reserved already")
        wanted = at.range(address, unit.workspace)
        self.scratch[unit.name] = at, wanted
        self.take(at, wanted, f"scratch of {unit.name}")

    def run(self, unit: Unit, streaming: dict[int, int]) -> None:
        if unit.name in self.run_already:
            broken("already-run", f"{unit.name} has run")
        if unit.group or streaming:
            for t in (*unit.reads, *unit.writes):
                self.not_cached(t)
        for t in streaming:
            if t in self.pinned.tensors:
                broken("pin-moved", f"{self.name(t)} is pinned, and streamed")
            if t not in unit.reads and t not in unit.writes:
                broken("streaming-operand", f"{self.name(t)} is no operand of {unit.name}")
        for t in unit.reads:
            self.ready(t, unit, streamed=t in streaming)
        for t in unit.writes:
            if t in streaming and t in self.address:
                broken("streaming-reserved", f"{self.name(t)} is streamed and has a range")
            if t not in streaming and t not in self.address:
                broken("output-not-reserved", f"{self.name(t)}, written by {unit.name}, has no range")
        if unit.workspace and unit.name not in self.scratch:
            broken("no-scratch", f"{unit.name} has a workspace of {unit.workspace:,} bytes and no scratch")
        apart = self.weights_apart
        crossing = (
            crossing_bytes(self.network, unit, tuple(streaming), weights_apart=apart) if streaming else {}
        )
        for t, n in streaming.items():
            if n != crossing[t]:
                broken("streaming-bytes", f"{crossing[t]:,} bytes of {self.name(t)} cross, not {n:,}")

        self.touch_operands(unit, streaming)
        self.run_already.add(unit.name)
        self.ledger.weights += unit.weights
        for t in unit.reads:
            self.to_read[t] -= 1
            if t in streaming:
                self.ledger.bring_in(t, self.size(t), crossing[t], parts=unit.nest is not None)
            if self.over.get(t) in unit.writes:
                self.end_of_overlapped(t)
        for t in unit.writes:
            self.produced.add(t)
            if t in streaming:
                self.ledger.send_out(t, self.size(t), crossing[t])
        if unit.name in self.scratch:
            at, taken = self.scratch.pop(unit.name)
            at.ranges.release(*taken)

    def touch_operands(self, unit: Unit, streaming: dict[int, int]) -> None:
        """Count the bytes that a run reads and writes. Refuse memories that operators do not reach."""
        scratch = self.scratch[unit.name][0] if unit.name in self.scratch else None
        parts = {x for t in unit.writes for x in self.in_place.pop(t, ())}
        for t, size in accesses_of(self.network, unit, parts, streaming):
            at = scratch if t is None else self.home[t]
            if at is not None:
                if not at.operands:
                    what = f"the scratch of {unit.name}" if t is None else self.name(t)
                    broken("memory-operands", f"{what} is in {at.name}, which no operator reads or writes")
                self.accesses.touch(at.name, size)

    def store(self, t: int) -> None:
        self.holds_value(t)
        self.ledger.send_out(t, self.size(t), self.size(t))
        self.accesses.touch(self.home[t].name, self.size(t))

    def free(self, t: int) -> None:
        self.holds_value(t)
        self.not_cached(t)
        if t in self.over:
            broken(
                "overlap-freed",
                f"{self.name(self.over[t])} is reserved over {self.name(t)} and not yet written",
            )
        self.keeps_data(t, "free-loses-data")
        if t in self.pinned.tensors and (self.to_read[t] or t in self.outputs):
            broken("pin-moved", f"{self.name(t)} is pinned, and still to be read or an output")
        self.give_back(t)

    def end(self) -> Figures:
        """Refuse an end at which something is missing; return the figures."""
        for unit in self.units.values():
            if unit.name not in self.run_already:
                broken("operator-not-run", f"{unit.name} never ran")
        for t in self.outputs:
            if t not in self.ledger.copies:
                broken("output-not-stored", f"{self.name(t)} is, or holds, an output and has no DRAM copy")
        for _, last, address in self.pinned.state:
            if self.address.get(last) != address:
                broken("state-not-kept", f"{self.name(last)} is not at {address} at the end")
        for cache in self.caches.all:
            if cache.last not in self.settled:
                broken("cache-not-kept", f"{self.name(cache.last)} is not in its buffer at the end")
        ledger = self.ledger
        return Figures(
            ledger.compulsory,
            ledger.reload,
            ledger.spill,
            ledger.weights,
            self.peak,
            sum(at.extent for at in self.spaces.values()),
            macs_of(self.network, self.units.values()),
            self.accesses.uses(self.spaces),
            self.accesses.moves(),
            None if self.accesses.per_byte is None else self.accesses.picoseconds,
        )
