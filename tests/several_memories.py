"""Plans for one scratchpad spread over several memories, for tests of whatever reads plans."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from onchip.check import certify
from onchip.machines.chip import Memory
from onchip.plans import Alloc, Free, Instruction, Load, Move, Plan, Run, Scratch


def in_memories(rng: Random, plan: Plan) -> Plan:
    """A legal plan for one scratchpad in two or three memories: ranges spread over them, tensors that visit.

    What shares bytes stays together; addresses stay what they are, each in its own memory.
    """
    align = plan.chip.alignment_bytes
    names = [f"m{i}" for i in range(rng.choice((2, 2, 3)))]
    base = -(-plan.budget // align) * align
    room = max(plan.chip.round_up(t.bytes) for t in plan.network.tensors)  # above everything: for visits
    leader: dict[str, str] = {}

    def lead(t: str) -> str:
        while leader.get(t, t) != t:
            t = leader[t]
        return t

    shared: set[str] = set()
    for step in plan.program:
        if isinstance(step, Alloc):
            for x in step.parts or ((step.over,) if step.over else ()):
                leader[lead(x)] = lead(step.tensor)
                shared |= {x, step.tensor}
    home: dict[str, str] = {}

    def of(t: str) -> str:
        return home.setdefault(lead(t), rng.choice(names))

    program: list[Instruction] = []
    at: dict[str, int] = {}
    produced: set[str] = set()
    tensor = [t.name for t in plan.network.tensors]
    made = {op.name: [tensor[t] for t in op.outputs] for op in plan.network.operators}
    made |= {g.name: [t for name in g.operators for t in made[name]] for g in plan.groups}
    for step in plan.program:
        match step:
            case Load(t, address) | Alloc(t, address):
                at[t] = address
                program.append(replace(step, memory=of(t)))
                if isinstance(step, Load):
                    produced.add(t)
            case Scratch():
                program.append(replace(step, memory=rng.choice(names)))
            case _:
                program.append(step)
                if isinstance(step, Free):
                    del at[step.tensor]
                if isinstance(step, Run):
                    produced |= set(made[step.operator])
        visitors = [t for t in at if t in produced and t not in shared]
        if visitors and rng.random() < 0.3:
            t = rng.choice(visitors)
            program += [Move(t, base, rng.choice(names)), Move(t, at[t], of(t))]
    memories = tuple(
        Memory(
            name,
            base + room,
            True,
            rng.choice((None, 0.5, 3.0, 1e9)),
            rng.choice((None, 0.25, 2.0)),
        )
        for name in names
    )
    chip = replace(plan.chip, memories=memories)
    result = plan.result
    return certify(
        plan.network,
        chip,
        sum(m.bytes for m in memories),
        program,
        status=result.status,
        lower_bound_bytes=result.lower_bound_bytes,
        seconds=result.seconds,
        groups=plan.groups,
        options=plan.options,
    )
