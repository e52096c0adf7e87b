"""A slow, literal clock: every pair of actions of a program is compared, byte by byte, for who must wait.

It shares nothing with the checker's. An action is a copy or a run; it starts when every earlier action
that it must wait for has ended, and not later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from byte_machine import pieces, up

from onchip.plans import Alloc, Free, Join, Load, Plan, Run, Scratch, Store

Owner = tuple[str, str, int]
"""What holds bytes: a kind, a name, and which stay of it."""


@dataclass
class Action:
    index: int
    compute: bool = False
    dma: bool = False
    touches: dict[int, set[Owner]] = field(default_factory=dict)  # byte -> what it is read or written as
    needs: set[str] = field(default_factory=set)  # facts that must hold before
    gives: set[str] = field(default_factory=set)  # facts that hold after
    length: int = 0
    crossing: int = 0
    start: int = 0

    @property
    def end(self) -> int:
        return self.start + self.length

    def touch(self, first: int, size: int, owner: Owner) -> None:
        for byte in range(first, first + size):
            self.touches.setdefault(byte, set()).add(owner)

    def waits_for(self, other: Action) -> int:
        """From when on `self` may start, for the sake of the earlier action `other`."""
        until = 0
        if self.compute and other.compute:
            until = other.end
        if self.dma and other.dma:
            until = max(until, other.start + other.crossing if other.compute else other.end)
        if self.needs & other.gives:
            until = max(until, other.end)
        if any(mine != other.touches[b] for b, mine in self.touches.items() if b in other.touches):
            until = max(until, other.end)
        return until


def seconds(amount: int, rate: float) -> Fraction:
    return amount / Fraction(rate)


def picoseconds(time: Fraction) -> int:
    return math.ceil(time * 10**12)


def times(plan: Plan) -> list[tuple[int, int, int, int | None]]:
    """(instruction, start, end, fetched) as `Plan.timing` should state them."""
    chip, net = plan.chip, plan.network
    bandwidth, speed = chip.dram_bytes_per_second, chip.macs_per_second
    assert bandwidth
    assert speed
    size = {t.name: t.bytes for t in net.tensors}
    room = {name: up(n, chip.alignment_bytes) for name, n in size.items()}
    units = pieces(net, plan.groups)
    members = {g.name: g.operators for g in plan.groups}
    operators = {op.name: op for op in net.operators}
    resident = {g.name: set(g.resident_weights) for g in plan.groups}
    at: dict[str, tuple[int, int]] = {}  # tensor -> address, stay
    scratch: dict[str, int] = {}
    parts: dict[str, tuple[str, ...]] = {}  # by concat: operands that lie in their places
    stays = 0
    actions: list[Action] = []

    def kept(unit: str) -> int:
        if unit in members:
            return sum(operators[m].weight_bytes for m in resident[unit])
        op = operators[unit]
        in_scratch = plan.options["weights"] == "resident" and op.workspace >= op.weight_bytes
        return op.weight_bytes if in_scratch else 0

    def computing(unit: str) -> int:
        total = 0
        for name in members.get(unit, (unit,)):
            op = operators[name]
            longest = seconds(op.macs or (op.geometry.macs if op.geometry else 0), speed)
            if chip.scratchpad_bytes_per_second:
                moved = op.weight_bytes + sum(net.tensors[t].bytes for t in (*op.inputs, *op.outputs))
                longest = max(longest, seconds(moved, chip.scratchpad_bytes_per_second))
            total += picoseconds(longest)
        return total

    def copy(index: int, name: str) -> Action:
        action = Action(index, dma=True, length=picoseconds(seconds(size[name], bandwidth)))
        address, stay = at[name]
        action.touch(address, room[name], ("tensor", name, stay))
        return action

    for index, instruction in enumerate(plan.program):
        match instruction:
            case Load(name, address):
                stays += 1
                at[name] = address, stays
                action = copy(index, name)
                action.needs, action.gives = {f"copy of {name}"}, {f"value {name} {stays}"}
                actions.append(action)
            case Alloc(name, address, parts=joined):
                stays += 1
                at[name] = address, stays
                parts[name] = joined
            case Scratch(name, address):
                scratch[name] = address
                if kept(name):
                    action = Action(index, dma=True, length=picoseconds(seconds(kept(name), bandwidth)))
                    action.touch(
                        address, up(units[name].workspace, chip.alignment_bytes), ("scratch", name, 0)
                    )
                    action.gives = {f"weights of {name}"}
                    actions.append(action)
            case Run(name, streaming):
                unit, streams = units[name], dict(streaming)
                action = Action(index, compute=True, needs={f"weights of {name}"})
                for t in (*unit.reads, *unit.writes):
                    if t in streams:
                        action.needs.add(f"copy of {t}")
                        if t in unit.writes:
                            action.gives.add(f"copy of {t}")
                        continue
                    (action.needs if t in unit.reads else action.gives).add(f"value {t} {at[t][1]}")
                    action.touch(at[t][0], room[t], ("tensor", t, at[t][1]))
                if name in scratch:
                    action.touch(
                        scratch.pop(name), up(unit.workspace, chip.alignment_bytes), ("scratch", name, 0)
                    )
                bytes_ = unit.weights - kept(name) + sum(streams.values())
                action.dma = bytes_ > 0
                action.crossing = picoseconds(seconds(bytes_, bandwidth))
                busy = computing(name)
                for t in unit.writes:
                    if t not in streams and parts[t]:  # only the other operands move
                        moved = 2 * sum(size[x] for x in unit.reads if x not in parts[t])
                        rate = chip.scratchpad_bytes_per_second
                        busy = picoseconds(seconds(moved, rate)) if rate else 0
                action.length = max(busy, action.crossing)
                actions.append(action)
            case Store(name):
                action = copy(index, name)
                action.needs, action.gives = {f"value {name} {at[name][1]}"}, {f"copy of {name}"}
                actions.append(action)
            case Free(name):
                del at[name]
            case Join(name):  # no queue takes it, and it takes no time
                unit = units[name]
                needs = {f"copy of {t}" for t in unit.reads}
                actions.append(Action(index, needs=needs, gives={f"copy of {unit.writes[0]}"}))
    for i, action in enumerate(actions):
        action.start = max((action.waits_for(before) for before in actions[:i]), default=0)
    return [
        (a.index, a.start, a.end, a.start + a.crossing if a.compute and a.dma else None)
        for a in actions
        if a.compute or a.dma
    ]
