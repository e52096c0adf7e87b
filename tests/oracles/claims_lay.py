"""Addresses for a program that has none yet, by trying them one instruction after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from onchip.plans import Alloc, Free, Instruction, Load, Move, Run, Scratch

__all__ = ["lay"]

Range = tuple[str | None, int, int]
"""A memory, the first byte, one past the last."""


def lay(
    program: list[Instruction],
    sizes: Mapping[str, int],
    scratches: Mapping[str, int],
    budgets: Mapping[str | None, int],
    alignment: int,
    most: int = 100_000,
) -> list[Instruction] | None:
    """The program with addresses within `budgets`, or None: none exist, or `most` steps were not enough.

    `sizes` are those of tensors, `scratches` of units, both rounded up; `budgets` the bytes of every memory
    (None: the only one). An output over an input takes its place.
    """
    made: list[Instruction] = []
    count = 0

    def place(i: int, there: dict[str, Range]) -> bool:
        nonlocal count
        count += 1
        if count > most:
            return False
        if i == len(program):
            return True
        step = program[i]
        if isinstance(step, Load | Alloc | Move) and not (isinstance(step, Alloc) and step.over is not None):
            return choose(i, there, step.tensor, sizes[step.tensor])
        if isinstance(step, Scratch):
            return choose(i, there, f"scratch {step.operator}", scratches[step.operator])
        after = dict(there)
        if isinstance(step, Alloc):
            assert step.over is not None
            at = after.pop(step.over)
            after[step.tensor] = at
            step = replace(step, address=at[1])
        elif isinstance(step, Run):
            after.pop(f"scratch {step.operator}", None)
        elif isinstance(step, Free):
            del after[step.tensor]
        made.append(step)
        if place(i + 1, after):
            return True
        made.pop()
        return False

    def choose(i: int, there: dict[str, Range], who: str, size: int) -> bool:
        step = program[i]
        assert isinstance(step, Load | Alloc | Scratch | Move)
        home = step.memory
        beside = [(low, high) for memory, low, high in there.values() if memory == home]
        for at in range(0, budgets[home] // alignment * alignment - size + 1, alignment):
            if all(at + size <= low or high <= at for low, high in beside):
                made.append(replace(step, address=at))
                if place(i + 1, {**there, who: (home, at, at + size)}):
                    return True
                made.pop()
                if count > most:
                    return False
        return False

    return list(made) if place(0, {}) else None
