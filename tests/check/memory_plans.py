"""A literal machine that counts what a plan does in each of several memories."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from random import Random

from byte_machine import pieces, up
from legal_plans import legal_plan

from onchip.plans import Alloc, Free, Instruction, Join, Load, Move, Plan, Run, Scratch
from several_memories import in_memories


def legal_memory_plan(rng: Random) -> Plan:
    return in_memories(rng, legal_plan(rng))


class MemoryMachine:
    """Counts, cell by cell and access by access, what docs/plan-program.md says of several memories."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.net = plan, plan.network
        self.pieces = pieces(plan.network, plan.groups)
        self.rate = {
            m.name: m.bytes_per_second or plan.chip.scratchpad_bytes_per_second for m in plan.chip.memories
        }
        self.cells: dict[str, list[set[str]]] = {
            m.name: [set() for _ in range(m.bytes)] for m in plan.chip.memories
        }
        self.peak = dict.fromkeys(self.cells, 0)
        self.extent = dict.fromkeys(self.cells, 0)
        self.accessed = dict.fromkeys(self.cells, 0)
        self.moved: dict[tuple[str, str], int] = {}
        self.picoseconds = 0
        self.home: dict[str, str] = {}
        self.parts: dict[str, tuple[str, ...]] = {}
        self.over: dict[str, tuple[str, ...]] = {}
        self.scratch: dict[str, str] = {}
        views = {self.net.tensors[v.tensor].name: self.net.tensors[v.of].name for v in self.net.views}
        self.root = {t.name: views.get(t.name, t.name) for t in self.net.tensors}
        self.size = {t.name: t.bytes for t in self.net.tensors}

    def execute(self) -> MemoryMachine:
        for step in self.plan.program:
            self.step(step)
        return self

    def touch(self, memory: str, size: int) -> None:
        self.accessed[memory] += size
        rate = self.rate[memory]
        if rate is not None:
            exact = size * 10**12 / Fraction(rate)
            self.picoseconds += -(-exact.numerator // exact.denominator)

    def take(self, owner: str, memory: str, address: int, size: int) -> None:
        end = address + up(size, self.plan.chip.alignment_bytes)
        for cell in self.cells[memory][address:end]:
            cell.add(owner)
        self.peak[memory] = max(self.peak[memory], sum(1 for cell in self.cells[memory] if cell))
        if size:
            self.extent[memory] = max(self.extent[memory], end)

    def release(self, owner: str) -> None:
        for cells in self.cells.values():
            for cell in cells:
                cell.discard(owner)

    def step(self, step: Instruction) -> None:
        match step:
            case Load(t, address, str(memory)):
                self.take(t, memory, address, self.size[t])
                self.home[t] = memory
                self.touch(memory, self.size[t])
            case Alloc(t, address, over, _, parts, str(memory)):
                self.take(t, memory, address, self.size[t])
                self.home[t] = memory
                self.parts[t] = parts
                self.over[t] = parts or ((over,) if over else ())
            case Scratch(name, address, str(memory)):
                self.take(f"scratch {name}", memory, address, self.pieces[name].workspace)
                self.scratch[name] = memory
            case Move(t, address, memory):
                source = self.home[t]
                self.take(f"new {t}", memory, address, self.size[t])
                self.release(t)
                self.take(t, memory, address, self.size[t])
                self.release(f"new {t}")
                self.home[t] = memory
                self.touch(source, self.size[t])
                self.touch(memory, self.size[t])
                self.moved[source, memory] = self.moved.get((source, memory), 0) + self.size[t]
            case Run(name, streaming):
                self.run(name, dict(streaming))
            case Free(t):
                self.release(t)
                del self.home[t]
            case Join(name):
                pass
            case _:
                self.touch(self.home[step.tensor], self.size[step.tensor])

    def run(self, name: str, streaming: Mapping[str, int]) -> None:
        group = next((g for g in self.plan.groups if g.name == name), None)
        for member in (name,) if group is None else group.operators:
            op = self.net.operators[self.net.operator_id[member]]
            operands = [self.net.tensors[t].name for t in (*op.inputs, *op.outputs)]
            (out, *_) = [self.net.tensors[t].name for t in op.outputs]
            if self.parts.get(out):
                for x in operands[:-1]:
                    if x not in self.parts[out]:
                        self.touch(self.scratch[name] if x in streaming else self.home[x], self.size[x])
                        self.touch(self.home[out], self.size[x])
                continue
            for t in operands:
                root = self.root[t]
                where = (
                    self.scratch[name] if root in streaming else self.home.get(root, self.scratch.get(name))
                )
                assert where is not None
                self.touch(where, self.size[t])
        for crossing in streaming.values():
            self.touch(self.scratch[name], crossing)
        if group is None and self.pieces[name].workspace:
            self.touch(self.scratch[name], self.pieces[name].workspace)
        for t in self.pieces[name].writes:
            for x in self.over.pop(t, ()):
                self.release(x)
                del self.home[x]
        self.release(f"scratch {name}")
        self.scratch.pop(name, None)
