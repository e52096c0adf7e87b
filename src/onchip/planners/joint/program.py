"""From steps with addresses to the instructions of a plan, and the declarations of its groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onchip.network import bits
from onchip.planners.fusion import FusionProblem
from onchip.planners.fusion.program import crossing, declare, group_names, passes_whole
from onchip.planners.joint.layout import Layout, Placed
from onchip.planners.joint.nests import Nests, NestWay
from onchip.planners.joint.search import Step
from onchip.plans import Alloc, Free, Group, Instruction, Join, Load, Run, Scratch, Store

__all__ = ["moved_bytes", "program"]


def program(
    problem: FusionProblem, steps: Sequence[Step], layout: Layout, nests: Nests
) -> tuple[tuple[Instruction, ...], tuple[Group, ...]]:
    """Return the instructions that run `steps` at the addresses of `layout`, and their groups in tiles.

    Around each run: loads as late as possible, whole outputs and the scratch reserved; right afterwards all
    that the next step does not need is freed. A network output that is whole is stored as soon as it exists;
    other tensors when they leave and are still to be read.
    """
    network = problem.network
    name = [t.name for t in network.tensors]
    begins: list[list[Placed]] = [[] for _ in steps]
    ends: list[list[Placed]] = [[] for _ in steps]
    for p in layout.placed:
        begins[p.start].append(p)
        ends[p.end - 1].append(p)
    tiled = [
        step.way
        for step in steps
        if step.way and (isinstance(step.way, NestWay) or not passes_whole(problem, step.members, step.way))
    ]
    names = iter(group_names(network, tiled))
    in_dram = network.input_roots
    ran = 0
    instructions: list[Instruction] = []
    declared: list[Group] = []
    for i, step in enumerate(steps):
        made = 0
        for v in bits(step.members):
            made |= network.writes[v]
        instructions += [Load(name[p.tensor], p.address) for p in begins[i] if not made >> p.tensor & 1]
        if step.way is not None or step.joined:  # tensors that stay while their copies are read
            for t in bits(problem.external(step.members) & ~step.whole & ~in_dram):
                instructions.append(Store(name[t]))
                in_dram |= 1 << t
        for p in begins[i]:
            if made >> p.tensor & 1:
                over = None if step.over is None or p.tensor != step.made else name[step.over]
                instructions.append(Alloc(name[p.tensor], p.address, over))
        streaming: tuple[tuple[str, int], ...] = ()
        if step.way is None:
            unit = network.operators[step.members.bit_length() - 1].name
        elif isinstance(step.way, NestWay):
            unit = next(names)
            way = nests.wider(step.way, _room(problem, layout, i))
            declared.append(way.group(unit))
            streaming = tuple((name[t], size) for t, size in way.crossing.items())
        elif passes_whole(problem, step.members, step.way):
            unit = network.operators[step.members.bit_length() - 1].name
            touched = problem.external(step.members) | problem.escaping(step.members)
            streaming = tuple((name[t], network.tensors[t].bytes) for t in bits(touched & ~step.whole))
        else:
            unit = next(names)
            declared.append(declare(problem, unit, step.way))
            streaming = crossing(problem, replace(step.way, members=step.members), step.whole)
        if i in layout.scratch:
            instructions.append(Scratch(unit, layout.scratch[i]))
        instructions.append(Join(unit) if step.joined else Run(unit, streaming))
        ran |= step.members
        for t in bits(made & network.output_roots & step.whole):
            instructions.append(Store(name[t]))
            in_dram |= 1 << t
        if step.way is not None or step.joined:
            in_dram |= problem.escaping(step.members) & ~step.whole
        for p in ends[i]:
            if p.tensor == step.over:
                continue
            if network.readers[p.tensor] & ~ran and not in_dram >> p.tensor & 1:
                instructions.append(Store(name[p.tensor]))
                in_dram |= 1 << p.tensor
            instructions.append(Free(name[p.tensor]))
    return tuple(instructions), tuple(declared)


def moved_bytes(problem: FusionProblem, steps: Sequence[Step], instructions: Sequence[Instruction]) -> int:
    """Return the bytes that the program of some steps moves, with weights.

    It may differ from what the search counted where nests were found by a search that was cut off: another
    one may be known by now for the same room.
    """
    network, found = problem.network, 0
    sizes = {t.name: t.bytes for t in network.tensors}
    for instruction in instructions:
        if isinstance(instruction, Load | Store):
            found += sizes[instruction.tensor]
        elif isinstance(instruction, Run):
            found += sum(size for _, size in instruction.streaming)
    for step in steps:
        alone = network.operators[step.members.bit_length() - 1]
        found += alone.weight_bytes if step.way is None else step.way.weight_bytes
    return found


def _room(problem: FusionProblem, layout: Layout, step: int) -> int:
    """Return the bytes from the address of a step's scratch up to the next tensor that lies there."""
    start = layout.scratch.get(step)
    if start is None:  # it needs none
        return 0
    above = [p.address for p in layout.placed if p.start <= step < p.end and p.address >= start]
    return min(above, default=problem.budget) - start
