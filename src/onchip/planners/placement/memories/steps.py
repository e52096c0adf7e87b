"""A program with memories but without addresses; and the addresses, memory by memory.

Times are positions in the program: a range is taken from its instruction until the one that ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from onchip.network import Network
from onchip.planners.packing import Buffer, minimise, pack
from onchip.planners.placement.memories.levels import MemoryProblem
from onchip.plans import Alloc, Free, Instruction, Load, Move, Run, Scratch, Store

__all__ = ["Placing", "Step", "cost_of", "place"]


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction without its address: `what` is a tensor, for `scratch` and `run` an operator."""

    kind: Literal["load", "alloc", "scratch", "run", "move", "store", "free"]
    what: int
    memory: int = -1


@dataclass(frozen=True)
class Placing:
    """A program with its addresses, or its shortage: by memory, the bytes beyond its capacity."""

    program: tuple[Instruction, ...]
    missing: tuple[tuple[int, int], ...] = ()


def cost_of(problem: MemoryProblem, steps: Sequence[Step]) -> tuple[int, int]:
    """Return (bytes of traffic, picoseconds of accesses) of a program that is legal but for addresses."""
    base, traffic, picoseconds = problem.problem, 0, 0
    at: dict[int, int] = {}
    scratch: dict[int, int] = {}
    copied = {t for t in range(len(base.size)) if base.graph_inputs >> t & 1}
    fetched: set[int] = set()
    for step in steps:
        t, m = step.what, step.memory
        match step.kind:
            case "load":
                if t in fetched or not base.graph_inputs >> t & 1:
                    traffic += base.cost[t]
                fetched.add(t)
                at[t] = m
                picoseconds += problem.copy_price[t][m]
            case "alloc":
                at[t] = m
            case "scratch":
                scratch[t] = m
            case "move":
                picoseconds += problem.copy_price[t][at[t]] + problem.copy_price[t][m]
                at[t] = m
            case "store":
                if not base.graph_outputs >> t & 1 or t in copied:
                    traffic += base.cost[t]
                copied.add(t)
                picoseconds += problem.copy_price[t][at[t]]
            case "run":
                picoseconds += sum(price[at[x]] for x, price in problem.run_price[t].items())
                if t in scratch:
                    picoseconds += problem.scratch_price[t][scratch[t]]
    return traffic, picoseconds


@dataclass(slots=True)
class _Range:
    begin: int
    end: int
    size: int
    step: int


def place(
    problem: MemoryProblem, network: Network, steps: Sequence[Step], alignment: int, seconds: float, seed: int
) -> Placing:
    """Return addresses for every range, each memory packed separately within `seconds`."""
    levels, base = problem.levels, problem.problem
    ranges: list[list[_Range]] = [[] for _ in levels.names]
    open_: dict[int, tuple[int, _Range]] = {}
    scratch: dict[int, tuple[int, _Range]] = {}
    for i, step in enumerate(steps):
        match step.kind:
            case "load" | "alloc" | "move":
                if step.what in open_:
                    open_[step.what][1].end = i + 1  # a move needs both for a moment
                taken = _Range(i, len(steps) + 1, base.size[step.what], i)
                open_[step.what] = step.memory, taken
                ranges[step.memory].append(taken)
            case "scratch":
                taken = _Range(i, len(steps) + 1, base.workspace[step.what], i)
                scratch[step.what] = step.memory, taken
                ranges[step.memory].append(taken)
            case "run":
                if step.what in scratch:
                    scratch.pop(step.what)[1].end = i
            case "free":
                open_.pop(step.what)[1].end = i
    address: dict[int, int] = {}
    missing = []
    for m, rows in enumerate(ranges):
        kept = [r for r in rows if r.size]
        buffers = [Buffer(r.begin, r.end, r.size) for r in kept]
        found = pack(buffers, levels.capacity[m], alignment=alignment, time_limit=seconds, seed=seed)
        if found.status == "packed":
            address |= {r.step: at for r, at in zip(kept, found.offsets, strict=True)}
            address |= {r.step: 0 for r in rows if not r.size}
        else:
            reach = minimise(buffers, alignment=alignment, time_limit=min(1.0, seconds), seed=seed).bytes
            missing.append((m, max(1, reach - levels.capacity[m])))
    if missing:
        return Placing((), tuple(missing))
    return Placing(
        tuple(_instruction(network, levels.names, s, address.get(i, 0)) for i, s in enumerate(steps))
    )


def _instruction(network: Network, names: Sequence[str], step: Step, address: int) -> Instruction:
    if step.kind in ("scratch", "run"):
        operator = network.operators[step.what].name
        return Run(operator) if step.kind == "run" else Scratch(operator, address, names[step.memory])
    tensor = network.tensors[step.what].name
    match step.kind:
        case "load":
            return Load(tensor, address, names[step.memory])
        case "alloc":
            return Alloc(tensor, address, memory=names[step.memory])
        case "move":
            return Move(tensor, address, names[step.memory])
        case "store":
            return Store(tensor)
    return Free(tensor)
