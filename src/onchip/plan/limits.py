"""What a plan file can hold, whatever its form: the version, the range of numbers, the options' types."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields

from onchip.errors import PlanFormatError
from onchip.plan.program import Alloc, Load, Plan, PlanChip, Result, Run, Scratch

__all__ = ["FORMAT", "LIMIT", "MAX_ALIGNMENT", "Option", "plan_chip", "refuse_unwritable"]

FORMAT = "onchip.plan/1"

LIMIT = 10**18
"""Whole numbers in a plan lie strictly between -LIMIT and LIMIT."""

MAX_ALIGNMENT = 1 << 20

Option = str | int | float | bool | None
"""The values that options take: JSON scalars."""


def plan_chip(name: str, alignment: int, *, where: str) -> PlanChip:
    """The chip in a file; without a sane alignment nothing else in the plan means anything."""
    if not 1 <= alignment <= MAX_ALIGNMENT:
        raise PlanFormatError(
            f"{alignment} is not from 1 to {MAX_ALIGNMENT:,}", where=where, item="alignment"
        )
    return PlanChip(name, alignment)


def refuse_unwritable(plan: Plan) -> None:
    """Raise `PlanFormatError` for a plan that would not come back from a file as it is."""
    for item, number in _numbers(plan):
        if type(number) is not int or not -LIMIT < number < LIMIT:
            raise PlanFormatError(f"{number} does not fit a plan file", item=item)
    for item, value in [*plan.options.items(), ("seconds", plan.result.seconds)]:
        if isinstance(value, float) and not math.isfinite(value):
            raise PlanFormatError(f"{value} does not fit a plan file", item=item)
    for text in _strings(plan):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise PlanFormatError(
                "a name with a lone surrogate does not fit a plan file", item=text
            ) from None


def _numbers(plan: Plan) -> Iterator[tuple[str, int]]:
    yield "budget", plan.budget
    yield "alignment", plan.chip.alignment_bytes
    for f in fields(Result):
        value = getattr(plan.result, f.name)
        if f.name not in ("status", "seconds"):
            yield f.name, value
    for key, value in plan.options.items():
        if isinstance(value, int) and not isinstance(value, bool):
            yield key, value
    for group in plan.groups:
        for number in (group.scratch_bytes, group.subgroups, *(n for _, n in group.refills)):
            yield group.name, number
    for index, instruction in enumerate(plan.program):
        match instruction:
            case Load(_, n) | Scratch(_, n):
                yield f"program[{index}]", n
            case Alloc(_, address, _, by):
                yield from ((f"program[{index}]", n) for n in (address, by))
            case Run(_, streaming):
                yield from ((f"program[{index}]", n) for _, n in streaming)


def _strings(plan: Plan) -> Iterator[str]:
    """The strings that `Network.build` has not seen."""
    yield plan.chip.name
    for key, value in plan.options.items():
        yield key
        if isinstance(value, str):
            yield value
    for group in plan.groups:
        yield from (group.name, *group.operators, *group.resident_weights, *(n for n, _ in group.refills))
    for instruction in plan.program:
        match instruction:
            case Alloc(tensor, _, str(over), _):
                yield from (tensor, over)
            case Scratch(operator, _):
                yield operator
            case Run(operator, streaming):
                yield from (operator, *(name for name, _ in streaming))
            case _:
                yield instruction.tensor
