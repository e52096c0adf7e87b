"""What a plan file can hold, whatever its form: the version, the range of numbers, the options' types."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields

from onchip.base.errors import PlanFormatError
from onchip.machines.chip import RATES, Memory
from onchip.plans.program import (
    Alloc,
    Blocks,
    Boxes,
    Join,
    Load,
    Move,
    PinnedTensor,
    Plan,
    PlanChip,
    Result,
    Rings,
    Run,
    Scratch,
    Tiling,
)

__all__ = ["CLAIMED", "FORMAT", "LIMIT", "MAX_ALIGNMENT", "Option", "plan_chip", "refuse_unwritable"]

FORMAT = "onchip.plan/1"

LIMIT = 10**18
"""Whole numbers in a plan lie strictly between -LIMIT and LIMIT."""

MAX_ALIGNMENT = 1 << 20

CLAIMED = ("space", "version", "claim_sha256")
"""The texts of a result, which say what its claims range over."""

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


def refuse_unwritable(plan: Plan) -> None:
    """Raise `PlanFormatError` for a plan that would not come back from a file as it is."""
    for item, number in _numbers(plan):
        if type(number) is not int or not -LIMIT < number < LIMIT:
            raise PlanFormatError(f"{number} does not fit a plan file", item=item)
    rates = [(key, getattr(plan.chip, key)) for key in RATES]
    for memory in plan.chip.memories:
        rates += [(memory.name, rate) for rate in (memory.bytes_per_second, memory.picojoules_per_byte)]
    for item, value in rates:
        if value is not None and not (isinstance(value, float) and 0 < value < LIMIT):
            raise PlanFormatError(f"{value} does not fit a plan file", item=item)
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
    if plan.chip.weight_scratchpad_bytes is not None:
        yield "weight scratchpad", plan.chip.weight_scratchpad_bytes
    for held in (*plan.pins, *plan.state):
        if held.address is not None:
            yield "address", held.address
    for f in fields(Result):
        value = getattr(plan.result, f.name)
        if f.name not in ("status", "seconds", "memories", "moves", *CLAIMED) and not (
            value is None and f.default is None
        ):
            yield f.name, value
    for use in plan.result.memories:
        for size in (use.peak_bytes, use.extent_bytes, use.accessed_bytes):
            yield f"memory {use.memory}", size
    yield from (("moves", moved.bytes) for moved in plan.result.moves)
    yield from ((f"memory {memory.name}", memory.bytes) for memory in plan.chip.memories)
    for timed in plan.timing:
        for number in (timed.index, timed.start, timed.end, timed.fetched):
            if number is not None:
                yield f"timing of program[{timed.index}]", number
    for key, value in plan.options.items():
        if isinstance(value, int) and not isinstance(value, bool):
            yield key, value
    for group in plan.groups:
        for number in (group.scratch_bytes, group.subgroups, *(n for _, n in group.refills)):
            yield group.name, number
        yield from ((f"tiling of {group.name}", number) for number in _tiling_numbers(group.tiling))
    for section in plan.sections:
        yield from ((f"section {section.name}", n) for n in (section.first, section.end))
    for index, instruction in enumerate(plan.program):
        match instruction:
            case Load(_, n) | Scratch(_, n) | Move(_, n):
                yield f"program[{index}]", n
            case Alloc(_, address, by=by):
                yield from ((f"program[{index}]", n) for n in (address, by))
            case Run(_, streaming):
                yield from ((f"program[{index}]", n) for _, n in streaming)


def _tiling_numbers(tiling: Tiling | Blocks | Boxes | Rings | None) -> tuple[int, ...]:
    match tiling:
        case Boxes(sizes, order):
            return *sizes, *order
        case Tiling(rows, _, channels, images):
            return rows, channels, images
        case Blocks(rows, columns, output_channels, channels, _):
            return rows, columns, output_channels, channels
        case Rings(stages, strips):
            return strips, *(stage.rows for stage in stages)
    return ()


def _strings(plan: Plan) -> Iterator[str]:
    """The strings that `Network.build` has not seen."""
    yield plan.chip.name
    yield from (getattr(plan.result, key) for key in CLAIMED)
    for key, value in plan.options.items():
        yield key
        if isinstance(value, str):
            yield value
    for group in plan.groups:
        yield from (group.name, *group.operators, *group.resident_weights, *(n for n, _ in group.refills))
        if isinstance(group.tiling, Tiling):
            yield from group.tiling.streamed
        if isinstance(group.tiling, Rings):
            yield from (name for stage in group.tiling.stages for name in stage.operators)
    yield from (memory.name for memory in plan.chip.memories)
    yield from (use.memory for use in plan.result.memories)
    yield from (name for moved in plan.result.moves for name in (moved.source, moved.target))
    for pin in plan.pins:
        yield pin.tensor if isinstance(pin, PinnedTensor) else pin.operator
    for state in plan.state:
        yield from (state.input, state.output)
    for section in plan.sections:
        given = (section.name, section.start, section.merge)
        yield from (name for name in given if name is not None)
        yield from (name for branch in section.branches for name in branch)
    for instruction in plan.program:
        if isinstance(instruction, Load | Alloc | Scratch | Move) and instruction.memory is not None:
            yield instruction.memory
        match instruction:
            case Alloc(tensor, _, str(over), _):
                yield from (tensor, over)
            case Alloc(tensor, parts=parts):
                yield from (tensor, *parts)
            case Scratch(operator, _) | Join(operator):
                yield operator
            case Run(operator, streaming):
                yield from (operator, *(name for name, _ in streaming))
            case _:
                yield instruction.tensor
