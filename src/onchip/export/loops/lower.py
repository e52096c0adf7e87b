"""A plan's program as steps: every copy, and every loop of its groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onchip.base.errors import UsageError
from onchip.check import joined_offsets
from onchip.export.loops.book import Book
from onchip.export.loops.nest import NestSteps
from onchip.export.loops.steps import Program, RunWhole, Step, Transfer, WholeRead
from onchip.network import Operator, mask
from onchip.plans import Alloc, Free, Group, Join, Load, Move, Nest, Plan, Run, Scratch, Store
from onchip.readers.source import Executable, Source
from onchip.run.onnx_engine import OnnxEngine
from onchip.run.slots import make_slots
from onchip.run.source import source_of
from onchip.run.told import told_of

__all__ = ["Lowered", "book_of", "lowered"]


def book_of(plan: Plan, model: Source | str | None, seed: int = 0) -> Book:
    """Return an empty book of a plan as it is executed, and of the model that it was made from.

    Raises `UsageError` for plans that have no steps, `InputError` for a model that is another one.
    """
    plan = told_of(plan).plan
    where = plan.network.name
    if plan.state or plan.caches or plan.pins:
        raise UsageError("has states, caches or pins: there are no steps of these yet", where=where)
    if any(t.patches is not None for t in plan.network.tensors):
        raise UsageError("has tensors in patches: there are no steps of these yet", where=where)
    executable = source_of(plan, model)
    if not isinstance(executable, Executable):
        raise UsageError("is a .tflite model: its steps are those of `onchip mcu`", where=where)
    slots = make_slots(plan.network, executable)
    return Book(plan, OnnxEngine.of(plan.network, slots, executable, seed))


def lowered(book: Book) -> Program:
    """Return the steps of a plan. Raises `UsageError` for what has none."""
    return Lowered(book).program()


class Lowered:
    """The steps so far."""

    def __init__(self, book: Book) -> None:
        self.book, self.plan, self.network = book, book.plan, book.network
        self.groups: Mapping[str, Group] = {group.name: group for group in self.plan.groups}
        self.scratch: dict[str, int] = {}
        self.base: dict[str | None, int] = {}
        self.steps: list[Step] = []
        self.nests: list[NestSteps] = []
        """Those of the groups that run as nests, in their order."""
        names = [m.name for m in self.plan.chip.memories]
        self.pad = 0
        if names:
            for name, use in zip(names, self.plan.result.memories, strict=True):
                self.base[name], self.pad = self.pad, self.pad + use.extent_bytes
        else:
            self.base[None], self.pad = 0, self.plan.result.extent_bytes
        for step in self.plan.program:
            if isinstance(step, Join):
                op = self.operators(step.operator)[0]
                offsets = joined_offsets(self.network, op.id)
                assert not isinstance(offsets, str)
                for t, offset in offsets.items():
                    book.inside[self.network.root[t]] = op.outputs[0], offset
        for tensor in self.network.tensors:
            if tensor.kind == "input":
                book.tensor(tensor.id)
        for output in self.network.outputs:
            book.tensor(self.network.root[output])

    def program(self) -> Program:
        """Return all steps."""
        for instruction in self.plan.program:
            match instruction:
                case Load(name, address, memory):
                    t = self.tensor(name)
                    self.book.address[t] = self.base[memory] + address
                    self.transfer("load", t)
                case Alloc(name, address, over, parts=parts, memory=memory):
                    t = self.tensor(name)
                    self.book.address[t] = self.base[memory] + address
                    if parts or over is not None:
                        self.book.over.add(t)
                case Scratch(name, address, memory):
                    self.scratch[name] = self.base[memory] + address
                case Move(name, address, memory):
                    t = self.tensor(name)
                    old, new = self.book.address[t], self.base[memory] + address
                    size = self.network.tensors[t].bytes
                    self.steps.append(Transfer("move", self.book.tensor(t), old, size, new))
                    self.book.address[t] = new
                case Store(name):
                    self.transfer("store", self.tensor(name))
                case Run(name, streaming):
                    self.run(name, [self.tensor(t) for t, _ in streaming])
                case Free() | Join():
                    pass
        return Program(self.book.arrays, self.book.places, tuple(self.steps), self.pad)

    def tensor(self, name: str) -> int:
        """Return a tensor by its name."""
        return self.network.tensor_id[name]

    def operators(self, name: str) -> list[Operator]:
        """Return the operators of a group, or one, in the order of the network."""
        members = self.groups[name].operators if name in self.groups else (name,)
        ids = {self.network.operator_id[member] for member in members}
        return [self.network.operators[v] for v in self.network.order if v in ids]

    def transfer(self, direction: str, t: int) -> None:
        """Add the copy of a whole tensor."""
        size = self.network.tensors[t].bytes
        self.steps.append(Transfer(direction, self.book.tensor(t), self.book.address[t], size))

    def run(self, name: str, streamed: Sequence[int]) -> None:
        """Add the steps of an operator or group."""
        operators = self.operators(name)
        group = self.groups.get(name)
        if group is not None and isinstance(group.tiling, Nest):
            scratch = self.scratch.get(name, 0)
            self.nests.append(NestSteps(self.book, group, group.tiling, operators, streamed, scratch))
            self.steps += self.nests[-1].steps()
            return
        if group is not None and group.tiling is not None:
            raise UsageError("runs in tiles that are no nest", item=f"group {name}")
        refills = {} if group is None else dict(group.refills)
        if group is not None:
            self.inner(name, operators)
        for op in operators:
            weights = op.weight_bytes * refills.get(op.name, 1)
            self.steps.append(self.whole(op, streamed, weights))

    def inner(self, name: str, operators: Sequence[Operator]) -> None:
        """Give tensors inside a group that is not cut their places in its scratch, one after another."""
        members, at = mask(op.id for op in operators), self.scratch.get(name, 0)
        for op in operators:
            for t in op.outputs:
                readers = self.network.readers[t]
                leaves = not readers or readers & ~members or self.network.output_roots >> t & 1
                if not leaves and t not in self.book.address:
                    self.book.address[t] = at
                    at += self.plan.chip.round_up(self.network.tensors[t].bytes)

    def whole(self, op: Operator, streamed: Sequence[int], weights: int) -> RunWhole:
        """Return the step of an operator on whole operands."""
        roots = dict.fromkeys(self.network.root[t] for t in (*op.inputs, *op.outputs))
        crossing = sum(self.network.tensors[t].bytes for t in roots if t in streamed)
        shares = any(self.network.root[t] in self.book.over for t in op.outputs)
        return RunWhole(
            op,
            tuple(self.value(t, streamed) for t in op.inputs),
            tuple(self.value(t, streamed) for t in op.outputs),
            weights,
            crossing,
            shares,
        )

    def value(self, t: int, streamed: Sequence[int]) -> WholeRead:
        """Return where a whole value lies."""
        network, engine = self.network, self.book.engine
        root, offset = network.root[t], network.offset[t]
        kind, shape = self.book.kind(t), engine.slots.shape[t]
        name = engine.executable.value[t]
        self.book.tensor(root)  # refuses elements of other widths
        if root in streamed:
            return WholeRead(name, None, self.book.tensor(root), offset, kind, shape)
        return WholeRead(name, self.book.address[root] + offset, None, offset, kind, shape)
