"""The JSON form of a plan. Instructions are short arrays; attributes come last, as an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, get_args

import msgspec

from onchip.base.codec import Count, column, decode, from_wire, to_object, wire_of, wire_struct
from onchip.base.errors import PlanFormatError
from onchip.base.fields import LIMIT
from onchip.machines.chip import RATES, Memory
from onchip.network.json import WireNetwork, network_from_wire, wire_network
from onchip.plans.file_limits import (
    FORMAT,
    NESTS,
    Option,
    format_of,
    nests_format,
    plan_chip,
    refuse_unwritable,
)
from onchip.plans.lines import row_reader, to_row
from onchip.plans.program import (
    Cache,
    Group,
    Instruction,
    Nest,
    Pin,
    PinnedTensor,
    PinnedWeights,
    Plan,
    PlanChip,
    Rows,
    Section,
    State,
    TensorLayout,
)
from onchip.plans.result import (
    Result,
    Timed,
)

__all__ = ["from_json", "to_json"]

_ROWS = ("program", "groups", "pins", "state", "caches", "layouts", "timing", "sections")
"""Keys whose values are written one element a line."""

_KINDS: tuple[type, ...] = get_args(Instruction)


class _Pin(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    tensor: str | None = None
    weights: str | None = None
    address: Count | None = None


@cache
def _wire_plan() -> Any:
    """Return the type of the whole file."""
    return wire_struct(
        "Plan",
        [
            ("format", str),
            ("network", WireNetwork),
            ("chip", wire_of(PlanChip)),
            ("budget", Count),
            ("program", list[list[Any]]),
            ("result", wire_of(Result)),
            column("groups", tuple[Group, ...]),
            ("pins", tuple[_Pin, ...], ()),
            column("state", tuple[State, ...]),
            column("caches", tuple[Cache, ...]),
            column("layouts", tuple[TensorLayout, ...]),
            column("options", Mapping[str, Option]),
            ("timing", list[list[Count]], []),
            column("sections", tuple[Section, ...]),
        ],
    )


def to_json(plan: Plan) -> str:
    """Return the plan as JSON text, one line per tensor, operator and instruction so that files diff well.

    Raises `PlanFormatError` for a plan that no file can hold: a number beyond 10^18, a float that is not
    finite, a name with a lone surrogate.
    """
    refuse_unwritable(plan)
    top: dict[str, Any] = {
        "format": format_of(plan),
        "network": wire_network(plan.network),
        "chip": to_object(plan.chip),
        "budget": plan.budget,
        "program": [to_row(i) for i in plan.program],
        "result": to_object(plan.result),
        "groups": [to_object(g) for g in plan.groups],
        "pins": [_pin_object(p) for p in plan.pins],
        "state": [to_object(s) for s in plan.state],
        "caches": [to_object(c) for c in plan.caches],
        "layouts": [to_object(one) for one in plan.layouts],
        "options": dict(plan.options),
        "timing": [
            [t.index, t.start, t.end, *([] if t.fetched is None else [t.fetched])] for t in plan.timing
        ],
        "sections": [to_object(s) for s in plan.sections],
    }
    parts = []
    for key, value in top.items():
        if key in ("pins", "state", "caches", "layouts", "timing", "sections") and not value:
            continue
        if key == "network":
            inner = ",\n  ".join(f"{_dump(k)}: {_lines(v, '    ')}" for k, v in value.items())
            parts.append(f'"network": {{\n  {inner}}}')
        else:
            parts.append(f"{_dump(key)}: {_lines(value, '  ') if key in _ROWS else _dump(value)}")
    return "{" + ",\n ".join(parts) + "}\n"


def _stated_format(data: bytes) -> str:
    """Return the format that a file states if it is another one of onchip's, else a plan's."""
    try:
        stated = msgspec.json.decode(data).get("format")
    except (msgspec.DecodeError, UnicodeDecodeError, AttributeError, RecursionError):
        stated = None
    return stated if isinstance(stated, str) and stated.startswith("onchip.") else FORMAT


def _nests(stated: str, where: str) -> bool:
    try:
        return nests_format(stated)
    except ValueError as problem:
        raise PlanFormatError(str(problem), where=where, item="format") from None


def from_json(content: bytes | str, *, where: str = "plan") -> Plan:
    """Return the plan in JSON. Raises `PlanFormatError` (`ModelError` for its network) with the key."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    try:
        wire = decode(data, _wire_plan(), where=where, error=PlanFormatError)
    except PlanFormatError:
        _nests(_stated_format(data), where)
        raise
    nests = _nests(wire.format, where)
    try:
        chip = from_wire(PlanChip, wire.chip)
    except ValueError as problem:
        raise PlanFormatError(str(problem), where=where, item="chip tiles") from None
    for memory in chip.memories:
        _check_rates(memory, where)
    network = network_from_wire(wire.network, where=where)
    if not nests and (again := next((op.name for op in network.operators if op.repeats is not None), None)):
        reason = f"repeats another operator: that needs a file of format {NESTS!r}"
        raise PlanFormatError(reason, where=where, item=f"operator {again}")
    return Plan(
        network=network,
        chip=plan_chip(
            chip.name,
            chip.alignment_bytes,
            {key: value for key in RATES if (value := getattr(chip, key)) is not None},
            chip.weight_scratchpad_bytes,
            chip.memories,
            chip.accumulator_bytes,
            chip.tiles,
            where=where,
        ),
        budget=wire.budget,
        program=tuple([_instruction(row, i, where) for i, row in enumerate(wire.program)]),
        result=from_wire(Result, wire.result),
        groups=tuple(_group(g, i, nests, where) for i, g in enumerate(wire.groups or ())),
        pins=tuple(_pin(p, i, where) for i, p in enumerate(wire.pins)),
        state=tuple(from_wire(State, s) for s in wire.state or ()),
        caches=tuple(from_wire(Cache, c) for c in wire.caches or ()),
        layouts=_layouts(wire.layouts or (), nests, where),
        options=wire.options or {},
        timing=tuple([_timed(row, where) for row in wire.timing]),
        sections=tuple(from_wire(Section, s) for s in wire.sections or ()),
    )


def _check_rates(memory: Memory, where: str) -> None:
    for key in ("bytes_per_second", "picojoules_per_byte"):
        value = getattr(memory, key)
        if value is not None and not 0 < value < LIMIT:
            item = f"memory {memory.name[:60]} {key}"
            raise PlanFormatError("is no positive number", where=where, item=item)


def _instruction(row: list[Any], index: int, where: str) -> Any:
    try:
        return row_reader(_KINDS)(row)
    except ValueError:
        shown = ", ".join(word[:40] if isinstance(word, str) else type(word).__name__ for word in row[:4])
        item = f"program[{index}]"
        raise PlanFormatError(f"[{shown}] is no instruction", where=where, item=item) from None


def _group(wire: Any, index: int, nests: bool, where: str) -> Any:
    try:
        group = from_wire(Group, wire)
        if isinstance(group.tiling, Nest | Rows) and not nests:
            what = "nest needs" if isinstance(group.tiling, Nest) else "rows need"
            raise ValueError(f"its {what} a file of format {NESTS!r}")
    except ValueError as problem:
        raise PlanFormatError(str(problem), where=where, item=f"groups[{index}]") from None
    return group


def _layouts(wires: Sequence[Any], nests: bool, where: str) -> tuple[TensorLayout, ...]:
    if wires and not nests:
        raise PlanFormatError(f"need a file of format {NESTS!r}", where=where, item="layouts")
    return tuple(from_wire(TensorLayout, one) for one in wires)


def _pin_object(pin: Pin) -> dict[str, Any]:
    if isinstance(pin, PinnedWeights):
        return {"weights": pin.operator, "address": pin.address}
    return to_object(pin)


def _pin(wire: _Pin, index: int, where: str) -> Pin:
    match wire:
        case _Pin(tensor=str(tensor), weights=None):
            return PinnedTensor(tensor, wire.address)
        case _Pin(tensor=None, weights=str(operator), address=int(address)):
            return PinnedWeights(operator, address)
    raise PlanFormatError(
        "is neither a tensor nor weights with an address", where=where, item=f"pins[{index}]"
    )


def _timed(row: list[int], where: str) -> Timed:
    if len(row) not in (3, 4):
        raise PlanFormatError(
            "is no [instruction, start, end] or [instruction, start, end, fetched]",
            where=where,
            item="timing",
        )
    return Timed(*row)


def _dump(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _lines(value: Any, indent: str) -> str:
    if not isinstance(value, list | tuple) or not value or not isinstance(value[0], dict | list | tuple):
        return _dump(value)
    return "[\n" + ",\n".join([indent + _dump(v) for v in value]) + "]"
