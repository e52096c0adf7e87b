"""What a plan file can hold, whatever its form: the version, the range of numbers, the options' types."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from onchip.base.codec import leaves
from onchip.base.errors import PlanFormatError
from onchip.base.fields import LIMIT, members
from onchip.machines.chip import RATES, Memory
from onchip.plans.program import Group, Instruction, MemoryUse, Plan, PlanChip, Result, Section, Timed

__all__ = ["FORMAT", "MAX_ALIGNMENT", "Option", "plan_chip", "refuse_unwritable"]

FORMAT = "onchip.plan/1"

MAX_ALIGNMENT = 1 << 20

Option = str | int | float | bool | None
"""The values that options take: JSON scalars."""


def plan_chip(
    name: str,
    alignment: int,
    rates: Mapping[str, object],
    weight_scratchpad: int | None = None,
    memories: Iterable[Memory] = (),
    *,
    where: str,
) -> PlanChip:
    """The chip in a file; without a sane alignment nothing else in the plan means anything.

    `rates` are the keys of `onchip.machines.chip.RATES` that it states.
    """
    if not 1 <= alignment <= MAX_ALIGNMENT:
        raise PlanFormatError(
            f"{alignment} is not from 1 to {MAX_ALIGNMENT:,}", where=where, item="alignment"
        )
    stated = {}
    for key, value in rates.items():
        if key not in RATES:
            raise PlanFormatError("is no figure of a chip", where=where, item=f"chip {key[:60]}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LIMIT:
            raise PlanFormatError("is no positive number", where=where, item=key)
        stated[key] = float(value)
    return PlanChip(
        name, alignment, weight_scratchpad_bytes=weight_scratchpad, memories=tuple(memories), **stated
    )


_Part = tuple[Callable[[int, Any], str] | str, Any, Sequence[Any]]
"""Values of a type, and what a refusal of one names."""


def refuse_unwritable(plan: Plan) -> None:
    """Raise `PlanFormatError` for a plan that would not come back from a file as it is."""
    parts = list(_parts(plan))
    _refuse(parts, int, lambda n: type(n) is int and -LIMIT < n < LIMIT)
    _refuse(parts, float, lambda rate: isinstance(rate, float) and 0 < rate < LIMIT)
    for item, value in [*plan.options.items(), ("seconds", plan.result.seconds)]:
        if isinstance(value, float) and not math.isfinite(value):
            raise PlanFormatError(f"{value} does not fit a plan file", item=item)
    _refuse(parts, str, _is_text)


def _refuse(parts: Sequence[_Part], kind: type, fits: Callable[[Any], bool]) -> None:
    for item, hint, values in parts:
        find = leaves(hint, kind)
        if find is None:
            continue
        for n, value in enumerate(values):
            for leaf in find(value):
                if not fits(leaf):
                    if kind is str:
                        reason = "a name with a lone surrogate does not fit a plan file"
                        raise PlanFormatError(reason, item=leaf)
                    named = item if isinstance(item, str) else item(n, value)
                    raise PlanFormatError(f"{leaf} does not fit a plan file", item=named)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parts(plan: Plan) -> Iterator[_Part]:
    """All of a plan but its network, which `Network.build` has seen, and floats that are no rates."""
    yield "budget", int, (plan.budget,)
    chip = {"alignment_bytes": "alignment", "weight_scratchpad_bytes": "weight scratchpad"}
    for m in members(PlanChip):
        if m.name != "memories":
            yield chip.get(m.name, m.name), m.hint, (getattr(plan.chip, m.name),)
    for held in (*plan.pins, *plan.state):
        yield "address", type(held), (held,)
    for m in members(Result):
        if m.name not in ("seconds", "memories"):
            yield m.name, m.hint, (getattr(plan.result, m.name),)
    yield lambda _, use: f"memory {use.memory}", MemoryUse, plan.result.memories
    for memory in plan.chip.memories:
        for m in members(Memory):
            item = memory.name if m.plain is float else f"memory {memory.name}"
            yield item, m.hint, (getattr(memory, m.name),)
    yield lambda _, timed: f"timing of program[{timed.index}]", Timed, plan.timing
    for key, value in plan.options.items():
        yield key, str, (key,)
        if not isinstance(value, bool | float | None):
            yield key, str if isinstance(value, str) else int, (value,)
    for group in plan.groups:
        for m in members(Group):
            item = f"tiling of {group.name}" if m.name == "tiling" else group.name
            yield item, m.hint, (getattr(group, m.name),)
    yield lambda _, section: f"section {section.name}", Section, plan.sections
    yield lambda n, _: f"program[{n}]", Instruction, plan.program
