"""From residencies with addresses to the instructions of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from onchip.network import Network
from onchip.planners.placement.problem import Problem
from onchip.plans import Alloc, Free, Instruction, Load, Run, Scratch, Store

__all__ = ["Placed", "program"]


@dataclass(frozen=True, slots=True)
class Placed:
    """Tensor `tensor` at `address` during steps [start, end)."""

    tensor: int
    start: int
    end: int
    address: int


def program(
    network: Network,
    problem: Problem,
    order: Sequence[int],
    placed: Iterable[Placed],
    scratch: Mapping[int, int],
    caches: Mapping[int, tuple[int, int | None]] | None = None,
) -> tuple[Instruction, ...]:
    """Return the instructions of a placed schedule; `scratch` is an address per operator with a workspace.

    Around each run: loads as late as possible, outputs and scratch reserved; right afterwards all that the
    next step does not need is freed. A graph output is stored as soon as it exists, a spilled tensor when it
    first leaves. An output at the address of an input is written over it, and ends it. `caches` are the
    outputs that lie in buffers of their own, with the address and the input that each is written over.
    """
    name = [t.name for t in network.tensors]
    kept = problem.kept
    begins: list[list[Placed]] = [[] for _ in order]
    ends: list[list[Placed]] = [[] for _ in order]
    last: dict[int, int] = {}
    for p in placed:
        if p.tensor >= len(name):
            continue  # pinned weights: there before and after
        if caches and p.tensor in caches:
            continue  # in its buffer
        begins[p.start].append(p)
        ends[p.end - 1].append(p)
        last[p.tensor] = max(last.get(p.tensor, 0), p.end)
    in_dram = {t for t in last if problem.graph_inputs >> t & 1}

    result: list[Instruction] = []
    for i, v in enumerate(order):
        made = set(problem.outputs[v])
        over = _written_over(problem, v, begins[i], ends[i])
        result += [Load(name[p.tensor], p.address) for p in begins[i] if p.tensor not in made]
        if kept is not None and v == kept.end:
            continue  # its inputs stay
        if kept is None or v != kept.begin:  # the outputs of `begin` are there already
            result += [
                Alloc(name[p.tensor], p.address, None if over is None else name[over])
                for p in begins[i]
                if p.tensor in made
            ]
            for t in made.intersection(caches or ()):
                at, first = (caches or {})[t]
                result.append(Alloc(name[t], at, None if first is None else name[first]))
            operator = network.operators[v].name
            if v in scratch:
                result.append(Scratch(operator, scratch[v]))
            result.append(Run(operator))
        for t in problem.outputs[v]:
            if problem.graph_outputs >> t & 1:
                result.append(Store(name[t]))
                in_dram.add(t)
        for p in ends[i]:
            if p.tensor == over:
                continue
            if p.end < last[p.tensor] and p.tensor not in in_dram:
                result.append(Store(name[p.tensor]))
                in_dram.add(p.tensor)
            result.append(Free(name[p.tensor]))
    return tuple(result)


def _written_over(problem: Problem, v: int, begins: Sequence[Placed], ends: Sequence[Placed]) -> int | None:
    """Return the input of `v` that its output lies on, None if it lies apart."""
    if not problem.overwrites or not problem.overwrites[v]:
        return None
    at = {p.tensor: p.address for p in begins}[problem.outputs[v][0]]
    return next((p.tensor for p in ends if p.tensor in problem.overwrites[v] and p.address == at), None)
