"""A joint plan's groups in bands, blocks and boxes as nests of loops, where that costs nothing.

One law, that of docs/nests.md, then says how the groups run. The search prices bands, blocks and boxes by
their own laws, which are quicker; a group of which the nest would let more bytes cross, or has no room,
stays as it was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onchip.check.as_nests import Taken, costless_nests, taken
from onchip.planners.limits import Limits
from onchip.planners.packing import Buffer, pack
from onchip.plans import Alloc, Free, Group, Instruction, Load, Plan, Run, Scratch

__all__ = ["in_nests"]

PACKING_SECONDS = 2.0
"""The most seconds for addresses with which more nests fit."""


def in_nests(plan: Plan, limits: Limits, *, dearer: bool = False) -> Taken:
    """Return a legal plan's program with nests for its groups in tiles, as many as cost nothing, or have room
    though `dearer`.

    Addresses change only where more nests fit then.
    """
    found = costless_nests(plan, dearer=dearer)
    if found.elsewhere and not limits.over():
        every = taken(plan, found, {**found.around, **found.elsewhere})
        seconds = limits.at_most(PACKING_SECONDS).left()
        program = _packed(plan, every.program, every.groups, seconds, limits.seed)
        if program is not None:
            return replace(every, program=program)
    return taken(plan, found, found.around)


def _packed(
    plan: Plan,
    program: Sequence[Instruction],
    groups: Sequence[Group],
    seconds: float | None,
    seed: int,
) -> tuple[Instruction, ...] | None:
    """Return a program with other addresses, all within the budget; None if none were found.

    What lies at the address of an input that dies goes where that goes.
    """
    tensors = {t.name: t.bytes for t in plan.network.tensors}
    scratch = {op.name: op.workspace for op in plan.network.operators}
    scratch |= {group.name: group.scratch_bytes for group in groups}
    place: dict[int, int] = {}  # by instruction, the number of its buffer
    first, behind, sizes = list[int](), list[int](), list[int]()  # of every buffer
    there: dict[str, int] = {}
    working: dict[str, int] = {}
    for i, step in enumerate(program):
        if isinstance(step, Alloc) and step.parts:
            return None  # operands of a concat in their places: joint plans have none
        if isinstance(step, Alloc) and step.over is not None:
            there[step.tensor] = place[i] = there.pop(step.over)
            sizes[place[i]] = max(sizes[place[i]], tensors[step.tensor])
        elif isinstance(step, Load | Alloc | Scratch):
            if isinstance(step, Scratch):
                size = scratch[step.operator]
                if not size:
                    continue
                working[step.operator] = len(sizes)
            else:
                size = tensors[step.tensor]
                there[step.tensor] = len(sizes)
            place[i] = len(sizes)
            first.append(i)
            behind.append(len(program))
            sizes.append(size)
        elif isinstance(step, Run) and step.operator in working:
            behind[working.pop(step.operator)] = i + 1
        elif isinstance(step, Free):
            behind[there.pop(step.tensor)] = i
    buffers = [Buffer(*span) for span in zip(first, behind, sizes, strict=True)]
    found = pack(buffers, plan.budget, alignment=plan.chip.alignment_bytes, time_limit=seconds, seed=seed)
    if found.status != "packed":
        return None
    return tuple(
        replace(step, address=found.offsets[place[i]])
        if i in place and isinstance(step, Load | Alloc | Scratch)
        else step
        for i, step in enumerate(program)
    )
