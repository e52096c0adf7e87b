"""The JSON form of a plan. Instructions are short arrays; attributes come last, as an object."""

from __future__ import annotations

from typing import Any

import msgspec

from onchip.errors import PlanFormatError
from onchip.network_json import WireNetwork, decode, network_from_wire, wire_network
from onchip.plan.program import (
    Alloc,
    Free,
    Group,
    Instruction,
    Load,
    Plan,
    PlanChip,
    Result,
    Run,
    Scratch,
    Store,
)

__all__ = ["FORMAT", "from_json", "to_json"]

FORMAT = "onchip.plan/1"


class _WireGroup(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    operators: tuple[str, ...]
    scratch_bytes: int
    subgroups: int = 1
    refills: dict[str, int] = {}
    resident_weights: tuple[str, ...] = ()


class _WirePlan(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    network: WireNetwork
    chip: PlanChip
    budget: int
    program: list[list[Any]]
    result: Result
    groups: tuple[_WireGroup, ...] = ()
    options: dict[str, str | int | float | bool | None] = {}


def to_json(plan: Plan) -> str:
    """The plan as JSON text, one line for each tensor, operator and instruction so that files diff well."""
    wire = _WirePlan(
        format=FORMAT,
        network=wire_network(plan.network),
        chip=plan.chip,
        budget=plan.budget,
        groups=tuple(
            _WireGroup(g.name, g.operators, g.scratch_bytes, g.subgroups, dict(g.refills), g.resident_weights)
            for g in plan.groups
        ),
        options=dict(plan.options),
        program=[_array(i) for i in plan.program],
        result=plan.result,
    )
    top = msgspec.to_builtins(wire)
    parts = []
    for key, value in top.items():
        if key == "network":
            inner = ",\n  ".join(f"{_dump(k)}: {_lines(v, '    ')}" for k, v in value.items())
            parts.append(f'"network": {{\n  {inner}}}')
        else:
            parts.append(
                f"{_dump(key)}: {_lines(value, '  ') if key in ('program', 'groups') else _dump(value)}"
            )
    return "{" + ",\n ".join(parts) + "}\n"


def from_json(content: bytes | str, *, where: str = "plan") -> Plan:
    """The plan in JSON text. Raises `PlanFormatError` (or `ModelError` for its network) naming the key."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    wire: _WirePlan = decode(data, _WirePlan, where=where, error=PlanFormatError)
    if wire.format != FORMAT:
        raise PlanFormatError(
            f"is {wire.format!r}; this version reads {FORMAT!r}", where=where, item="format"
        )
    return Plan(
        network=network_from_wire(wire.network, where=where),
        chip=wire.chip,
        budget=wire.budget,
        program=tuple(_instruction(row, i, where) for i, row in enumerate(wire.program)),
        result=wire.result,
        groups=tuple(
            Group(
                g.name,
                g.operators,
                g.scratch_bytes,
                g.subgroups,
                tuple(g.refills.items()),
                g.resident_weights,
            )
            for g in wire.groups
        ),
        options=wire.options,
    )


def _dump(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _lines(value: Any, indent: str) -> str:
    if not isinstance(value, list | tuple) or not value or not isinstance(value[0], dict | list | tuple):
        return _dump(value)
    return "[\n" + ",\n".join(indent + _dump(v) for v in value) + "]"


def _array(instruction: Instruction) -> list[Any]:
    match instruction:
        case Load(tensor, address):
            return ["load", tensor, address]
        case Alloc(tensor, address, None, _):
            return ["alloc", tensor, address]
        case Alloc(tensor, address, over, by):
            return ["alloc", tensor, address, {"over": over, "by": by}]
        case Scratch(operator, address):
            return ["scratch", operator, address]
        case Run(operator, ()):
            return ["run", operator]
        case Run(operator, streaming):
            return ["run", operator, {"streaming": dict(streaming)}]
        case Store(tensor):
            return ["store", tensor]
        case Free(tensor):
            return ["free", tensor]
    raise AssertionError(instruction)


def _instruction(row: list[Any], index: int, where: str) -> Instruction:
    match row:
        case ["load", str(tensor), int(address)]:
            return Load(tensor, address)
        case ["alloc", str(tensor), int(address)]:
            return Alloc(tensor, address)
        case ["alloc", str(tensor), int(address), {"over": str(over), "by": int(by), **rest}] if not rest:
            return Alloc(tensor, address, over, by)
        case ["scratch", str(operator), int(address)]:
            return Scratch(operator, address)
        case ["run", str(operator)]:
            return Run(operator)
        case ["run", str(operator), {"streaming": dict(streaming), **rest}] if not rest and all(
            type(n) is int for n in streaming.values()
        ):
            return Run(operator, tuple(streaming.items()))
        case ["store", str(tensor)]:
            return Store(tensor)
        case ["free", str(tensor)]:
            return Free(tensor)
    raise PlanFormatError(f"{_dump(row)[:120]} is no instruction", where=where, item=f"program[{index}]")
