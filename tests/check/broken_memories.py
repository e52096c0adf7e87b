"""Ways to break the rules about several memories; see `broken_plans`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from broken_plans import Broken, Site, breaks
from memory_plans import MemoryMachine

from onchip.plans import Alloc, Load, Move, PinnedTensor, Run, Scratch
from several_memories import in_memories


@breaks("memory")
def _(s: Site) -> Iterator[Broken]:
    for i, step, _ in s.steps(Load, Alloc, Scratch):
        assert isinstance(step, Load | Alloc | Scratch)
        yield Broken(s.put(i, replace(step, memory="m0")), i)  # there is one, without a name
    for i, state in s.at():
        for t in state.address:
            if t in state.produced and t not in state.over:
                yield Broken(s.insert(i, Move(t, s.top(state), "m0")), i)
    plan = in_memories(s.rng, s.plan)
    for i, step in enumerate(plan.program):
        if isinstance(step, Load | Alloc | Scratch):
            for memory in (None, "m9"):
                wrong = replace(step, memory=memory)
                yield Broken(replace(plan, program=(*plan.program[:i], wrong, *plan.program[i + 1 :])), i)
    yield Broken(replace(plan, budget=plan.budget + s.rng.choice((-1, 1))), None)
    first, *rest = plan.chip.memories
    for memories in ((first, first, *rest), (replace(first, name=rest[0].name), *rest)):
        yield Broken(replace(plan, chip=replace(plan.chip, memories=memories)), None)
    yield Broken(replace(plan, pins=(PinnedTensor(s.tensors[0]),)), None)


@breaks("memory-operands")
def _(s: Site) -> Iterator[Broken]:
    plan = in_memories(s.rng, s.plan)
    for memory in plan.chip.memories:
        machine = MemoryMachine(plan)
        for i, step in enumerate(plan.program):
            before = machine.accessed[memory.name]
            machine.step(step)
            if isinstance(step, Run) and machine.accessed[memory.name] > before:
                memories = tuple(replace(m, operands=m is not memory) for m in plan.chip.memories)
                yield Broken(replace(plan, chip=replace(plan.chip, memories=memories)), i)
                break
