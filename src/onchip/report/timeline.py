"""What a plan's program does over time: who lies where, how full the scratchpad is, what crosses to DRAM.

A *step* is one `run` (or `join`) and everything since the one before it, so that making room for an operator
belongs to that operator's step. What follows the last run is one more step, without an operator. The figures
are found by this pass alone: neither a planner's nor the checker's arithmetic is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from onchip.base.errors import IllegalPlan
from onchip.check.boxes import weights_in_boxes
from onchip.network import Network, Operator, bits, mask
from onchip.plans import Alloc, Boxes, Free, Group, Join, Load, Move, PinnedWeights, Plan, Run, Scratch, Store
from onchip.plans.text import instruction_text

__all__ = ["Crossing", "Residency", "Role", "Step", "Timeline", "Traffic", "timeline"]

Role = Literal["input", "activation", "output", "scratch", "weights"]
Arrival = Literal["load", "reload", "alloc", "move", "scratch", "held"]
Departure = Literal["dead", "spill", "evict", "move", "kept"]


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that cross to and from DRAM, by kind; `compulsory` is split by direction."""

    compulsory_in: int = 0
    compulsory_out: int = 0
    spill: int = 0
    reload: int = 0
    weights: int = 0

    @property
    def compulsory(self) -> int:
        """First loads of graph inputs and first stores of graph outputs."""
        return self.compulsory_in + self.compulsory_out

    @property
    def total(self) -> int:
        """Every byte that crosses."""
        return self.compulsory + self.spill + self.reload + self.weights


@dataclass(frozen=True, slots=True)
class Step:
    """One run with what made room for it.

    `occupancy_bytes` is the most that was live at any instruction of the step; `streamed` the operands that
    passed through scratch, as (tensor, bytes). `operators` is empty for what follows the last run; a `joined`
    step is a concat in DRAM, which moves nothing.
    """

    index: int
    name: str
    type: str
    operators: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    workspace: int
    occupancy_bytes: int
    traffic: Traffic
    streamed: tuple[tuple[int, int], ...] = ()
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Residency:
    """One stay in the scratchpad: bytes [address, address + size) over steps [start, end).

    `tensor` is None for an operator's scratch, whose `operator` is its step's, and for pinned weights; sizes
    are rounded up to the chip's alignment. What is `held` was there before the first step. A tensor that left
    `spill` was stored first (at a cost); one that left `evict` already had a copy in DRAM. One that leaves by
    `move` is on chip elsewhere from then on. `memory` is one of several, None a single scratchpad.
    """

    tensor: int | None
    name: str
    role: Role
    address: int
    size: int
    start: int
    end: int
    arrival: Arrival
    departure: Departure
    memory: str | None = None


@dataclass(frozen=True, slots=True)
class Crossing:
    """Bytes of one tensor that cross; `kind` is a field of `Traffic` other than weights."""

    tensor: int
    instruction: int
    step: int
    kind: str
    bytes: int


@dataclass(frozen=True)
class Timeline:
    """A plan's program over time."""

    plan: Plan
    steps: tuple[Step, ...]
    residencies: tuple[Residency, ...]
    peak_step: int
    peak_live: tuple[tuple[str, Role, int], ...]
    """What is live at the fullest instruction: (tensor or operator, role, bytes), largest first."""
    crossings: tuple[Crossing, ...]
    """What crosses to and from DRAM beside weights, in the program's order."""

    @cached_property
    def peak_bytes(self) -> int:
        """Most live bytes at any instruction."""
        return self.steps[self.peak_step].occupancy_bytes if self.steps else 0

    @cached_property
    def extent_bytes(self) -> int:
        """One past the highest byte reserved, added up over the memories."""
        return sum(self.extents.values())

    @cached_property
    def extents(self) -> dict[str | None, int]:
        """One past the highest byte reserved in each memory of the chip."""
        names: list[str | None] = [m.name for m in self.plan.chip.memories]
        found = dict.fromkeys(names or [None], 0)
        for r in self.residencies:
            found[r.memory] = max(found.get(r.memory, 0), r.address + r.size)
        return found

    @cached_property
    def traffic(self) -> Traffic:
        """All bytes that cross to DRAM."""
        rows = [s.traffic for s in self.steps]
        return Traffic(
            sum(t.compulsory_in for t in rows),
            sum(t.compulsory_out for t in rows),
            sum(t.spill for t in rows),
            sum(t.reload for t in rows),
            sum(t.weights for t in rows),
        )

    def role(self, tensor: int) -> Role:
        """What a tensor is to the network; an input that is also an output counts as an output."""
        return role_of(self.plan.network, tensor)

    @cached_property
    def stays(self) -> dict[int, tuple[Residency, ...]]:
        """Each tensor's residencies in order."""
        found: dict[int, list[Residency]] = {}
        for r in self.residencies:
            if r.tensor is not None:
                found.setdefault(r.tensor, []).append(r)
        return {t: tuple(rows) for t, rows in found.items()}


def role_of(network: Network, tensor: int) -> Role:
    """What a tensor is to the network."""
    if network.output_roots >> tensor & 1:
        return "output"
    return "input" if network.input_roots >> tensor & 1 else "activation"


def timeline(plan: Plan) -> Timeline:
    """The plan's program over time.

    Raises `IllegalPlan` for a program that cannot be followed at all (an unknown name, a tensor freed that
    is not there); whether a program is legal is for the checker to say.
    """
    walk = _Walk(plan)
    for index, instruction in enumerate(plan.program):
        walk.at = index
        try:
            walk.follow(instruction)
        except KeyError as missing:
            raise IllegalPlan(
                "timeline",
                f"cannot be followed: {missing.args[0]!r} is unknown or not resident here",
                index=index,
                instruction=instruction_text(instruction),
            ) from None
    return walk.finish()


class _Walk:
    def __init__(self, plan: Plan) -> None:
        net = plan.network
        self.plan, self.net = plan, net
        self.groups = {g.name: g for g in plan.groups}
        self.open: dict[str, Residency] = {}
        # tensor reserved over another -> (that one, bytes they share), until the run that ends the other
        self.over: dict[str, tuple[str, int]] = {}
        self.scratch: dict[str, Residency] = {}
        self.closed: list[Residency] = []
        self.steps: list[Step] = []
        self.live = 0
        handed = [(net.tensor_id.get(s.input, -1), net.tensor_id.get(s.output, -1)) for s in plan.state]
        self.inputs = net.input_roots & ~mask(t for t, _ in handed if t >= 0)
        self.outputs = net.output_roots & ~mask(t for _, t in handed if t >= 0)
        self.copied = self.inputs  # tensors with a DRAM copy
        self.fetched: set[str] = set()  # tensors that came from DRAM
        self.crossed = 0  # graph inputs whose compulsory load has happened
        self.ran = 0
        self.peak = (-1, 0)
        self.peak_live: tuple[tuple[str, Role, int], ...] = ()
        self.pinned: list[Residency] = []
        self.crossings: list[Crossing] = []
        self.at = 0  # the instruction that is followed
        self.begin_step()
        self.hold()

    def hold(self) -> None:
        """What lies in the scratchpad before the first instruction."""
        for pin in self.plan.pins:
            if not isinstance(pin, PinnedWeights) or self.plan.chip.weight_scratchpad_bytes is not None:
                continue
            size = self.plan.chip.round_up(
                self.net.operators[self.net.operator_id[pin.operator]].weight_bytes
            )
            self.pinned.append(
                Residency(None, pin.operator, "weights", pin.address, size, 0, 0, "held", "kept")
            )
            self.rise(size)
        for state in self.plan.state:
            self.reserve(state.input, state.address, "held")

    def begin_step(self) -> None:
        self.occupancy = 0
        self.rises = False
        self.bytes = dict.fromkeys(("compulsory_in", "compulsory_out", "spill", "reload", "weights"), 0)

    def follow(self, instruction: object) -> None:
        match instruction:
            case Load(name, address, memory):
                tensor = self.net.tensor_id[name]
                first = self.bring_in(tensor, self.net.tensors[tensor].bytes)
                self.fetched.add(name)
                self.reserve(name, address, "load" if first else "reload", memory=memory)
            case Alloc(name, address, over, _, parts, memory):
                self.reserve(name, address, "alloc", over, parts, memory)
            case Scratch(name, address, memory):
                self.reserve_scratch(name, address, memory)
            case Move(name, address, memory):
                left = self.open[name]
                self.reserve(name, address, "move", memory=memory)
                self.live -= left.size
                self.closed.append(replace(left, end=len(self.steps), departure="move"))
            case Run(name, streaming):
                self.run(name, streaming)
            case Store(name):
                self.send_out(self.net.tensor_id[name], self.net.tensors[self.net.tensor_id[name]].bytes)
            case Free(name):
                self.free(name)
            case Join(name):
                self.join(name)

    # -- bytes that cross ----------------------------------------------------------------------------------

    def bring_in(self, tensor: int, n: int) -> bool:
        """Count `n` bytes of a tensor coming from DRAM; whether this was its compulsory load."""
        size, bit = self.net.tensors[tensor].bytes, 1 << tensor
        first = bool(self.inputs & bit) and not self.crossed & bit and n >= size
        if first:
            self.crossed |= bit
            self.cross(tensor, "compulsory_in", size)
        self.cross(tensor, "reload", n - size if first else n)
        return first

    def send_out(self, tensor: int, n: int) -> None:
        """Count `n` bytes of a tensor going to DRAM."""
        size, bit = self.net.tensors[tensor].bytes, 1 << tensor
        first = bool(self.outputs & bit) and not self.copied & bit and n >= size
        self.copied |= bit
        if first:
            self.cross(tensor, "compulsory_out", size)
        self.cross(tensor, "spill", n - size if first else n)

    def cross(self, tensor: int, kind: str, n: int) -> None:
        """Count them, for the step and for the tensor."""
        self.bytes[kind] += n
        if n:
            self.crossings.append(Crossing(tensor, self.at, len(self.steps), kind, n))

    # -- ranges -----------------------------------------------------------------------------------------

    def reserve(
        self,
        name: str,
        address: int,
        arrival: Arrival,
        over: str | None = None,
        parts: tuple[str, ...] = (),
        memory: str | None = None,
    ) -> None:
        tensor = self.net.tensor_id[name]
        size = self.plan.chip.round_up(self.net.tensors[tensor].bytes)
        here, role = len(self.steps), role_of(self.net, tensor)
        shared = 0
        if over is not None:
            other = self.open[over]
            low, high = max(address, other.address), min(address + size, other.address + other.size)
            shared = max(0, high - low)
            self.over[name] = over, shared
        for part in parts:
            # What was several stretches is one from here on: the operands' stays end where this one begins.
            stay = self.open.pop(part)
            shared += stay.size
            self.closed.append(replace(stay, end=here, departure="dead"))
        self.open[name] = Residency(tensor, name, role, address, size, here, 0, arrival, "kept", memory)
        self.rise(size - shared)

    def reserve_scratch(self, name: str, address: int, memory: str | None) -> None:
        size = self.plan.chip.round_up(self.workspace(name))
        if not size:
            return
        here = len(self.steps)
        self.scratch[name] = Residency(
            None, name, "scratch", address, size, here, here + 1, "scratch", "dead", memory
        )
        self.rise(size)

    def rise(self, n: int) -> None:
        self.live += n
        self.rises = True
        self.mark()

    def mark(self) -> None:
        self.occupancy = max(self.occupancy, self.live)
        if self.live > self.peak[0]:
            self.peak = (self.live, len(self.steps))
            rows = [*self.open.values(), *self.scratch.values(), *self.pinned]
            self.peak_live = tuple(
                sorted(((r.name, r.role, r.size) for r in rows), key=lambda row: (-row[2], row[0]))
            )

    def free(self, name: str) -> None:
        stay = self.open.pop(name)
        self.live -= stay.size
        needed = stay.tensor is not None and self.net.readers[stay.tensor] & ~self.ran
        departure: Departure = "dead"
        if needed:
            departure = "evict" if name in self.fetched else "spill"
        self.closed.append(replace(stay, end=len(self.steps), departure=departure))

    def end_overlapped(self, name: str) -> None:
        """The run that wrote `name` over another tensor ends that one."""
        other, shared = self.over.pop(name)
        stay = self.open.pop(other)
        self.live -= stay.size - shared
        self.closed.append(replace(stay, end=len(self.steps), departure="dead"))

    # -- runs -------------------------------------------------------------------------------------------

    def workspace(self, name: str) -> int:
        group = self.groups.get(name)
        return group.scratch_bytes if group else self.net.operators[self.net.operator_id[name]].workspace

    def run(self, name: str, streaming: Iterable[tuple[str, int]]) -> None:
        net, group = self.net, self.groups.get(name)
        ids = tuple(net.operator_id[n] for n in group.operators) if group else (net.operator_id[name],)
        operators = [net.operators[i] for i in ids]
        self.mark()
        streamed = []
        for tensor_name, n in streaming:
            tensor = net.tensor_id[tensor_name]
            streamed.append((tensor, n))
            if any(net.writes[i] >> tensor & 1 for i in ids):
                self.send_out(tensor, n)
            else:
                self.bring_in(tensor, n)
        self.bytes["weights"] += (
            0 if self.weights_pinned(name) else _weights(self.plan.network, operators, group)
        )
        written = self.union(net.writes[i] for i in ids)
        read = self.union(net.reads[i] for i in ids)
        for i in ids:
            self.ran |= 1 << i
        inside = self.union(1 << i for i in ids)
        inner = self.union(
            1 << t for t in bits(written & read & ~net.output_roots) if not net.readers[t] & ~inside
        )
        type_ = operators[0].type if not group else f"group of {len(ids)}"
        self.end_step(
            Step(
                len(self.steps),
                name,
                type_,
                ids,
                tuple(bits(read & ~written)),
                tuple(bits(written & ~inner)),
                self.workspace(name),
                self.occupancy,
                Traffic(),
                tuple(streamed),
            )
        )
        for t in bits(written):
            if net.tensors[t].name in self.over:
                self.end_overlapped(net.tensors[t].name)
        if name in self.scratch:
            scratch = self.scratch.pop(name)
            self.live -= scratch.size
            self.closed.append(replace(scratch, end=len(self.steps)))

    def join(self, name: str) -> None:
        """A concat in DRAM: nothing moves, and its output has a copy there."""
        operator = self.net.operators[self.net.operator_id[name]]
        written, read = self.net.writes[operator.id], self.net.reads[operator.id]
        self.copied |= written
        self.ran |= 1 << operator.id
        self.mark()
        inputs, outputs = tuple(bits(read)), tuple(bits(written))
        self.end_step(
            Step(
                len(self.steps),
                name,
                operator.type,
                (operator.id,),
                inputs,
                outputs,
                0,
                self.occupancy,
                Traffic(),
                joined=True,
            )
        )

    def weights_pinned(self, name: str) -> bool:
        """Are the weights of an operator there already?"""
        return any(isinstance(pin, PinnedWeights) and pin.operator == name for pin in self.plan.pins)

    @staticmethod
    def union(sets: Iterable[int]) -> int:
        result = 0
        for s in sets:
            result |= s
        return result

    def end_step(self, step: Step) -> None:
        self.steps.append(replace(step, traffic=Traffic(**self.bytes)))
        self.begin_step()

    def finish(self) -> Timeline:
        if self.rises or any(self.bytes.values()):
            self.end_step(
                Step(len(self.steps), "", "", (), (), (), 0, max(self.occupancy, self.live), Traffic())
            )
        end = len(self.steps)
        kept = [replace(stay, end=end) for stay in (*self.open.values(), *self.pinned)]
        rows = [*self.closed, *kept, *self.scratch.values()]
        rows.sort(key=lambda r: (r.start, r.address, r.name))
        return Timeline(
            self.plan,
            tuple(self.steps),
            tuple(rows),
            self.peak[1],
            self.peak_live,
            tuple(self.crossings),
        )


def _weights(network: Network, operators: list[Operator], group: Group | None) -> int:
    if group is not None and isinstance(group.tiling, Boxes):
        return weights_in_boxes(network, group, group.tiling)
    times = dict(group.refills) if group else {}
    return sum(op.weight_bytes * times.get(op.name, 1) for op in operators)
