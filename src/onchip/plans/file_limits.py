"""The limits of a plan file in either form: the version, the range of numbers, the options' types."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from onchip.base.codec import leaves
from onchip.base.errors import PlanFormatError
from onchip.base.fields import LIMIT, members
from onchip.machines.chip import MAX_ACCUMULATOR, MAX_ALIGNMENT, RATES, Memory
from onchip.machines.tile_rates import TileRates
from onchip.plans.nest import Nest
from onchip.plans.program import (
    Group,
    Instruction,
    Plan,
    PlanChip,
    Section,
    TensorLayout,
)
from onchip.plans.result import (
    MemoryUse,
    Result,
    Timed,
)
from onchip.plans.rows import Rows

__all__ = ["FORMAT", "NESTS", "Option", "format_of", "nests_format", "plan_chip", "refuse_unwritable"]

FORMAT = "onchip.plan/1"

NESTS = "onchip.plan/2"
"""The format of files in which a group runs as a nest or by rows, a tensor lies in tiles, or an operator runs
again; all others are written in `FORMAT`."""

Option = str | int | float | bool | None
"""The values that options take: JSON scalars."""


def format_of(plan: Plan) -> str:
    """Return the format in which a plan is written."""
    nests = any(isinstance(group.tiling, Nest | Rows) for group in plan.groups)
    again = any(op.repeats is not None for op in plan.network.operators)
    return NESTS if nests or plan.layouts or again else FORMAT


def nests_format(stated: str) -> bool:
    """Return whether a file of the stated format may hold nests, rows, layouts and repeats.

    Raises `ValueError` if none is of it.
    """
    if stated not in (FORMAT, NESTS):
        raise ValueError(f"is {stated[:60]!r}; this version reads {FORMAT!r} and {NESTS!r}")
    return stated == NESTS


def plan_chip(
    name: str,
    alignment: int,
    rates: Mapping[str, object],
    weight_scratchpad: int | None = None,
    memories: Iterable[Memory] = (),
    accumulator: int | None = None,
    tiles: TileRates | None = None,
    *,
    where: str,
) -> PlanChip:
    """Return the chip in a file; without a valid alignment nothing else in the plan has a meaning.

    `rates` are the keys of `onchip.machines.chip.RATES` that it states.
    """
    if not 1 <= alignment <= MAX_ALIGNMENT:
        raise PlanFormatError(
            f"{alignment} is not from 1 to {MAX_ALIGNMENT:,}", where=where, item="alignment"
        )
    if accumulator is not None and not 1 <= accumulator <= MAX_ACCUMULATOR:
        raise PlanFormatError(
            f"{accumulator} is not from 1 to {MAX_ACCUMULATOR}", where=where, item="accumulators"
        )
    stated = {}
    for key, value in rates.items():
        if key not in RATES:
            raise PlanFormatError("is no figure of a chip", where=where, item=f"chip {key[:60]}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LIMIT:
            raise PlanFormatError("is no positive number", where=where, item=key)
        stated[key] = float(value)
    return PlanChip(
        name,
        alignment,
        weight_scratchpad_bytes=weight_scratchpad,
        memories=tuple(memories),
        accumulator_bytes=accumulator,
        tiles=tiles,
        **stated,
    )


_Part = tuple[Callable[[int, Any], str] | str, Any, Sequence[Any]]
"""(the name of a value in a refusal, the type, values of the type)."""


def refuse_unwritable(plan: Plan) -> None:
    """Raise `PlanFormatError` for a plan that would not come back unchanged from a file."""
    rates, parts = list(_of_chip(plan.chip)), list(_parts(plan))
    _refuse([*rates, *parts], int, _are_whole)
    _refuse(rates, float, lambda found: all(isinstance(x, float) and 0 < x < LIMIT for x in found))
    _refuse(parts, float, lambda found: all(isinstance(x, int | float) and math.isfinite(x) for x in found))
    _refuse([*rates, *parts], str, _are_texts)


def _refuse(parts: Sequence[_Part], kind: type, fit: Callable[[Sequence[Any]], bool]) -> None:
    for item, hint, values in parts:
        find = leaves(hint, kind)
        if find is None or fit(list(chain.from_iterable(map(find, values)))):
            continue
        n, leaf = next((n, leaf) for n, value in enumerate(values) for leaf in find(value) if not fit([leaf]))
        if kind is str:
            raise PlanFormatError("a name with a lone surrogate does not fit a plan file", item=leaf)
        named = item if isinstance(item, str) else item(n, values[n])
        raise PlanFormatError(f"{leaf} does not fit a plan file", item=named)


def _are_whole(found: Sequence[Any]) -> bool:
    """Return whether all are whole numbers that fit; true and false are not."""
    return not found or ({*map(type, found)} == {int} and min(found) > -LIMIT and max(found) < LIMIT)


def _are_texts(found: Sequence[str]) -> bool:
    try:
        "".join(found).encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_chip(chip: PlanChip) -> Iterator[_Part]:
    """Yield the parts of the chip; all of its floats are rates."""
    names = {
        "alignment_bytes": "alignment",
        "weight_scratchpad_bytes": "weight scratchpad",
        "accumulator_bytes": "accumulators",
    }
    for m in members(PlanChip):
        if m.name != "memories":
            yield names.get(m.name, m.name), m.hint, (getattr(chip, m.name),)
    for memory in chip.memories:
        for m in members(Memory):
            item = memory.name if m.plain is float else f"memory {memory.name}"
            yield item, m.hint, (getattr(memory, m.name),)


def _parts(plan: Plan) -> Iterator[_Part]:
    """Yield all other parts of a plan but its network, which `Network.build` has checked."""
    yield "budget", int, (plan.budget,)
    for held in (*plan.pins, *plan.state, *plan.caches):
        yield "address", type(held), (held,)
    for m in members(Result):
        if m.name != "memories":
            yield m.name, m.hint, (getattr(plan.result, m.name),)
    yield lambda _, use: f"memory {use.memory}", MemoryUse, plan.result.memories
    yield lambda _, timed: f"timing of program[{timed.index}]", Timed, plan.timing
    for key, value in plan.options.items():
        yield key, str, (key,)
        if not isinstance(value, bool | None):
            kind = next((kind for kind in (str, float) if isinstance(value, kind)), int)
            yield key, kind, (value,)
    for group in plan.groups:
        for m in members(Group):
            item = f"tiling of {group.name}" if m.name == "tiling" else group.name
            yield item, m.hint, (getattr(group, m.name),)
    yield lambda _, one: f"layout of {one.tensor}", TensorLayout, plan.layouts
    yield lambda _, section: f"section {section.name}", Section, plan.sections
    yield lambda n, _: f"program[{n}]", Instruction, plan.program
