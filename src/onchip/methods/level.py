"""One of a chip's several memories as the scratchpad that tiles are planned for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from onchip.base.errors import UsageError
from onchip.machines.chip import Chip, Memory
from onchip.network import Network, bits
from onchip.plans import Alloc, Join, Load, Move, Plan, Run, Scratch, Store

__all__ = ["beyond", "chip_at", "copied_bytes", "crossing_bytes", "level_of"]


def level_of(on: Chip, memories: Sequence[Memory], name: str | None) -> Memory:
    """Return the memory of that name; without one the innermost that operators read, which is the fastest."""
    reached = [m for m in memories if m.operands]
    if name is None:
        return max(reached, key=lambda m: _rate(on, m))  # the first of equals
    for memory in memories:
        if memory.name == name:
            if not memory.operands:
                raise UsageError(f"no operator reads {name}", item="--level")
            return memory
    names = ", ".join(m.name for m in reached)
    raise UsageError(f"{name!r} is no memory of {on.name}; operators read {names}", item="--level")


def beyond(on: Chip, memories: Sequence[Memory], level: Memory) -> tuple[Memory, ...]:
    """Return the memories further out than `level`, the next one first."""
    out = [m for m in memories if _rate(on, m) < _rate(on, level)]
    return tuple(sorted(out, key=lambda m: -_rate(on, m)))


def chip_at(on: Chip, level: Memory, outside: Memory | None) -> Chip:
    """Return the chip with `level` as its only scratchpad and `outside` in DRAM's part (None: DRAM)."""
    rates = replace(
        on.rates,
        scratchpad_bytes_per_second=_rate(on, level) or None,
        scratchpad_picojoules_per_byte=level.picojoules_per_byte,
    )
    if outside is not None:
        rates = replace(
            rates,
            dram_bytes_per_second=_rate(on, outside) or None,
            dram_picojoules_per_byte=outside.picojoules_per_byte,
        )
    return replace(on, scratchpad_bytes=level.bytes, memories=(), rates=rates)


def crossing_bytes(plan: Plan, near: Collection[str]) -> int:
    """Return the bytes that go between some of several memories and what lies beyond, weights included.

    What operators read and write beyond counts, too: with tiles all of that would be copied.
    """
    network, homes, crossing = plan.network, dict[int, str | None](), 0
    scratch: dict[str, str | None] = {}

    def size(name: str) -> int:
        return network.tensors[network.tensor_id[name]].bytes

    def root(name: str) -> int:
        return network.root[network.tensor_id[name]]

    for step in plan.program:
        match step:
            case Load():
                homes[root(step.tensor)] = step.memory
                crossing += size(step.tensor) if step.memory in near else 0
            case Store():
                crossing += size(step.tensor) if homes[root(step.tensor)] in near else 0
            case Move():
                was, homes[root(step.tensor)] = homes[root(step.tensor)], step.memory
                crossing += size(step.tensor) if (was in near) != (step.memory in near) else 0
            case Scratch():
                scratch[step.operator] = step.memory
            case Run():
                op = network.operators[network.operator_id[step.operator]]
                for t in (*op.inputs, *op.outputs):
                    if homes.get(network.root[t]) not in near:
                        crossing += network.tensors[t].bytes
                if op.workspace and scratch.get(op.name) not in near:
                    crossing += op.workspace
            case Alloc():
                homes[root(step.tensor)] = step.memory
            case _:
                pass
    return crossing + plan.result.weight_bytes


def copied_bytes(plan: Plan) -> int:
    """Return the most bytes of tensors that lie outside the scratchpad at once: what DRAM's part must hold.

    A tensor has a copy there from its way out (a graph input from the start) to its last way in; an output
    to the end. Weights are not counted.
    """
    network = plan.network
    roots = {t.name: network.root[i] for i, t in enumerate(network.tensors)}
    first: dict[int, int] = {}
    last: dict[int, int] = {}

    def seen(name: str, at: int) -> None:
        t = roots[name]
        first.setdefault(t, at)
        last[t] = max(at, last.get(t, at))

    for at, step in enumerate(plan.program):
        match step:
            case Load() | Store():
                seen(step.tensor, at)
            case Run():
                for name, _ in step.streaming:
                    seen(name, at)
            case Join():
                op = network.operators[network.operator_id[step.operator]]
                for t in (*op.inputs, *op.outputs):
                    seen(network.tensors[t].name, at)
            case _:
                pass
    for t in bits(network.input_roots):
        first[t] = 0
        last.setdefault(t, 0)
    for t in bits(network.output_roots):
        last[t] = len(plan.program)
    return _most_alive(network, first, last, len(plan.program))


def _most_alive(network: Network, first: dict[int, int], last: dict[int, int], steps: int) -> int:
    change = [0] * (steps + 2)
    for t, at in first.items():
        change[at] += network.tensors[t].bytes
        change[last[t] + 1] -= network.tensors[t].bytes
    most = now = 0
    for difference in change:
        now += difference
        most = max(most, now)
    return most


def _rate(on: Chip, memory: Memory) -> float:
    return memory.bytes_per_second or on.rates.scratchpad_bytes_per_second or 0.0
