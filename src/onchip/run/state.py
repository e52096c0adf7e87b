"""The state of an execution: a scratchpad, a DRAM, residents, operators that ran, and bytes crossed.

`onchip.run.machine` executes the program's instructions on it; joins, streaming and groups in tiles execute
theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from onchip.base.errors import IllegalPlan, Mismatch
from onchip.network import Operator, bits
from onchip.plans import Alloc, Group, Load, Move, Moved, PinnedWeights, Plan, Scratch
from onchip.run.arena import Arena, Claim
from onchip.run.caches import Buffer, buffers_of
from onchip.run.compare import Comparison
from onchip.run.copies import Copies
from onchip.run.memories import arrays_of
from onchip.run.moved import BytesMoved
from onchip.run.pinned import pinned_of
from onchip.run.slots import Slots

__all__ = ["Kernel", "State"]

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

Kernel = Callable[[Operator, Mapping[int, Array]], Mapping[int, Array]]
"""Runs one operator: values by tensor id in, values by tensor id out."""


class State:
    """The state of one execution of one plan; `inputs` are the values of the graph inputs by tensor id.

    With `before`, the state after the previous inference, a state's input is its output there.
    """

    def __init__(
        self,
        plan: Plan,
        slots: Slots,
        inputs: Mapping[int, Array],
        kernel: Kernel,
        comparison: Comparison,
        before: State | None = None,
    ) -> None:
        self.plan, self.network, self.slots = plan, plan.network, slots
        self.kernel, self.comparison = kernel, comparison
        self.groups: dict[str, Group] = {g.name: g for g in plan.groups}
        self.held = pinned_of(plan)
        self.caches = buffers_of(plan)
        self.settled: set[int] = set()  # tensors of caches in their buffers
        self.handed_over = {*self.held.last, *self._appended()}
        roots = {self.network.root[t] for t in self.network.outputs if t not in self.handed_over}
        self.outputs = roots - self.held.last.keys()  # what must reach DRAM
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
        self.in_place = 0  # bytes of operands that a concat found at their places
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
            if t not in self.held.first and not self.begins_on_chip(t):
                self.dram[t] = self.to_slot(t, value)
        for operator, (at, size) in self.held.weights.items():
            start, end = self.range(at, size, f"the weights of {operator}")
            self.arena.reserve(start, end, Claim(f"the weights of {operator}", 0))
        for t, at in self.held.first.items():
            start, end = self.reserve(t, at)
            left = self.to_slot(t, inputs[t]) if before is None else before.arena.read(start, end)
            self.arena.write(start, left, self.claim(t))
        for buffer in dict.fromkeys(self.caches.values()):
            self.hold(buffer, inputs, before)

    def hold(self, buffer: Buffer, inputs: Mapping[int, Array], before: State | None) -> None:
        """Reserve a cache's buffer, and fill it with what the inference before has left or its input is."""
        start, end = self.range(buffer.address, buffer.bytes, buffer.owner)
        claim = Claim(buffer.owner, 0)
        self.arena.reserve(start, end, claim)
        if buffer.first is None:
            return
        if before is None:
            data = self.arena.read(start, end)
            buffer.put(data, buffer.first, self.to_slot(buffer.first, inputs[buffer.first]))
        else:
            data = before.arena.read(start, end)
        self.arena.write(start, data, claim)
        self.settle(buffer.first)

    def settle(self, t: int) -> None:
        """Let a tensor of a cache lie in its buffer."""
        self.address[t] = self.caches[t].address * self.slots.scale
        self.settled.add(t)

    def settles(self, t: int, address: int) -> bool:
        """Return whether a tensor begins a cache, and the address is that of its buffer."""
        buffer = self.caches.get(t)
        return buffer is not None and buffer.first is None and buffer.address == address

    def grows(self, t: int) -> bool:
        """Return whether a tensor is of a cache that has an input."""
        return t in self.caches and self.caches[t].first is not None

    def begins_on_chip(self, t: int) -> bool:
        """Return whether a graph input is a cache's."""
        return t in self.caches and self.caches[t].first == t

    def put(self, t: int, data: Bytes) -> None:
        """Write the slot of a tensor into its cache's buffer, as far as it is new there."""
        start, end = self.slot(t)
        buffer = self.arena.read(start, end)
        self.caches[t].put(buffer, t, data)
        self.arena.write(start, buffer, Claim(self.owner(t), self.index))

    def _appended(self) -> set[int]:
        """Return the caches' outputs, and what is appended to them: it stays on chip with them."""
        found = set()
        for buffer in self.caches.values():
            found.add(buffer.last)
            if buffer.first is not None and self.network.producer[buffer.last] is not None:
                maker = self.network.operators[self.network.producer[buffer.last] or 0]
                found.update(t for t in maker.inputs if t != buffer.first)
        return found

    # -- tensors in bytes --------------------------------------------------------------------------------

    def operand(self, t: int, op: Operator, at: str, streamed: Mapping[int, Array | None]) -> Array:
        root = self.network.root[t]
        if root in streamed:
            value = streamed[root]
            if value is None:
                self.refuse("input-not-produced", f"{self.name(t)}, read by {op.name}, was never written")
            found = self.value(t, self.to_slot(root, value))
        else:
            self.expect_whole(root, f"read by {at}", "input-")
            found = self.value(t, self.resident(root))
        self.comparison.same(t, found, f"read by {at}")
        return found

    def value(self, t: int, root_bytes: Bytes) -> Array:
        """Return a tensor's value in the bytes of its root's slot."""
        begin = self.slots.offset[t]
        return self.slots.layout[t].unpack(root_bytes[begin : begin + self.slots.slot[t]])

    def resident(self, root: int) -> Bytes:
        """Return the bytes of a resident root tensor; a cache's are gathered from its buffer."""
        data = self.arena.read(*self.slot(root))
        return self.caches[root].tensor_of(data, root) if root in self.settled else data

    def to_slot(self, t: int, value: Array) -> Bytes:
        """Return a value as the bytes of its slot, poison where no element lies."""
        return self.slots.layout[t].pack(value)

    def slot(self, t: int) -> tuple[int, int]:
        if t in self.settled:
            return self.address[t], self.address[t] + self.caches[t].bytes * self.slots.scale
        return self.address[t], self.address[t] + self.slots.slot[t]

    def place(self, address: int, memory: str | None) -> int:
        """Return a planned address in a memory as one in the arena."""
        if memory not in self.arrays.base:
            self.refuse("memory", f"the chip has no memory {memory}")
        return self.arrays.base[memory] + address

    def range(self, address: int, size: int, what: str, memory: str | None = None) -> tuple[int, int]:
        """Return planned bytes as a range of the arena."""
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
        """Give a range of the arena to a tensor, except the bytes of `keep` in it."""
        kept = {self.owner(x) for x in keep}
        for a, b, claim in self.arena.pieces(start, end):
            if claim is None or claim.owner not in kept:
                self.arena.reserve(a, b, self.claim(t))
        self.address[t] = start

    def give_back(self, t: int) -> None:
        start = self.address.pop(t)
        self.arena.release(start, start + self.slots.slot[t], self.owner(t))

    # -- DRAM --------------------------------------------------------------------------------------------

    def copy_out(self, t: int, data: Bytes) -> None:
        first = t not in self.dram and t in self.outputs
        self.dram[t] = data
        self.count("compulsory" if first else "spill", len(data))

    def send_out(self, t: int, data: Bytes, crossed: int) -> None:
        """Record that a tensor has gone to DRAM in parts; `crossed` are planned bytes."""
        size = self.network.tensors[t].bytes
        first = size if t not in self.dram and t in self.outputs and crossed >= size else 0
        self.dram[t] = data
        self.count("compulsory", first * self.slots.scale)
        self.count("spill", (crossed - first) * self.slots.scale)

    def bring_in(self, t: int, crossed: int) -> None:
        """Record that a tensor has come from DRAM in parts; `crossed` are planned bytes.

        Those that were needed may be all that is compulsory.
        """
        first = min(self.network.tensors[t].bytes, crossed) if self.first_fetch(t) else 0
        self.count("compulsory", first * self.slots.scale)
        self.count("reload", (crossed - first) * self.slots.scale)

    def first_fetch(self, t: int) -> bool:
        """Return True once for each graph input that DRAM holds."""
        is_input = self.network.tensors[t].kind == "input" and t not in self.held.first
        is_input = is_input and not self.begins_on_chip(t)
        first = is_input and t not in self.fetched
        self.fetched.add(t)
        return first

    def count(self, kind: str, size: int) -> None:
        self.moved[kind] += size

    def fetched_weights(self, name: str, operators: Sequence[Operator]) -> int:
        """Return the weight bytes that a unit fetches when its operators run whole, refills included."""
        refills = dict(self.groups[name].refills) if name in self.groups else {}
        pinned = {pin.operator for pin in self.plan.pins if isinstance(pin, PinnedWeights)}
        return sum(op.weight_bytes * refills.get(op.name, 1) for op in operators if op.name not in pinned)

    def bytes_moved(self) -> BytesMoved:
        """Return the bytes that the copies moved, at the plan's sizes: every copy was a whole slot, so the
        division leaves no remainder."""
        moved = {kind: size // self.slots.scale for kind, size in self.moved.items()}
        between = tuple(Moved(*pair, size // self.slots.scale) for pair, size in sorted(self.between.items()))
        return BytesMoved(**moved, weights=self.weights, between=between)

    # -- invariants --------------------------------------------------------------------------------------

    def expect_whole(self, t: int, when: str, kind: str = "") -> None:
        """Check that a root tensor is resident and produced, and that it owns every byte of its slot."""
        if t not in self.address:
            self.refuse(f"{kind}not-resident", f"{self.name(t)}, {when}, is not resident")
        if not self.written(t):
            self.refuse(f"{kind}not-produced", f"{self.name(t)}, {when}, was never written")
        self.expect_owner(*self.slot(t), self.owner(t), when)

    def expect_reserved(self, op: Operator, streamed: Collection[int], at: str) -> None:
        """Check that every output that does not stream has its range, and its overwritten operands exist."""
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
        """Return whether every operator that writes the tensor has run."""
        return self.network.tensors[t].kind == "input" or self.ran.issuperset(self.writers[t])

    # -- names -------------------------------------------------------------------------------------------

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
        if t in self.settled:
            return self.caches[t].owner
        return f"tensor {self.name(t)}"

    def claim(self, t: int) -> Claim:
        return Claim(self.owner(t), self.index)

    def where(self) -> str:
        return f"instruction {self.index}: {self.instruction}"

    def refuse(self, rule: str, reason: str) -> NoReturn:
        raise IllegalPlan(rule, reason, index=self.index, instruction=self.instruction)

    def _reserved(self, instruction: Load | Alloc | Scratch | Move) -> int:
        """Return the planned bytes of the range that an instruction reserves."""
        if isinstance(instruction, Scratch):
            name = instruction.operator
            known = name in self.groups or name in self.network.operator_id
            return self.scratch_size(name) if known else 0
        t = self.network.tensor_id.get(instruction.tensor)
        return 0 if t is None else self.network.tensors[t].bytes
