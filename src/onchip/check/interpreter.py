"""The abstract machine: runs a program on ranges and states instead of bytes, and refuses what is illegal.

It knows the instruction table and the definitions of bytes, and nothing about how a plan was found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from onchip.base.units import MAX_BYTES
from onchip.check.caches import caches_of
from onchip.check.group_overlap import prove_group_overlap
from onchip.check.joins import JoinsInDram, concat_offsets, joined_offsets
from onchip.check.ledger import Ledger
from onchip.check.memories import Accesses, Space, accesses_of, spaces_of
from onchip.check.nest_beside import prove_beside, prove_nests_on_chip
from onchip.check.operator_overlap import prove_overlap
from onchip.check.patches import prove_patches
from onchip.check.pinned import inputs_from_dram, pinned_of, prove_weights_fit
from onchip.check.ranges import Range, without
from onchip.check.ring_overlap import loses_a_byte
from onchip.check.rules import Broken, broken
from onchip.check.sections import prove_sections
from onchip.check.streaming import crossing_bytes
from onchip.check.units import Unit, macs_of, streams_of, units_of
from onchip.machines.chip import MAX_ACCUMULATOR, MAX_ALIGNMENT, RATES
from onchip.network import bits
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

MAX_RATE = 10**18


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


class Machine:
    """Runs one plan's program on ranges and states; proves every instruction legal, then executes it."""

    def __init__(self, plan: Plan) -> None:
        self.network, self.budget, self.alignment = plan.network, plan.budget, plan.chip.alignment_bytes
        if not 0 <= self.budget <= MAX_BYTES:
            broken("bad-budget", f"{self.budget} is not from 0 to {MAX_BYTES}")
        if not 1 <= self.alignment <= MAX_ALIGNMENT:
            broken("bad-alignment", f"{self.alignment} is not from 1 to {MAX_ALIGNMENT}")
        wide = plan.chip.accumulator_bytes
        if wide is not None and not 1 <= wide <= MAX_ACCUMULATOR:
            broken("bad-accumulators", f"{wide} is not from 1 to {MAX_ACCUMULATOR}")
        for key in RATES:
            rate = getattr(plan.chip, key)
            if rate is not None and not 0 < rate < MAX_RATE:
                broken("bad-rate", f"{key} is {rate}, no positive number below 10^18")
        self.spaces = spaces_of(plan)
        self.accesses = Accesses.of(plan.chip)
        prove_patches(self.network)
        self.pinned = pinned_of(plan)
        separate = self.weights_apart = plan.chip.weight_scratchpad_bytes is not None
        self.units = units_of(
            self.network,
            plan.groups,
            alignment=self.alignment,
            weights_resident=plan.options.get("weights") == "resident" and not separate,
            pinned=self.pinned.weights,
            streamed=streams_of(plan.program),
            accumulator=plan.chip.accumulator_bytes,
        )
        prove_weights_fit(plan, self.pinned, self.units)
        self.inner = {t: unit.name for unit in self.units.values() for t in unit.inner}
        self.member = {op: unit for unit in self.units.values() if unit.group for op in unit.operators}
        self.producer = {t: unit for unit in self.units.values() for t in unit.writes}
        self.to_read = [0] * len(self.network.tensors)  # units that read the tensor and have not run
        for unit in self.units.values():
            for t in unit.reads:
                self.to_read[t] += 1
        self.caches = caches_of(plan)
        self.settled: set[int] = set()  # tensors of caches in their buffers
        inputs = inputs_from_dram(self.network, self.pinned) - self.caches.inputs
        handed_over = {last for _, last, _ in self.pinned.state}
        for t in handed_over:
            self.to_read[t] += 1  # by the next inference
        self.outputs = set(self.caches.outputs) - handed_over
        self.ledger = Ledger(inputs, self.outputs, copies=set(inputs))
        self.produced = set(bits(self.network.input_roots))
        self.address: dict[int, int] = {}  # of every tensor that is resident or reserved
        self.home: dict[int, Space] = {}  # of every such tensor
        self.owned: dict[int, list[Range]] = {}  # the bytes that such a tensor alone owns
        self.scratch: dict[str, tuple[Space, Range]] = {}
        self.over: dict[int, int] = {}  # overlapped tensor -> tensor reserved over it, until its operator ran
        self.in_place: dict[int, set[int]] = {}  # a concat's output -> operands that lie in place
        self.joins = JoinsInDram(self.network)
        self.run_already: set[str] = set()
        self.peak = 0  # of all memories together
        for op, address in () if separate else self.pinned.weights.items():
            operator = self.network.operators[op]
            at = self.spaces[None]
            self.take(at, at.range(address, operator.weight_bytes), f"weights of {operator.name}")
        for first, last, address in self.pinned.state:
            self.outside_groups(first)
            self.outside_groups(last)
            at = self.spaces[None]
            self.reserve(first, at, at.range(address, self.size(first)))
        for t in self.pinned.tensors:
            self.outside_groups(t)
        self.hold_caches()

    # -- instructions ----------------------------------------------------------------------------------

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

    def hold_caches(self) -> None:
        """Take the buffers of caches for good; their inputs lie there."""
        for cache in self.caches.all:
            at = self.spaces[None]
            self.take(at, at.range(cache.address, cache.bytes), f"cache {self.name(cache.last)}")
            for t in (cache.last, cache.first):
                if t is not None and t in self.pinned.tensors:
                    broken("cache-moved", f"{self.name(t)} is pinned")
                if t is not None and cache.first is not None and self.grouped(t):
                    broken("cache-moved", f"{self.name(t)} is read or made in a group")
            if cache.first is not None:
                self.settle(cache.first, cache.address)

    def grouped(self, t: int) -> bool:
        """Return whether a group touches a tensor."""
        return any(
            unit.group and t in (*unit.reads, *unit.writes, *unit.inner) for unit in self.units.values()
        )

    def settle(self, t: int, address: int) -> None:
        """Let a tensor of a cache lie in its buffer, which is taken already."""
        self.address[t], self.owned[t], self.home[t] = address, [], self.spaces[None]
        self.settled.add(t)

    def settles(self, t: int, address: int) -> bool:
        """Return whether a tensor that a range is asked for begins a cache, and the range is its buffer."""
        cache = self.caches.by_tensor.get(t)
        return cache is not None and cache.first is None and cache.address == address

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

    # -- names -----------------------------------------------------------------------------------------

    def name(self, t: int) -> str:
        return self.network.tensors[t].name

    def size(self, t: int) -> int:
        return self.network.tensors[t].bytes

    def tensor(self, name: str) -> int:
        t = self.network.tensor_id.get(name)
        if t is None:
            broken("unknown-tensor", f"the network has no tensor {name}")
        if self.network.root[t] != t:
            broken("names-view", f"{name} is a view of {self.name(self.network.root[t])}")
        self.outside_groups(t)
        return t

    def outside_groups(self, t: int) -> None:
        if t in self.inner:
            broken("inner-tensor", f"{self.name(t)} lives inside group {self.inner[t]}")

    def unit(self, name: str) -> Unit:
        unit = self.units.get(name)
        if unit is None:
            op = self.network.operator_id.get(name)
            if op is None:
                broken("unknown-operator", f"the network has no operator {name}, and no group has that name")
            broken("operator-in-group", f"{name} belongs to group {self.member[op].name}")
        return unit

    # -- states ----------------------------------------------------------------------------------------

    def not_resident(self, t: int) -> None:
        if t in self.address:
            broken("already-resident", f"{self.name(t)} has a range at {self.address[t]} already")

    def not_cached(self, t: int) -> None:
        if t in self.settled or self.caches.grows(t):
            broken("cache-moved", f"{self.name(t)} is a cache, and stays in its buffer")

    def not_produced(self, t: int) -> None:
        if t in self.produced:
            broken("already-produced", f"{self.name(t)} exists already; it can only be loaded")

    def holds_value(self, t: int) -> None:
        if t not in self.address:
            broken("not-resident", f"{self.name(t)} is not resident")
        if t not in self.produced:
            broken("not-produced", f"{self.name(t)} is reserved, but nothing has written it")

    def ends_with(self, x: int, unit: Unit, t: int) -> None:
        """Refuse unless `x` holds a value and may give its bytes to `t`, which `unit` writes."""
        self.holds_value(x)
        if x not in unit.reads:
            broken(
                "overlap-not-input", f"{unit.name}, which writes {self.name(t)}, does not read {self.name(x)}"
            )
        if x in self.pinned.tensors and x in self.outputs:
            broken("pin-moved", f"{self.name(x)} is pinned, an output, and written over")

    def not_ended(self, x: int) -> None:
        if x in self.over:
            other = self.name(self.over[x])
            broken(
                "overlap-still-needed", f"{self.name(x)} ends with the operator that writes {other} over it"
            )

    def ready(self, t: int, unit: Unit, *, streamed: bool) -> None:
        if streamed:
            if t not in self.ledger.copies:
                broken("streaming-no-dram-copy", f"{self.name(t)} has no DRAM copy")
        elif t not in self.address:
            broken("input-not-resident", f"{self.name(t)}, read by {unit.name}, is not resident")
        elif t not in self.produced:
            broken("input-not-produced", f"{self.name(t)}, read by {unit.name}, was never written")
        if self.over.get(t) in unit.writes:
            if self.to_read[t] > 1:
                broken("overlap-still-needed", f"{self.name(t)} is overwritten and still to be read")
            self.keeps_output(t, "overlap-still-needed")

    def keeps_data(self, t: int, rule: str) -> None:
        if self.to_read[t] and t not in self.ledger.copies:
            broken(rule, f"{self.name(t)} is still to be read and has no DRAM copy")
        self.keeps_output(t, rule)

    def keeps_output(self, t: int, rule: str) -> None:
        if t in self.outputs and t not in self.ledger.copies:
            broken(rule, f"{self.name(t)} is, or holds, an output and has no DRAM copy")

    # -- bytes -----------------------------------------------------------------------------------------

    def space(self, memory: str | None) -> Space:
        """Return the memory that an instruction names."""
        if memory not in self.spaces:
            known = "none by its name" if None in self.spaces else ", ".join(map(str, self.spaces))
            broken("memory", f"{'no memory' if memory is None else memory} is named; there are {known}")
        return self.spaces[memory]

    def together(self, t: int, x: int, at: Space) -> None:
        if self.home[x] is not at:
            broken("memory", f"{self.name(x)} is in {self.home[x].name}, {self.name(t)} in {at.name}")

    def beside(self, at: Space, address: int, t: int, under: list[int]) -> Range:
        """Release the ranges of the tensors `under`; return the range of `t`, which may then overlap them."""
        for x in under:
            for part in self.owned[x]:
                at.ranges.release(*part)
        return at.range(address, self.size(t))

    def reserve_over(self, t: int, at: Space, wanted: Range, under: list[int]) -> None:
        """Reserve the range of `t`; the tensors `under` it keep the rest of theirs."""
        for x in under:
            self.owned[x] = [rest for part in self.owned[x] for rest in without(part, wanted)]
            for part in self.owned[x]:
                at.ranges.take(*part, self.name(x))
            self.over[x] = t
        self.reserve(t, at, wanted)

    def reserve(self, t: int, at: Space, wanted: Range) -> None:
        stated = self.pinned.tensors.get(t)
        if stated is not None and stated != wanted[0]:
            broken("pin-moved", f"{self.name(t)} is pinned at {stated}, not {wanted[0]}")
        self.address[t], self.owned[t], self.home[t] = wanted[0], [wanted], at
        self.take(at, wanted, self.name(t))

    def take(self, at: Space, wanted: Range, owner: str) -> None:
        at.take(wanted, owner)
        self.peak = max(self.peak, sum(space.ranges.total for space in self.spaces.values()))

    def give_back(self, t: int) -> None:
        self.settled.discard(t)
        del self.address[t]
        at = self.home.pop(t)
        for part in self.owned.pop(t):
            at.ranges.release(*part)

    def end_of_overlapped(self, x: int) -> None:
        del self.over[x]
        self.give_back(x)
