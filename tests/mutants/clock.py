"""When everything happens: every pair of actions compared, byte by byte, for who must wait.

The rules of docs/objectives.md, on one scratchpad or several memories, with pinned weights and states.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from byte_machine import pieces, up

from onchip.plans import Alloc, Free, Join, Load, Move, PinnedWeights, Plan, Run, Scratch, Store

__all__ = ["times"]

Place = tuple[str | None, int]


@dataclass
class Action:
    """`needs` and `gives` are facts; `touches` says as whose each byte is read or written."""

    index: int
    compute: bool = False
    dma: bool = False
    touches: dict[Place, set[str]] = field(default_factory=dict)
    needs: set[str] = field(default_factory=set)
    gives: set[str] = field(default_factory=set)
    length: int = 0
    crossing: int = 0
    start: int = 0

    @property
    def end(self) -> int:
        return self.start + self.length

    def touch(self, memory: str | None, first: int, size: int, owner: str) -> None:
        for byte in range(first, first + size):
            self.touches.setdefault((memory, byte), set()).add(owner)

    def after(self, other: Action) -> int:
        until = other.end if self.compute and other.compute else 0
        if self.dma and other.dma:
            until = max(until, other.start + other.crossing if other.compute else other.end)
        clash = any(mine != other.touches[b] for b, mine in self.touches.items() if b in other.touches)
        return max(until, other.end) if clash or self.needs & other.gives else until


def whole(amount: Fraction | int) -> int:
    return math.ceil(amount * 10**12)


def times(plan: Plan) -> list[tuple[int, int, int, int | None]]:
    """(instruction, start, end, fetched) as the plan should state them."""
    actions = [*_actions(plan)]
    for i, action in enumerate(actions):
        action.start = max((action.after(before) for before in actions[:i]), default=0)
    return [
        (a.index, a.start, a.end, a.start + a.crossing if a.compute and a.dma else None)
        for a in actions
        if a.compute or a.dma
    ]


def _actions(plan: Plan) -> Iterator[Action]:
    chip, net = plan.chip, plan.network
    assert chip.dram_bytes_per_second
    assert chip.macs_per_second
    dram, speed = Fraction(chip.dram_bytes_per_second), Fraction(chip.macs_per_second)
    local = Fraction(chip.scratchpad_bytes_per_second) if chip.scratchpad_bytes_per_second else None
    rate: dict[str | None, Fraction] = {}
    stated = {m.name: m.bytes_per_second or chip.scratchpad_bytes_per_second for m in chip.memories}
    if all(stated.values()):
        rate = {name: Fraction(r) for name, r in stated.items() if r}
    names = [t.name for t in net.tensors]
    size = {t.name: t.bytes for t in net.tensors}
    views = {names[v.tensor]: names[v.of] for v in net.views}
    room = {name: up(n, chip.alignment_bytes) for name, n in size.items()}
    units = pieces(net, plan.groups)
    groups = {g.name: g for g in plan.groups}
    operators = {op.name: op for op in net.operators}
    pinned = {p.operator for p in plan.pins if isinstance(p, PinnedWeights)}
    resident = plan.options.get("weights") == "resident" and chip.weight_scratchpad_bytes is None
    at: dict[str, tuple[str | None, int, str]] = {}  # memory, address, stay
    scratch: dict[str, Place] = {}
    parts: dict[str, tuple[str, ...]] = {}
    stays = 0

    def stay(name: str, memory: str | None, address: int) -> str:
        nonlocal stays
        stays += 1
        at[name] = memory, address, f"{name} {stays}"
        return at[name][2]

    def kept(unit: str) -> int:
        if unit in groups:
            return sum(operators[m].weight_bytes for m in groups[unit].resident_weights)
        op = operators[unit]
        return op.weight_bytes if resident and unit not in pinned and op.workspace >= op.weight_bytes else 0

    def fetched(unit: str) -> int:
        return 0 if unit in pinned else units[unit].weights

    def macs(name: str) -> int:
        op = operators[name]
        return op.macs or (op.geometry.macs if op.geometry else 0)

    def on_chip(amount: int, *memories: str | None) -> Fraction:
        return max((amount / rate[m] for m in memories if m in rate), default=Fraction(0))

    def copy(index: int, name: str) -> Action:
        memory, address, owner = at[name]
        action = Action(index, dma=True)
        action.length = max(whole(size[name] / dram), whole(on_chip(size[name], memory)))
        action.touch(memory, address, room[name], owner)
        return action

    def busy(unit: str, streams: dict[str, int]) -> int:
        members = groups[unit].operators if unit in groups else (unit,)
        in_place = [x for t in units[unit].writes if t not in streams for x in parts.get(t, ())]
        if chip.memories:
            where = scratch[unit][0] if unit in scratch else None
            total = Fraction(0)

            def access(memory: str | None, n: int) -> None:
                nonlocal total
                total += n / rate[memory] if memory in rate else 0

            for member in members:
                op = operators[member]
                total += op.weight_bytes / local if local else 0
                operands = [names[t] for t in (*op.inputs, *op.outputs)]
                roots = [views.get(t, t) for t in operands]
                if in_place:
                    for t, root in zip(operands[:-1], roots[:-1], strict=True):
                        if root not in in_place:
                            access(where if root in streams else at[root][0], size[t])
                            access(at[roots[-1]][0], size[t])
                    continue
                for t, root in zip(operands, roots, strict=True):
                    access(where if root in streams or root not in at else at[root][0], size[t])
            for n in streams.values():
                access(where, n)
            if unit not in groups and units[unit].workspace:
                access(where, units[unit].workspace)
            computing = Fraction(0) if in_place else sum(map(macs, members)) / speed
            return whole(max(total, computing))
        if in_place:
            moved = 2 * sum(size[x] for x in units[unit].reads if x not in in_place)
            return whole(moved / local) if local else 0
        total_ps = 0
        for member in members:
            op = operators[member]
            longest = macs(member) / speed
            if local:
                moved = op.weight_bytes + sum(net.tensors[t].bytes for t in (*op.inputs, *op.outputs))
                longest = max(longest, moved / local)
            total_ps += whole(longest)
        return total_ps

    for pair in plan.state:
        stay(pair.input, None, pair.address)
    for index, instruction in enumerate(plan.program):
        match instruction:
            case Load(name, address, memory):
                owner = stay(name, memory, address)
                action = copy(index, name)
                action.needs, action.gives = {f"copy of {name}"}, {f"value {owner}"}
                yield action
            case Alloc(name, address, _, _, joined, memory):
                stay(name, memory, address)
                parts[name] = joined
            case Move(name, address, memory):
                source, low, old = at[name]
                action = Action(index, dma=True)
                action.touch(source, low, room[name], old)
                owner = stay(name, memory, address)
                action.touch(memory, address, room[name], owner)
                action.needs, action.gives = {f"value {old}"}, {f"value {owner}"}
                action.length = whole(on_chip(size[name], source, memory))
                yield action
            case Scratch(name, address, memory):
                scratch[name] = memory, address
                if kept(name):
                    action = Action(index, dma=True, length=whole(kept(name) / dram))
                    action.touch(
                        memory, address, up(units[name].workspace, chip.alignment_bytes), f"scratch {name}"
                    )
                    action.gives = {f"weights of {name}"}
                    yield action
            case Run(name, streaming):
                unit, streams = units[name], dict(streaming)
                action = Action(index, compute=True, needs={f"weights of {name}"})
                for t in (*unit.reads, *unit.writes):
                    if t in streams:
                        action.needs.add(f"copy of {t}")
                        if t in unit.writes:
                            action.gives.add(f"copy of {t}")
                        continue
                    memory, address, owner = at[t]
                    (action.needs if t in unit.reads else action.gives).add(f"value {owner}")
                    action.touch(memory, address, room[t], owner)
                action.length = busy(name, streams)
                if name in scratch:
                    memory, address = scratch.pop(name)
                    action.touch(memory, address, up(unit.workspace, chip.alignment_bytes), f"scratch {name}")
                bytes_ = fetched(name) - kept(name) + sum(streams.values())
                action.dma, action.crossing = bytes_ > 0, whole(bytes_ / dram)
                action.length = max(action.length, action.crossing)
                yield action
            case Store(name):
                action = copy(index, name)
                action.needs, action.gives = {f"value {at[name][2]}"}, {f"copy of {name}"}
                yield action
            case Free(name):
                del at[name]
            case Join(name):
                unit = units[name]
                yield Action(
                    index, needs={f"copy of {t}" for t in unit.reads}, gives={f"copy of {unit.writes[0]}"}
                )
