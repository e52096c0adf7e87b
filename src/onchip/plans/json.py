"""The JSON form of a plan. Instructions are short arrays; attributes come last, as an object."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

import msgspec

from onchip.base.errors import PlanFormatError
from onchip.machines.chip import RATES, Memory
from onchip.network.json import WireNetwork, decode, network_from_wire, wire_network
from onchip.plans.limits import FORMAT, LIMIT, plan_chip, refuse_unwritable
from onchip.plans.program import (
    Alloc,
    Blocks,
    Boxes,
    Free,
    Group,
    Instruction,
    Join,
    Load,
    MemoryUse,
    Move,
    Moved,
    Pin,
    PinnedTensor,
    PinnedWeights,
    Plan,
    PlanChip,
    Result,
    Rings,
    Run,
    Scratch,
    Section,
    Stage,
    State,
    Status,
    Store,
    Tiling,
    Timed,
)

__all__ = ["from_json", "to_json"]

_ROWS = ("program", "groups", "pins", "state", "timing", "sections")
"""Keys whose values are written one element a line."""

Count = Annotated[int, msgspec.Meta(gt=-LIMIT, lt=LIMIT)]


class _WireTiling(msgspec.Struct, forbid_unknown_fields=True):
    rows: Count
    channels: Count
    images: Count
    streamed: tuple[str, ...] = ()


class _WireBlocks(msgspec.Struct, forbid_unknown_fields=True):
    rows: Count
    columns: Count
    output_channels: Count
    channels: Count
    keep_weights: bool = False


class _WireBoxes(msgspec.Struct, forbid_unknown_fields=True):
    sizes: tuple[Count, ...]
    order: tuple[Count, ...]


class _WireStage(msgspec.Struct, forbid_unknown_fields=True):
    operators: tuple[str, ...]
    rows: Count


class _WireRings(msgspec.Struct, forbid_unknown_fields=True):
    stages: tuple[_WireStage, ...]
    strips: Count
    fetched: Literal["rows", "columns"]
    traversal: Literal["forward", "reverse"]


class _WireGroup(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    operators: tuple[str, ...]
    scratch_bytes: Count
    subgroups: Count = 1
    refills: dict[str, Count] = {}
    resident_weights: tuple[str, ...] = ()
    tiling: _WireTiling | None = None
    blocks: _WireBlocks | None = None
    boxes: _WireBoxes | None = None
    rings: _WireRings | None = None


class _WireMemory(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    bytes: Count
    operands: bool = True
    bytes_per_second: float | None = None
    picojoules_per_byte: float | None = None


class _WireUse(msgspec.Struct, forbid_unknown_fields=True):
    memory: str
    peak_bytes: Count
    extent_bytes: Count
    accessed_bytes: Count


class _WireMoved(msgspec.Struct, forbid_unknown_fields=True):
    source: str
    target: str
    bytes: Count


class _WireChip(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    alignment_bytes: Count = 1
    dram_bytes_per_second: float | msgspec.UnsetType = msgspec.UNSET
    dram_picojoules_per_byte: float | msgspec.UnsetType = msgspec.UNSET
    macs_per_second: float | msgspec.UnsetType = msgspec.UNSET
    scratchpad_bytes_per_second: float | msgspec.UnsetType = msgspec.UNSET
    mac_picojoules: float | msgspec.UnsetType = msgspec.UNSET
    scratchpad_picojoules_per_byte: float | msgspec.UnsetType = msgspec.UNSET
    weight_scratchpad_bytes: Count | msgspec.UnsetType = msgspec.UNSET
    memories: tuple[_WireMemory, ...] | msgspec.UnsetType = msgspec.UNSET


class _WirePin(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    tensor: str | None = None
    weights: str | None = None
    address: Count | None = None


class _WireState(msgspec.Struct, forbid_unknown_fields=True):
    input: str
    output: str
    address: Count


class _WireSection(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    first: Count
    end: Count
    start: str | None = None
    merge: str | None = None
    branches: tuple[tuple[str, ...], ...] = ()
    processing: Literal["I", "II"] | None = None


class _WireResult(msgspec.Struct, forbid_unknown_fields=True):
    status: Status
    traffic_bytes: Count
    spill_bytes: Count
    reload_bytes: Count
    compulsory_bytes: Count
    weight_bytes: Count
    dram_bytes: Count
    lower_bound_bytes: Count
    peak_bytes: Count
    extent_bytes: Count
    seconds: float
    peak_lower_bound_bytes: Count | msgspec.UnsetType = msgspec.UNSET
    latency_picoseconds: Count | msgspec.UnsetType = msgspec.UNSET
    latency_lower_bound_picoseconds: Count | msgspec.UnsetType = msgspec.UNSET
    energy_picojoules: Count | msgspec.UnsetType = msgspec.UNSET
    energy_lower_bound_picojoules: Count | msgspec.UnsetType = msgspec.UNSET
    dram_lower_bound_bytes: Count | msgspec.UnsetType = msgspec.UNSET
    macs: Count | msgspec.UnsetType = msgspec.UNSET
    move_bytes: Count | msgspec.UnsetType = msgspec.UNSET
    memory_picoseconds: Count | msgspec.UnsetType = msgspec.UNSET
    memory_lower_bound_picoseconds: Count | msgspec.UnsetType = msgspec.UNSET
    memories: tuple[_WireUse, ...] | msgspec.UnsetType = msgspec.UNSET
    moves: tuple[_WireMoved, ...] | msgspec.UnsetType = msgspec.UNSET
    space: str | msgspec.UnsetType = msgspec.UNSET
    version: str | msgspec.UnsetType = msgspec.UNSET
    claim_sha256: str | msgspec.UnsetType = msgspec.UNSET


class _WirePlan(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    network: WireNetwork
    chip: _WireChip
    budget: Count
    program: list[list[Any]]
    result: _WireResult
    groups: tuple[_WireGroup, ...] = ()
    pins: tuple[_WirePin, ...] = ()
    state: tuple[_WireState, ...] = ()
    options: dict[str, str | Count | float | bool | None] = {}
    timing: list[list[Count]] | msgspec.UnsetType = msgspec.UNSET
    sections: tuple[_WireSection, ...] = ()


def to_json(plan: Plan) -> str:
    """The plan as JSON text, one line for each tensor, operator and instruction so that files diff well.

    Raises `PlanFormatError` for a plan that no file can hold: a number beyond 10^18, a float that is not
    finite, a name with a lone surrogate.
    """
    refuse_unwritable(plan)
    wire = _WirePlan(
        format=FORMAT,
        network=wire_network(plan.network),
        chip=_WireChip(**_stated(plan.chip)),
        budget=plan.budget,
        groups=tuple(_wire_group(g) for g in plan.groups),
        pins=tuple(_wire_pin(p) for p in plan.pins),
        state=tuple(_WireState(s.input, s.output, s.address) for s in plan.state),
        options=dict(plan.options),
        program=[_array(i) for i in plan.program],
        result=_WireResult(**_stated(plan.result)),
        timing=[[t.index, t.start, t.end] + ([] if t.fetched is None else [t.fetched]) for t in plan.timing]
        or msgspec.UNSET,
        sections=tuple(_WireSection(**asdict(s)) for s in plan.sections),
    )
    top = msgspec.to_builtins(wire)
    parts = []
    for key, value in top.items():
        if key in ("pins", "state", "sections") and not value:
            continue
        if key == "network":
            inner = ",\n  ".join(f"{_dump(k)}: {_lines(v, '    ')}" for k, v in value.items())
            parts.append(f'"network": {{\n  {inner}}}')
        else:
            parts.append(f"{_dump(key)}: {_lines(value, '  ') if key in _ROWS else _dump(value)}")
    return "{" + ",\n ".join(parts) + "}\n"


def from_json(content: bytes | str, *, where: str = "plan") -> Plan:
    """The plan in JSON text. Raises `PlanFormatError` (or `ModelError` for its network) naming the key."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    wire: _WirePlan = decode(data, _WirePlan, where=where, error=PlanFormatError)
    if wire.format != FORMAT:
        raise PlanFormatError(
            f"is {wire.format!r}; this version reads {FORMAT!r}", where=where, item="format"
        )
    stated, declared = wire.chip.weight_scratchpad_bytes, wire.chip.memories
    weight_scratchpad = None if isinstance(stated, msgspec.UnsetType) else stated
    memories = [] if isinstance(declared, msgspec.UnsetType) else [_memory(m, where) for m in declared]
    return Plan(
        network=network_from_wire(wire.network, where=where),
        chip=plan_chip(
            wire.chip.name,
            wire.chip.alignment_bytes,
            _rates(wire.chip),
            weight_scratchpad,
            memories,
            where=where,
        ),
        budget=wire.budget,
        program=tuple(_instruction(row, i, where) for i, row in enumerate(wire.program)),
        result=_result(wire.result),
        groups=tuple(_group(g, i, where) for i, g in enumerate(wire.groups)),
        pins=tuple(_pin(p, i, where) for i, p in enumerate(wire.pins)),
        state=tuple(State(s.input, s.output, s.address) for s in wire.state),
        options=wire.options,
        timing=() if wire.timing is msgspec.UNSET else tuple(_timed(row, where) for row in wire.timing),
        sections=tuple(Section(**msgspec.structs.asdict(s)) for s in wire.sections),
    )


def _stated(of: PlanChip | Result) -> dict[str, Any]:
    """The fields that are not None, nor tuples without anything, nor texts about a claim that are empty."""
    found = {key: value for key, value in asdict(of).items() if value not in (None, ())}
    found = {key: value for key, value in found.items() if value != "" or key == "name"}
    for key, kind in (
        ("memories", _WireMemory if isinstance(of, PlanChip) else _WireUse),
        ("moves", _WireMoved),
    ):
        if key in found:
            found[key] = tuple(kind(**row) for row in found[key])
    return found


def _set(wire: msgspec.Struct) -> dict[str, Any]:
    """The fields that the file has."""
    return {key: value for key, value in msgspec.structs.asdict(wire).items() if value is not msgspec.UNSET}


def _result(wire: _WireResult) -> Result:
    found = _set(wire)
    for key, kind in (("memories", MemoryUse), ("moves", Moved)):
        found[key] = tuple(kind(**msgspec.structs.asdict(row)) for row in found.get(key, ()))
    return Result(**found)


def _memory(wire: _WireMemory, where: str) -> Memory:
    for key in ("bytes_per_second", "picojoules_per_byte"):
        value = getattr(wire, key)
        if value is not None and not 0 < value < LIMIT:
            raise PlanFormatError("is no positive number", where=where, item=f"memory {wire.name[:60]} {key}")
    return Memory(**msgspec.structs.asdict(wire))


def _rates(wire: _WireChip) -> dict[str, Any]:
    return {key: value for key, value in _set(wire).items() if key in RATES}


def _timed(row: list[int], where: str) -> Timed:
    if len(row) not in (3, 4):
        raise PlanFormatError(
            "is no [instruction, start, end] or [instruction, start, end, fetched]",
            where=where,
            item="timing",
        )
    return Timed(*row)


def _wire_group(group: Group) -> _WireGroup:
    wire = _WireGroup(
        group.name,
        group.operators,
        group.scratch_bytes,
        group.subgroups,
        dict(group.refills),
        group.resident_weights,
    )
    match group.tiling:
        case Tiling(rows, streamed, channels, images):
            wire.tiling = _WireTiling(rows, channels, images, streamed)
        case Blocks(rows, columns, output_channels, channels, keep_weights):
            wire.blocks = _WireBlocks(rows, columns, output_channels, channels, bool(keep_weights))
        case Boxes(sizes, order):
            wire.boxes = _WireBoxes(sizes, order)
        case Rings(stages, strips, fetched, traversal):
            cut = tuple(_WireStage(stage.operators, stage.rows) for stage in stages)
            wire.rings = _WireRings(cut, strips, fetched, traversal)
    return wire


def _group(wire: _WireGroup, index: int, where: str) -> Group:
    def refuse(reason: str) -> PlanFormatError:
        return PlanFormatError(reason, where=where, item=f"groups[{index}]")

    tiling: Tiling | Blocks | Boxes | Rings | None = None
    if sum(way is not None for way in (wire.tiling, wire.blocks, wire.boxes, wire.rings)) > 1:
        raise refuse("has more than one of tiling, blocks, boxes and rings")
    if wire.tiling is not None:
        t = wire.tiling
        if len(set(t.streamed)) < len(t.streamed):
            raise refuse("its tiling names a streamed tensor twice")
        tiling = Tiling(t.rows, t.streamed, t.channels, t.images)
    elif wire.blocks is not None:
        tiling = Blocks(**msgspec.structs.asdict(wire.blocks))
    elif wire.boxes is not None:
        tiling = Boxes(wire.boxes.sizes, wire.boxes.order)
    elif wire.rings is not None:
        r = wire.rings
        stages = tuple(Stage(stage.operators, stage.rows) for stage in r.stages)
        tiling = Rings(stages, r.strips, r.fetched, r.traversal)
    return Group(
        wire.name,
        wire.operators,
        wire.scratch_bytes,
        wire.subgroups,
        tuple(wire.refills.items()),
        wire.resident_weights,
        tiling,
    )


def _wire_pin(pin: Pin) -> _WirePin:
    if isinstance(pin, PinnedWeights):
        return _WirePin(weights=pin.operator, address=pin.address)
    return _WirePin(tensor=pin.tensor, address=pin.address)


def _pin(wire: _WirePin, index: int, where: str) -> Pin:
    match wire:
        case _WirePin(tensor=str(tensor), weights=None):
            return PinnedTensor(tensor, wire.address)
        case _WirePin(tensor=None, weights=str(operator), address=int(address)):
            return PinnedWeights(operator, address)
    raise PlanFormatError(
        "is neither a tensor nor weights with an address", where=where, item=f"pins[{index}]"
    )


def _dump(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _lines(value: Any, indent: str) -> str:
    if not isinstance(value, list | tuple) or not value or not isinstance(value[0], dict | list | tuple):
        return _dump(value)
    return "[\n" + ",\n".join(indent + _dump(v) for v in value) + "]"


def _array(instruction: Instruction) -> list[Any]:
    match instruction:
        case Load(tensor, address, memory):
            return _placed(["load", tensor, address], memory)
        case Alloc(tensor, address, None, _, (), memory):
            return _placed(["alloc", tensor, address], memory)
        case Alloc(tensor, address, None, _, parts, memory):
            return _placed(["alloc", tensor, address, {"of": list(parts)}], memory)
        case Alloc(tensor, address, over, by, _, memory):
            return _placed(["alloc", tensor, address, {"over": over, "by": by}], memory)
        case Scratch(operator, address, memory):
            return _placed(["scratch", operator, address], memory)
        case Move(tensor, address, memory):
            return _placed(["move", tensor, address], memory)
        case Run(operator, ()):
            return ["run", operator]
        case Run(operator, streaming):
            return ["run", operator, {"streaming": dict(streaming)}]
        case Store(tensor):
            return ["store", tensor]
        case Free(tensor):
            return ["free", tensor]
        case Join(operator):
            return ["join", operator]
    raise AssertionError(instruction)


def _placed(row: list[Any], memory: str | None) -> list[Any]:
    """The instruction with the memory of its range among its attributes."""
    if memory is None:
        return row
    *front, last = row
    return [*front, {**last, "in": memory}] if isinstance(last, dict) else [*row, {"in": memory}]


def _without_memory(row: list[Any]) -> tuple[list[Any], str | None]:
    match row:
        case [("load" | "alloc" | "scratch" | "move"), _, _, {"in": str(memory), **rest}]:
            return [*row[:3], *([rest] if rest else [])], memory
    return row, None


def _instruction(row: list[Any], index: int, where: str) -> Instruction:
    bare, memory = _without_memory(row)
    match bare:
        case ["load", str(tensor), address] if _is_count(address):
            return Load(tensor, address, memory)
        case ["alloc", str(tensor), address] if _is_count(address):
            return Alloc(tensor, address, memory=memory)
        case ["alloc", str(tensor), address, {"over": str(over), "by": by, **rest}] if not rest and _is_count(
            address, by
        ):
            return Alloc(tensor, address, over, by, memory=memory)
        case ["alloc", str(tensor), address, {"of": [*parts], **rest}] if not rest and _is_count(address):
            if parts and all(isinstance(p, str) for p in parts) and len(set(parts)) == len(parts):
                return Alloc(tensor, address, parts=tuple(parts), memory=memory)
        case ["scratch", str(operator), address] if _is_count(address):
            return Scratch(operator, address, memory)
        case ["move", str(tensor), address] if memory is not None and _is_count(address):
            return Move(tensor, address, memory)
        case ["run", str(operator)]:
            return Run(operator)
        case ["run", str(operator), {"streaming": dict(streaming), **rest}] if not rest and _is_count(
            *streaming.values()
        ):
            return Run(operator, tuple(streaming.items()))
        case ["store", str(tensor)]:
            return Store(tensor)
        case ["free", str(tensor)]:
            return Free(tensor)
        case ["join", str(operator)]:
            return Join(operator)
    shown = ", ".join(word[:40] if isinstance(word, str) else type(word).__name__ for word in row[:4])
    raise PlanFormatError(f"[{shown}] is no instruction", where=where, item=f"program[{index}]")


def _is_count(*values: object) -> bool:
    """Whole numbers that a plan can hold; JSON's true and false are none."""
    return all(type(n) is int and -LIMIT < n < LIMIT for n in values)
