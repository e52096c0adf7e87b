"""The byte arrays of a chip's memories: contiguous in one arena, each as long as its part of the program.

A range lies within one of them: one that leaves its memory is refused, so no tensor reaches into the next
array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onchip.plans import Alloc, Load, Move, Plan, Scratch

__all__ = ["Arrays", "arrays_of"]


@dataclass(frozen=True)
class Arrays:
    """By memory (None is a single scratchpad), in planned bytes: the start of its array, and its size.

    `total` is the length of all arrays together.
    """

    base: dict[str | None, int]
    size: dict[str | None, int]
    total: int

    def home(self, address: int) -> str | None:
        """Return the memory of a byte of the arena."""
        return max((at, name or "") for name, at in self.base.items() if at <= address)[1] or None


def arrays_of(plan: Plan, size_of: Callable[[Load | Alloc | Scratch | Move], int], held: int) -> Arrays:
    """Return the arrays of a program; `size_of` gives an instruction's bytes, `held` those held before."""
    size: dict[str | None, int] = {m.name: m.bytes for m in plan.chip.memories} or {None: plan.budget}
    extent = dict.fromkeys(size, 1)
    extent[next(iter(size))] = max(1, held)
    for instruction in plan.program:
        if isinstance(instruction, Load | Alloc | Scratch | Move) and instruction.memory in extent:
            end = instruction.address + plan.chip.round_up(size_of(instruction))
            extent[instruction.memory] = max(extent[instruction.memory], end)
    base, total = dict[str | None, int](), 0
    for name, most in size.items():
        base[name] = total
        total += max(0, min(most, extent[name]))
    return Arrays(base, size, total)
