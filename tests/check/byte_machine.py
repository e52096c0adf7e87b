"""A slow, literal machine: one Python cell for every byte, and every byte's value followed.

It shares nothing with the checker. It executes a program that is said to be legal, fails when a byte that is
read is not the one that was meant, and counts what the definitions of docs/plan-program.md count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from onchip.network import Network
from onchip.plans import Alloc, Free, Group, Join, Load, Plan, Run, Scratch, Store

Byte = tuple[str, int]
"""The value of a byte: byte i of a tensor."""


def up(size: int, alignment: int) -> int:
    while size % alignment:
        size += 1
    return size


@dataclass
class Piece:
    """An operator or a group, by names of roots."""

    reads: list[str]
    writes: list[str]
    workspace: int
    weights: int


def pieces(network: Network, groups: tuple[Group, ...]) -> dict[str, Piece]:
    names = [t.name for t in network.tensors]
    root = {t.name: t.name for t in network.tensors}
    for view in network.views:
        root[names[view.tensor]] = names[view.of]
    outputs = {root[names[t]] for t in network.outputs}
    operators = {
        op.name: Piece(
            list(dict.fromkeys(root[names[t]] for t in op.inputs)),
            [names[t] for t in op.outputs],
            op.workspace,
            op.weight_bytes,
        )
        for op in network.operators
    }
    for group in groups:
        members = {name: operators.pop(name) for name in group.operators}
        made = [t for m in members.values() for t in m.writes]
        read = dict.fromkeys(t for m in members.values() for t in m.reads)
        outside = {t for piece in operators.values() for t in piece.reads}
        for other in groups:
            if other is not group and other.name in operators:
                outside |= set(operators[other.name].reads)
        refills = dict(group.refills)
        operators[group.name] = Piece(
            [t for t in read if t not in made],
            [t for t in made if t in outside or t in outputs or t not in read],
            group.scratch_bytes,
            sum(m.weights * refills.get(name, 1) for name, m in members.items()),
        )
    return operators


@dataclass
class Snapshot:
    """What is where before an instruction."""

    address: dict[str, int]
    produced: set[str]
    copies: set[str]
    over: dict[str, str]
    scratch: set[str]
    ran: set[str]
    top: int


@dataclass
class ByteMachine:
    plan: Plan
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("compulsory", "reload", "spill", "weights", "peak", "extent"), 0
        )
    )

    def __post_init__(self) -> None:
        net, self.align = self.plan.network, self.plan.chip.alignment_bytes
        self.size = {t.name: t.bytes for t in net.tensors}
        self.pieces = pieces(net, self.plan.groups)
        views = {net.tensors[v.tensor].name: net.tensors[v.of].name for v in net.views}
        self.outputs = {views.get(net.tensors[t].name, net.tensors[t].name) for t in net.outputs}
        self.inputs = {t.name for t in net.tensors if t.kind == "input"}
        self.dram: dict[str, list[Byte]] = {t: self.value(t) for t in self.inputs}
        self.memory: list[Byte | None] = [None] * self.plan.budget
        self.owners: list[set[str]] = [set() for _ in range(self.plan.budget)]
        self.address: dict[str, int] = {}
        self.produced = set(self.inputs)
        self.over: dict[str, str] = {}
        self.parts: dict[str, tuple[str, ...]] = {}  # operands that lie in their places in a concat
        self.joined: set[str] = set()
        self.scratch: dict[str, int] = {}
        self.ran: set[str] = set()
        self.whole_input: set[str] = set()

    def value(self, t: str) -> list[Byte]:
        return [(t, i) for i in range(self.size[t])]

    def snapshot(self) -> Snapshot:
        taken = [i for i, owner in enumerate(self.owners) if owner]
        top = up(taken[-1] + 1 if taken else 0, self.align)
        return Snapshot(
            dict(self.address), set(self.produced), set(self.dram), dict(self.over), set(self.scratch),
            set(self.ran), top,
        )  # fmt: skip

    def snapshots(self) -> Iterator[Snapshot]:
        for instruction in self.plan.program:
            yield self.snapshot()
            self.step(instruction)
        yield self.snapshot()

    def execute(self) -> dict[str, int]:
        for instruction in self.plan.program:
            self.step(instruction)
        assert self.ran == set(self.pieces)
        for t in self.outputs:
            assert self.dram[t] == self.value(t)
        return self.counts

    # -- instructions ----------------------------------------------------------------------------------

    def step(self, instruction: object) -> None:
        match instruction:
            case Load(t, address):
                self.reserve(t, address, self.size[t])
                self.address[t] = address
                self.memory[address : address + self.size[t]] = self.dram[t]
                self.inwards(t, self.size[t])
            case Alloc(t, address, over, _, parts):
                under = parts if over is None else (over,)
                self.reserve(t, address, self.size[t], beside=under)
                self.address[t] = address
                self.over |= dict.fromkeys(under, t)
                self.parts[t] = parts
            case Scratch(operator, address):
                self.reserve(f"scratch {operator}", address, self.pieces[operator].workspace)
                self.scratch[operator] = address
            case Run(operator, streaming):
                self.run(operator, dict(streaming))
            case Store(t):
                self.outwards(t, self.size[t], self.read(t))
            case Free(t):
                del self.address[t]
                self.release(t)
            case Join(operator):
                self.join(operator)

    def join(self, operator: str) -> None:
        """What is said to be a concat's output must be its operands, one after another."""
        piece = self.pieces[operator]
        (out,) = piece.writes
        assert operator not in self.ran
        assert out not in self.address
        for t in piece.reads:
            assert t not in self.inputs
            assert t not in self.joined
            assert self.dram[t] == self.value(t)
        assert sum(self.size[t] for t in piece.reads) == self.size[out]
        self.joined |= set(piece.reads)
        self.scratch.pop(operator, None)
        self.produced.add(out)
        self.dram[out] = self.value(out)
        self.ran.add(operator)

    def run(self, operator: str, streaming: dict[str, int]) -> None:
        piece = self.pieces[operator]
        for t in piece.reads:
            if t in streaming:
                assert self.dram[t] == self.value(t)
                self.inwards(t, streaming[t])
            else:
                assert self.read(t) == self.value(t)
        if piece.workspace:
            start = self.scratch.pop(operator)
            self.memory[start : start + piece.workspace] = [None] * piece.workspace
            self.release(f"scratch {operator}")
        elif operator in self.scratch:
            del self.scratch[operator]
        for t in piece.writes:
            self.produced.add(t)
            if t in streaming:
                self.outwards(t, streaming[t], self.value(t))
            else:
                start = self.address[t]
                place = start
                for x in piece.reads if self.parts[t] else ():
                    if x in self.parts[t]:
                        assert self.memory[place : place + self.size[x]] == self.value(x)
                    place += self.size[x]
                self.memory[start : start + self.size[t]] = self.value(t)
        for x in [x for x, y in self.over.items() if y in piece.writes]:
            del self.over[x], self.address[x]
            self.release(x)
        self.counts["weights"] += piece.weights
        self.ran.add(operator)

    # -- bytes -----------------------------------------------------------------------------------------

    def read(self, t: str) -> list[Byte | None]:
        start = self.address[t]
        return self.memory[start : start + self.size[t]]

    def reserve(self, owner: str, address: int, size: int, beside: tuple[str, ...] = ()) -> None:
        end = address + up(size, self.align)
        assert address >= 0
        assert end <= self.plan.budget
        for i in range(address, end):
            assert self.owners[i] <= set(beside)
            self.owners[i].add(owner)
        self.counts["peak"] = max(self.counts["peak"], sum(1 for cell in self.owners if cell))
        if size:
            self.counts["extent"] = max(self.counts["extent"], end)

    def release(self, owner: str) -> None:
        for cell in self.owners:
            cell.discard(owner)

    def inwards(self, t: str, crossing: int) -> None:
        whole = crossing >= self.size[t]
        first = t in self.inputs and t not in self.whole_input and whole
        if first:
            self.whole_input.add(t)
        self.counts["compulsory"] += self.size[t] if first else 0
        self.counts["reload"] += crossing - (self.size[t] if first else 0)

    def outwards(self, t: str, crossing: int, content: list[Byte | None]) -> None:
        assert content == self.value(t)
        first = t in self.outputs and t not in self.dram
        self.counts["compulsory"] += self.size[t] if first else 0
        self.counts["spill"] += crossing - (self.size[t] if first else 0)
        self.dram[t] = self.value(t)
