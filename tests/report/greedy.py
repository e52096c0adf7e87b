"""A small planner for the report's tests: given order, first fit, the farthest next use is evicted.

It is no part of onchip; it makes legal programs with spills, reloads and relocations, quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onchip.check import certify
from onchip.network import Network, bits
from onchip.plans import Alloc, Free, Instruction, Load, Plan, PlanChip, Run, Scratch, Store


def minimum_room(net: Network, round_up: Callable[[int], int] = lambda n: n) -> int:
    """MR: the most that one operator needs at once."""
    return max(
        sum(round_up(net.tensors[t].bytes) for t in bits(net.reads[op.id] | net.writes[op.id]))
        + round_up(op.workspace)
        for op in net.operators
    )


def greedy(
    net: Network,
    budget: int | None = None,
    *,
    alignment: int = 1,
    options: Mapping[str, str | int | float | bool | None] | None = None,
) -> Plan:
    """A legal plan; without a budget at MR."""
    chip = PlanChip("generic", alignment)
    size = [chip.round_up(t.bytes) for t in net.tensors]
    budget = minimum_room(net, chip.round_up) if budget is None else budget
    order = net.order
    uses: list[list[int]] = [[] for _ in net.tensors]
    for step, v in enumerate(order):
        for t in bits(net.reads[v]):
            uses[t].append(step)
    at: dict[int, int] = {}
    copied = net.input_roots
    program: list[Instruction] = []

    def fit(n: int, extra: list[tuple[int, int]]) -> int | None:
        low = 0
        taken = sorted([(a, a + size[t]) for t, a in at.items()] + extra)
        for a, b in taken:
            if a - low >= n:
                return low
            low = max(low, b)
        return low if budget - low >= n else None

    def leave(t: int, step: int) -> None:
        nonlocal copied
        later = any(u >= step for u in uses[t])
        if not copied >> t & 1 and (later or net.output_roots >> t & 1):
            program.append(Store(net.tensors[t].name))
            copied |= 1 << t
        program.append(Free(net.tensors[t].name))
        del at[t]

    def next_use(t: int, step: int) -> int:
        return next((u for u in uses[t] if u >= step), 1 << 60)

    for step, v in enumerate(order):
        op = net.operators[v]
        reads, writes = net.reads[v], net.writes[v]
        while True:
            wanted = [t for t in bits(reads | writes) if t not in at]
            place: list[tuple[int, int]] = []
            where: dict[int, int] = {}
            for t in sorted(wanted, key=lambda t: -size[t]):
                a = fit(size[t], place)
                if a is None:
                    break
                where[t] = a
                place.append((a, a + size[t]))
            else:
                scratch = fit(chip.round_up(op.workspace), place) if op.workspace else 0
                if scratch is not None:
                    break
            others = [t for t in at if not reads >> t & 1]
            for t in [max(others, key=lambda t: (next_use(t, step), size[t]))] if others else list(at):
                leave(t, step)
        for t, a in where.items():
            name = net.tensors[t].name
            program.append(Load(name, a) if reads >> t & 1 else Alloc(name, a))
            at[t] = a
        if op.workspace:
            program.append(Scratch(op.name, scratch))
        program.append(Run(op.name))
        for t in list(at):
            if next_use(t, step + 1) == 1 << 60:
                leave(t, step + 1)
    return certify(
        net, chip, budget, program, status="feasible", lower_bound_bytes=0, seconds=0.0, options=options
    )
