"""The checker's timing: the start and end of every copy and run, from the program and the chip's rates alone.

Two queues, each in the order of the program: one DMA channel (loads, stores, weights) and one compute unit
(runs). Everything starts as soon as its queue, its data and its bytes allow; docs/objectives.md states this
formally. All times are whole picoseconds, so that they add up exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from onchip.check.memories import accesses_of, picoseconds_per_byte
from onchip.check.released import Released
from onchip.check.units import Unit, streams_of, units_of
from onchip.network import Network
from onchip.plans import (
    Alloc,
    Free,
    Group,
    Instruction,
    Join,
    Load,
    Move,
    PinnedWeights,
    Plan,
    PlanChip,
    Run,
    Scratch,
    Store,
    Timed,
)

__all__ = ["Clock", "clock_of"]

PICOSECONDS = 10**12


def clock_of(plan: Plan) -> Clock | None:
    """Return the clock of a plan's network and chip; None if the chip's rates do not give one."""
    if not Clock.runs_on(plan.chip):
        return None
    apart = plan.chip.weight_scratchpad_bytes is not None
    resident = plan.options.get("weights") == "resident" and not apart
    pinned = [pin.operator for pin in plan.pins if isinstance(pin, PinnedWeights)]
    return Clock(
        plan.network,
        plan.chip,
        plan.groups,
        weights_resident=resident,
        pinned=pinned,
        state=[
            *((pair.input, pair.address) for pair in plan.state),
            *((cache.input, cache.address) for cache in plan.caches if cache.input is not None),
        ],
        streamed=streams_of(plan.program),
    )


class Clock:
    """The times of any legal program for one network on one chip."""

    def __init__(
        self,
        network: Network,
        chip: PlanChip,
        groups: Sequence[Group] = (),
        *,
        weights_resident: bool = False,
        pinned: Collection[str] = (),
        state: Sequence[tuple[str, int]] = (),
        streamed: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Make the clock of a chip that states `dram_bytes_per_second` and `macs_per_second`.

        `pinned` are operators whose weights are never fetched, `state` tensors that are there at the start,
        with their addresses; `streamed` what each group's run streams (in tiles all operands, unless stated).
        """
        assert chip.dram_bytes_per_second is not None
        assert chip.macs_per_second is not None
        self.network, self.chip = network, chip
        self._per_byte = PICOSECONDS / Fraction(chip.dram_bytes_per_second)
        self._per_mac = PICOSECONDS / Fraction(chip.macs_per_second)
        on_chip = chip.scratchpad_bytes_per_second
        self._per_local_byte = Fraction(0) if on_chip is None else PICOSECONDS / Fraction(on_chip)
        self._at = picoseconds_per_byte(chip) or {}
        self.units: Mapping[str, Unit] = units_of(
            network,
            groups,
            alignment=chip.alignment_bytes,
            weights_resident=weights_resident,
            pinned=[network.operator_id[name] for name in pinned],
            streamed=streamed,
            accumulator=chip.accumulator_bytes,
        )
        self.state = tuple(state)
        self.compute = {unit.name: sum(map(self._operator, unit.operators)) for unit in self.units.values()}
        """Picoseconds that each unit computes."""
        self.kept = {unit.name: 0 for unit in self.units.values()}
        """Bytes of weights that come into each unit's scratch before it runs."""
        for unit in self.units.values():
            if not unit.group and weights_resident and unit.weights:
                op = network.operators[unit.operators[0]]
                self.kept[unit.name] = op.weight_bytes if op.workspace >= op.weight_bytes else 0
        for group in groups:
            ids = (network.operator_id[name] for name in group.resident_weights)
            self.kept[group.name] = sum(network.operators[op].weight_bytes for op in ids)
        self.streamed = {unit.name: unit.weights - self.kept[unit.name] for unit in self.units.values()}
        """Bytes of weights that pass through while each unit runs."""
        self.bytes = {t.name: t.bytes for t in network.tensors}
        self.crossing = {t.name: self.transfer(t.bytes) for t in network.tensors}
        names = [t.name for t in network.tensors]
        self.reads = {unit.name: [names[t] for t in unit.reads] for unit in self.units.values()}
        self.writes = {unit.name: [names[t] for t in unit.writes] for unit in self.units.values()}

    @staticmethod
    def runs_on(chip: PlanChip) -> bool:
        """Return whether a chip states the rates that times need."""
        return chip.dram_bytes_per_second is not None and chip.macs_per_second is not None

    def transfer(self, bytes_: int) -> int:
        """Return the picoseconds of a copy of that many bytes, rounded up."""
        return -(-bytes_ * self._per_byte.numerator // self._per_byte.denominator)

    def run(self, name: str) -> int:
        """Return the picoseconds of a unit's run that streams its weights and nothing else."""
        return max(self.compute[name], self.transfer(self.streamed[name]))

    def _operator(self, operator: int) -> int:
        """Return the picoseconds of one operator: the longer of its multiplications and its bytes."""
        op = self.network.operators[operator]
        local = op.weight_bytes + sum(self.network.tensors[t].bytes for t in (*op.inputs, *op.outputs))
        most = max(op.work * self._per_mac, local * self._per_local_byte)
        return -(-most.numerator // most.denominator)

    def joining(self, name: str, parts: Collection[str]) -> int:
        """Return the picoseconds of a concat whose operands `parts` are in place: the others are copied."""
        moved = 2 * sum(self.bytes[t] for t in self.reads[name] if t not in parts)
        most = moved * self._per_local_byte
        return -(-most.numerator // most.denominator)

    def passing(self, bytes_: int, *memories: str | None) -> int:
        """Return the picoseconds of a copy on chip, or from or to DRAM, on its slowest side, rounded up."""
        return _up(max((bytes_ * self._at[m] for m in memories if m in self._at), default=Fraction(0)))

    def working(
        self, name: str, at: Mapping[str, str | None], scratch: str | None, parts: Collection[str],
        streaming: Mapping[str, int],
    ) -> int:  # fmt: skip
        """Return the picoseconds that a unit computes with its operands `at` these memories.

        `scratch` is the memory of its scratch. The longer of its multiplications and of its accesses, one
        memory after the other.
        """
        unit, ids, names = self.units[name], self.network.tensor_id, self.network.tensors
        work = sum(self.network.operators[op].work for op in unit.operators) * self._per_mac
        local = sum(self.network.operators[op].weight_bytes for op in unit.operators) * self._per_local_byte
        stream = {ids[t]: n for t, n in streaming.items()}
        for t, size in accesses_of(self.network, unit, [ids[x] for x in parts], stream):
            memory = scratch if t is None else at.get(names[t].name)
            local += size * self._at.get(memory or "", Fraction(0))
        return _up(max(Fraction(0) if parts else work, local))

    def times(self, program: Sequence[Instruction]) -> tuple[Timed, ...]:
        """Return the start and end of every load, store, move, run, and scratch that fetches weights."""
        walk = _Walk(self)
        for index, instruction in enumerate(program):
            walk.follow(index, instruction)
        return tuple(walk.found)

    def latency(self, program: Sequence[Instruction]) -> int:
        """Return the picoseconds until everything has ended."""
        return max((t.end for t in self.times(program)), default=0)


class _Walk:
    def __init__(self, clock: Clock) -> None:
        self.clock, self.found = clock, list[Timed]()
        self.dma = self.computing = 0  # when each queue is free
        self.given_back: dict[str | None, Released] = {}  # by memory
        self.range: dict[str, tuple[str | None, int, int]] = {}
        self.there: dict[str, int] = {}  # when a tensor's value is in its range, or the range is its own
        self.used: dict[str, int] = {}  # when the last run or copy that touches the range ends
        self.copied: dict[str, int] = {}  # when the copy in DRAM is whole
        self.scratch: dict[str, tuple[str | None, int, int, int]] = {}  # range, and when it is ready
        self.over: dict[str, tuple[str, ...]] = {}
        self.parts: dict[str, tuple[str, ...]] = {}  # concat -> operands that are in their places
        for name, address in clock.state:
            self.occupy(name, address)

    def follow(self, index: int, instruction: Instruction) -> None:
        match instruction:
            case Load(name, address, memory):
                self.occupy(name, address, memory)
                start = max(self.dma, self.there[name], self.copied.get(name, 0))
                self.dma = self.there[name] = self.used[name] = start + self.crossing(name)
                self.found.append(Timed(index, start, self.dma))
            case Alloc(name, address, over, _, parts, memory):
                self.occupy(name, address, memory)
                self.over[name] = parts if over is None else (over,)
                if parts:
                    self.parts[name] = parts
            case Move(name, address, memory):
                whole, left = self.there[name], self.range[name]
                last = self.used[name]
                self.occupy(name, address, memory)
                start = max(self.dma, whole, self.there[name])
                end = start + self.clock.passing(self.clock.bytes[name], left[0], memory)
                self.dma = self.there[name] = self.used[name] = end
                self.give_back(left, max(last, end))
                self.found.append(Timed(index, start, end))
            case Scratch(name, address, memory):
                size = self.clock.chip.round_up(self.clock.units[name].workspace)
                ready = self.freed(memory).latest(address, address + size)
                if self.clock.kept[name]:
                    start = max(self.dma, ready)
                    self.dma = ready = start + self.clock.transfer(self.clock.kept[name])
                    self.found.append(Timed(index, start, ready))
                self.scratch[name] = (memory, address, address + size, ready)
            case Run(name, streaming):
                self.run(index, name, dict(streaming))
            case Store(name):
                start = max(self.dma, self.there[name])
                self.dma = self.copied[name] = start + self.crossing(name)
                self.used[name] = max(self.used[name], self.dma)
                self.found.append(Timed(index, start, self.dma))
            case Free(name):
                self.give_back(self.range.pop(name), self.used[name])
            case Join(name):
                (joined,) = self.clock.writes[name]
                self.copied[joined] = max(self.copied[t] for t in self.clock.reads[name])

    def freed(self, memory: str | None) -> Released:
        return self.given_back.setdefault(memory, Released())

    def give_back(self, taken: tuple[str | None, int, int], time: int) -> None:
        memory, start, end = taken
        self.freed(memory).set(start, end, time)

    def crossing(self, name: str) -> int:
        """Return the picoseconds of a resident tensor's way from or to DRAM."""
        return max(self.clock.crossing[name], self.clock.passing(self.clock.bytes[name], self.range[name][0]))

    def occupy(self, name: str, address: int, memory: str | None = None) -> None:
        end = address + self.clock.chip.round_up(self.clock.bytes[name])
        self.range[name] = memory, address, end
        self.there[name] = self.used[name] = self.freed(memory).latest(address, end)

    def run(self, index: int, name: str, streaming: Mapping[str, int]) -> None:
        clock, start = self.clock, self.computing
        inputs = [t for t in clock.reads[name] if t not in streaming]
        outputs = [t for t in clock.writes[name] if t not in streaming]
        start = max(start, *(self.there[t] for t in (*inputs, *outputs)), 0)
        start = max(start, *(self.copied.get(t, 0) for t in streaming), 0)
        if name in self.scratch:
            start = max(start, self.scratch[name][3])
        overwritten = [x for t in outputs for x in self.over.pop(t, ())]
        # A copy of a tensor must end before its bytes are overwritten.
        start = max(start, *(self.used[t] for t in overwritten), 0)
        length, fetched = clock.compute[name], None
        parts = tuple(x for t in outputs for x in self.parts.get(t, ()))
        if clock.chip.memories:
            at = {t: self.range[t][0] for t in (*inputs, *outputs)}
            scratch = self.scratch[name][0] if name in self.scratch else None
            length = clock.working(name, at, scratch, parts, streaming)
        elif parts:
            length = clock.joining(name, parts)
        crossing = clock.streamed[name] + sum(streaming.values())
        if crossing:
            start = max(start, self.dma)
            self.dma = fetched = start + clock.transfer(crossing)
            length = max(length, fetched - start)
        end = self.computing = start + length
        for t in inputs:
            self.used[t] = max(self.used[t], end)
        for t in outputs:
            self.there[t] = self.used[t] = end
        for t in streaming:
            if t in clock.writes[name]:
                self.copied[t] = end
        for t in overwritten:
            self.give_back(self.range.pop(t), end)
        if name in self.scratch:
            memory, low, high, _ = self.scratch.pop(name)
            self.freed(memory).set(low, high, end)
        self.found.append(Timed(index, start, end, fetched))


def _up(exact: Fraction) -> int:
    return -(-exact.numerator // exact.denominator)
