"""The machine that a plan's program runs on: a scratchpad, a DRAM, and one method per instruction.

It trusts nothing. It does what an instruction says with real bytes, and stops with one line when that cannot
be done (`IllegalPlan`) or has done harm to another tensor (`Mismatch`). It shares no code with the checker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from onchip.base.errors import IllegalPlan, InputError, Mismatch
from onchip.network import Operator, bits, mask
from onchip.plans import (
    Alloc,
    Free,
    Group,
    Instruction,
    Join,
    Load,
    Move,
    Moved,
    PinnedWeights,
    Plan,
    Run,
    Scratch,
    Store,
)
from onchip.plans.text import instruction_text
from onchip.run.arena import Arena, Claim
from onchip.run.compare import Comparison
from onchip.run.held import held_of
from onchip.run.joins import Copies, join, reserve_around, write_around
from onchip.run.memories import arrays_of
from onchip.run.report import BytesMoved
from onchip.run.slots import Slots
from onchip.run.streamed import run_in_parts, stream_in, streamable, through_scratch

if TYPE_CHECKING:
    from onchip.run.tiled import Tiles

__all__ = ["Machine"]

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


Kernel = Callable[[Operator, Mapping[int, Array]], Mapping[int, Array]]
"""Runs one operator: values by tensor id in, values by tensor id out."""


class Machine:
    """One execution of one plan; `inputs` are the values of the graph inputs by tensor id.

    With `before`, the machine of the inference before this one, a state's input is what that one has left.
    """

    def __init__(
        self,
        plan: Plan,
        slots: Slots,
        inputs: Mapping[int, Array],
        kernel: Kernel,
        comparison: Comparison,
        before: Machine | None = None,
        tiles: Tiles | None = None,
    ) -> None:
        self.plan, self.network, self.slots = plan, plan.network, slots
        self.kernel, self.comparison, self.tiles = kernel, comparison, tiles
        self.groups: dict[str, Group] = {g.name: g for g in plan.groups}
        self.held = held_of(plan)
        self.arrays = arrays_of(plan, self._reserved, self.held.extent(plan))
        self.arena = Arena(self.arrays.total * slots.scale)
        self.dram = Copies(plan, slots)
        self.moved = {"compulsory": 0, "reload": 0, "spill": 0}
        self.between: dict[tuple[str, str], int] = {}  # bytes that moves copied from memory to memory
        self.weights = 0  # planned bytes fetched, counted by copies where a group runs in tiles
        self.address: dict[int, int] = {}  # resident root tensors: first byte of the slot in the arena
        self.over: dict[int, int] = {}  # reserved over another tensor that its operator still reads
        self.parts: dict[int, dict[int, int]] = {}  # reserved around operands, which lie at these bytes
        self.scratch: dict[str, tuple[int, int]] = {}
        self.ran: set[int] = set()
        self.in_place = 0  # bytes of operands that a concat found where they belong
        self.joined = 0  # concats run in DRAM
        self.in_parts: list[str] = []  # operators that ran in parts
        self.whole: dict[str, str] = {}  # operators that had to run whole to stream, and why
        self.fetched: set[int] = set()  # graph inputs whose compulsory load is over
        self.index, self.instruction = 0, ""
        self.writers: list[list[int]] = [[] for _ in self.network.tensors]  # of each root
        for op in self.network.operators:
            for t in bits(self.network.writes[op.id]):
                self.writers[t].append(op.id)
        for t, value in inputs.items():
            if t not in self.held.first:
                self.dram[t] = self.to_slot(t, value)
        for operator, (at, size) in self.held.weights.items():
            start, end = self.range(at, size, f"the weights of {operator}")
            self.arena.reserve(start, end, Claim(f"the weights of {operator}", 0))
        for t, at in self.held.first.items():
            start, end = self.reserve(t, at)
            left = self.to_slot(t, inputs[t]) if before is None else before.arena.read(start, end)
            self.arena.write(start, left, self.claim(t))

    # -- the program ---------------------------------------------------------------------------------------

    def execute(self, progress: Callable[[str], None] | None = None) -> None:
        """The whole program, then the claims about its end."""
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
        start, end = self.reserve(t, address, memory)
        self.arena.write(start, self.dram[t], self.claim(t))
        self.count("compulsory" if self.first_fetch(t) else "reload", end - start)

    def alloc(self, t: int, address: int, over: int | None, by: int, memory: str | None) -> None:
        self.expect_new(t)
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
        self.copy_out(t, self.arena.read(self.address[t], self.address[t] + self.slots.slot[t]))

    def free(self, t: int) -> None:
        self.expect_whole(t, "freed")
        self.give_back(t)

    def give_back(self, t: int) -> None:
        start = self.address.pop(t)
        self.arena.release(start, start + self.slots.slot[t], self.owner(t))

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
        if self.tiles is not None and name in self.groups and self.groups[name].tiling is not None:
            self.tiles.run(self, name, operators, streaming)
            self.release_scratch(name)
            return
        wanted = streamable(self, name, operators, streaming)
        if wanted and name not in self.groups and run_in_parts(self, operators[0], wanted):
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

    def fetched_weights(self, name: str, operators: Sequence[Operator]) -> int:
        """Weight bytes that a unit fetches when its operators run whole, as often as the plan says."""
        refills = dict(self.groups[name].refills) if name in self.groups else {}
        pinned = {pin.operator for pin in self.plan.pins if isinstance(pin, PinnedWeights)}
        return sum(op.weight_bytes * refills.get(op.name, 1) for op in operators if op.name not in pinned)

    def run_operator(self, op: Operator, streamed: dict[int, Array | None]) -> None:
        """One operator: inputs out of the bytes, outputs into them, every one compared."""
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
            if root in self.over:
                # Read for the last time: it gives back what the output leaves of it.
                self.give_back(self.over.pop(root))
                self.arena.reserve(start, end, self.claim(root))
            self.arena.write(start, self.to_slot(t, results[t]), self.claim(root))

    def operand(self, t: int, op: Operator, at: str, streamed: Mapping[int, Array | None]) -> Array:
        root = self.network.root[t]
        if root in streamed:
            value = streamed[root]
            if value is None:
                self.refuse("input-not-produced", f"{self.name(t)}, read by {op.name}, was never written")
            found = self.value(t, self.to_slot(root, value))
        else:
            self.expect_whole(root, f"read by {at}", "input-")
            found = self.value(t, self.arena.read(*self.slot(root)))
        self.comparison.same(t, found, f"read by {at}")
        return found

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
        for t in self.network.outputs:
            root = self.network.root[t]
            if root in self.held.last:
                continue
            if root not in self.dram:
                self.refuse("output-not-stored", f"output {self.name(t)} has no copy in DRAM")
            self.comparison.same(t, self.value(t, self.dram[root]), "read from DRAM at the end")

    # -- groups ------------------------------------------------------------------------------

    def inner_addresses(self, name: str, operators: Sequence[Operator]) -> dict[int, int]:
        """Where, one after another in the group's scratch, the tensors lie that live nowhere else."""
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

    # -- bytes ---------------------------------------------------------------------------------------------

    def place(self, address: int, memory: str | None) -> int:
        """A planned address in a memory as one in the arena."""
        if memory not in self.arrays.base:
            self.refuse("memory", f"the chip has no memory {memory}")
        return self.arrays.base[memory] + address

    def range(self, address: int, size: int, what: str, memory: str | None = None) -> tuple[int, int]:
        """Planned bytes as a range of the arena."""
        start = self.place(address, memory)
        most = self.arrays.size[memory]
        if address < 0 or address + size > most:
            room = f"the budget of {most:,}" if memory is None else f"the {most:,} of {memory}"
            self.refuse("outside-budget", f"{what} at {address:,} with {size:,} bytes leaves {room}")
        return start * self.slots.scale, (start + size) * self.slots.scale

    def reserve(
        self, t: int, address: int, memory: str | None = None, keep: Sequence[int] = ()
    ) -> tuple[int, int]:
        """Make a tensor resident; the bytes of `keep` that its range shares stay as they are."""
        if self.network.root[t] != t:
            self.refuse("names-view", f"{self.name(t)} is a view of {self.name(self.network.root[t])}")
        if t in self.address:
            self.refuse("already-resident", f"{self.name(t)} is resident already")
        start, end = self.range(address, self.network.tensors[t].bytes, self.name(t), memory)
        self.occupy(t, start, end, keep)
        return start, end

    def occupy(self, t: int, start: int, end: int, keep: Sequence[int] = ()) -> None:
        """Give a range of the arena to a tensor, but for the bytes of `keep` in it."""
        kept = {self.owner(x) for x in keep}
        for a, b, claim in self.arena.pieces(start, end):
            if claim is None or claim.owner not in kept:
                self.arena.reserve(a, b, self.claim(t))
        self.address[t] = start

    def copy_out(self, t: int, data: Bytes) -> None:
        is_output = self.network.output_roots >> t & 1 and t not in self.held.last
        first = t not in self.dram and is_output
        self.dram[t] = data
        self.count("compulsory" if first else "spill", len(data))

    def send_out(self, t: int, data: Bytes, crossed: int) -> None:
        """A tensor has gone to DRAM in parts; `crossed` are planned bytes."""
        is_output = self.network.output_roots >> t & 1 and t not in self.held.last
        size = self.network.tensors[t].bytes
        first = size if t not in self.dram and is_output and crossed >= size else 0
        self.dram[t] = data
        self.count("compulsory", first * self.slots.scale)
        self.count("spill", (crossed - first) * self.slots.scale)

    def bring_in(self, t: int, crossed: int) -> None:
        """A tensor has come from DRAM in parts; `crossed` are planned bytes."""
        size = self.network.tensors[t].bytes
        first = size if crossed >= size and self.first_fetch(t) else 0
        self.count("compulsory", first * self.slots.scale)
        self.count("reload", (crossed - first) * self.slots.scale)

    def count(self, kind: str, size: int) -> None:
        self.moved[kind] += size

    def bytes_moved(self) -> BytesMoved:
        """What the copies moved, at the plan's sizes: every copy was a whole slot, so nothing is left
        over."""
        moved = {kind: size // self.slots.scale for kind, size in self.moved.items()}
        between = tuple(Moved(*pair, size // self.slots.scale) for pair, size in sorted(self.between.items()))
        return BytesMoved(**moved, weights=self.weights, between=between)

    def value(self, t: int, root_bytes: Bytes) -> Array:
        """A tensor's value in the bytes of its root's slot."""
        begin = self.slots.offset[t]
        return self.slots.layout[t].unpack(root_bytes[begin : begin + self.slots.slot[t]])

    def to_slot(self, t: int, value: Array) -> Bytes:
        """A value as the bytes of its slot, poison where no element lies."""
        return self.slots.layout[t].pack(value)

    def slot(self, t: int) -> tuple[int, int]:
        return self.address[t], self.address[t] + self.slots.slot[t]

    # -- what must hold ------------------------------------------------------------------------------------

    def expect_whole(self, t: int, when: str, kind: str = "") -> None:
        """A root tensor is resident, produced, and every byte of its slot is its own."""
        if t not in self.address:
            self.refuse(f"{kind}not-resident", f"{self.name(t)}, {when}, is not resident")
        if not self.written(t):
            self.refuse(f"{kind}not-produced", f"{self.name(t)}, {when}, was never written")
        self.expect_owner(*self.slot(t), self.owner(t), when)

    def expect_reserved(self, op: Operator, streamed: Collection[int], at: str) -> None:
        """Every output that does not stream has its range, and what it takes over is still there."""
        for t in op.outputs:
            root = self.network.root[t]
            if root in streamed:
                continue
            if root not in self.address:
                self.refuse("output-not-reserved", f"{self.name(t)}, written by {op.name}, has no range")
            also = (self.over[root],) if root in self.over else self.parts.get(root, ())
            owners = map(self.owner, also)
            self.expect_owner(*self.slot(root), self.owner(root), f"reserved for {at}", *owners)

    def expect_owner(self, start: int, end: int, owner: str, when: str, *also: str) -> None:
        piece = self.arena.intruder(start, end, owner, *also)
        if piece is None:
            return
        a, b, claim = piece
        by = (
            "were given back"
            if claim is None
            else f"were taken by {claim.owner} (instruction {claim.instruction})"
        )
        scale = self.slots.scale
        raise Mismatch(
            f"{owner}, {when if self.where() in when else f'{when} ({self.where()})'}: its bytes"
            f" [{a // scale:,}, {b // scale:,}) {by}"
        )

    def expect_new(self, t: int) -> None:
        if self.network.tensors[t].kind == "input" or self.written(t):
            self.refuse("already-produced", f"{self.name(t)} was produced before")

    def written(self, t: int) -> bool:
        """Every operator that writes the tensor has run."""
        return self.network.tensors[t].kind == "input" or self.ran.issuperset(self.writers[t])

    def first_fetch(self, t: int) -> bool:
        """True once for each graph input that DRAM holds."""
        is_input = self.network.tensors[t].kind == "input" and t not in self.held.first
        first = is_input and t not in self.fetched
        self.fetched.add(t)
        return first

    # -- names ---------------------------------------------------------------------------------------------

    def tensor(self, name: str) -> int:
        if name not in self.network.tensor_id:
            self.refuse("unknown-tensor", f"there is no tensor {name}")
        return self.network.tensor_id[name]

    def operators(self, name: str) -> list[Operator]:
        members = self.groups[name].operators if name in self.groups else (name,)
        for member in members:
            if member not in self.network.operator_id:
                self.refuse("unknown-operator", f"there is no operator {member}")
        ids = {self.network.operator_id[member] for member in members}
        return [self.network.operators[v] for v in self.network.order if v in ids]

    def scratch_size(self, name: str) -> int:
        return self.groups[name].scratch_bytes if name in self.groups else self.operators(name)[0].workspace

    def name(self, t: int) -> str:
        return self.network.tensors[t].name

    def owner(self, t: int) -> str:
        return f"tensor {self.name(t)}"

    def claim(self, t: int) -> Claim:
        return Claim(self.owner(t), self.index)

    def where(self) -> str:
        return f"instruction {self.index}: {self.instruction}"

    def refuse(self, rule: str, reason: str) -> NoReturn:
        raise IllegalPlan(rule, reason, index=self.index, instruction=self.instruction)

    def _reserved(self, instruction: Load | Alloc | Scratch | Move) -> int:
        """Planned bytes of the range that an instruction reserves."""
        if isinstance(instruction, Scratch):
            name = instruction.operator
            known = name in self.groups or name in self.network.operator_id
            return self.scratch_size(name) if known else 0
        t = self.network.tensor_id.get(instruction.tensor)
        return 0 if t is None else self.network.tensors[t].bytes
