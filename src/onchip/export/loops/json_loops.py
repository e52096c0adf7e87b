"""`onchip.loops/1`: a plan as JSON, its steps in order, loops as loops. docs/loops.md describes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onchip.export.loops.lower import book_of, lowered
from onchip.export.loops.steps import (
    Allocate,
    Array,
    Box,
    Compute,
    Copy,
    Fixed,
    For,
    Give,
    Named,
    Part,
    Place,
    Range,
    RunWhole,
    Slid,
    Step,
    Transfer,
    WholeRead,
)
from onchip.plans import Plan

__all__ = ["FORMAT", "write"]

FORMAT = "onchip.loops/1"


def write(plan: Plan, model: str | Path | None = None) -> str:
    """Return the JSON object, a step a line; raises `UsageError` for what has no steps."""
    book = book_of(plan, None if model is None else str(model))
    program = lowered(book)
    network, told = book.network, book.plan
    head: dict[str, Any] = {
        "format": FORMAT,
        "network": network.name,
        "source": network.source,
        "sha256": network.sha256,
        "chip": told.chip.name,
        "scratchpad_bytes": program.pad,
        "dram_bytes": told.result.dram_bytes,
        "inputs": [book.tensor(t.id) for t in network.tensors if t.kind == "input"],
        "outputs": list(dict.fromkeys(book.tensor(network.root[t]) for t in network.outputs)),
    }
    tables = {
        "arrays": [_array(array) for array in program.arrays.values()],
        "places": [_place(place) for place in program.places.values()],
        "steps": [_step(step) for step in program.steps],
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, rows in tables.items():
        body = ",\n  ".join(json.dumps(row) for row in rows)
        lines.append(f" {json.dumps(key)}: [" + (f"\n  {body}\n ]" if rows else "]"))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _array(array: Array) -> dict[str, Any]:
    return {
        "id": array.id,
        "name": array.name,
        "kind": array.kind,
        "element_bytes": array.element,
        "elements": array.count,
        "offset": array.offset,
    }


def _place(place: Place) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": place.id,
        "names": list(place.names),
        "address": place.address,
        "bytes": place.bytes,
        "element_bytes": place.element,
        "pitch": place.pitch,
        "sides": list(place.sides),
        "most": list(place.most),
    }
    if place.ring is not None:
        row["ring"] = place.ring
    if place.array is not None:
        row |= {
            "array": place.array,
            "offset": place.offset,
            "first": list(place.first),
            "whole": list(place.whole),
        }
    if place.sums is not None:
        row |= {"sums": place.sums, "sum_bytes": place.partial}
    return row


def _range(some: Range) -> Any:
    match some:
        case Fixed(low, high):
            return [low, high]
        case Named(name):
            return name
        case Slid(of, stride, before, per, span, size):
            return {"of": of, "stride": stride, "before": before, "per": per, "span": span, "size": size}


def _box(box: Box) -> list[Any]:
    return [_range(one) for one in box]


def _parts(parts: tuple[Part, ...]) -> list[Any]:
    return [[_range(of), size] for of, size in parts]


def _whole(read: WholeRead) -> dict[str, Any]:
    where = (
        {"address": read.address}
        if read.address is not None
        else {"array": read.array, "offset": read.offset}
    )
    return {"name": read.name, **where, "shape": list(read.shape), "element": read.kind.name}


def _step(step: Step) -> dict[str, Any]:
    match step:
        case For(turns, body):
            row: dict[str, Any] = {"for": turns.name}
            if turns.tables:
                row |= {
                    "turns": turns.count,
                    "ranges": {name: list(rows) for name, rows in turns.tables.items()},
                }
            else:
                row |= {"of": _range(turns.of), "tile": turns.tile}
            return row | {"body": [_step(inner) for inner in body]}
        case Allocate(place, region):
            return {"allocate": place, "region": _box(region)}
        case Give(place):
            return {"free": place}
        case Copy(direction, place, box, parts, late, back):
            row = {direction: place, "box": _box(box)}
            if back:
                return row | {"sums_unless_first": _parts(parts)}
            if late:
                return row | ({"only_last": _parts(parts)} if parts else {})
            return row | ({"sums_unless_last": _parts(parts)} if parts else {})
        case Compute():
            place, box = step.writes
            row = {
                "compute": step.operator.name,
                "type": step.operator.type,
                "axes": _box(step.axes),
                "reads": [{"place": seen.place, "box": _box(own)} for seen, own in step.reads],
                "writes": {"place": place, "box": _box(box)},
            }
            if step.parts:
                row |= {"sums": _parts(step.parts), "accumulators": step.accumulators or None}
            return row
        case RunWhole():
            return {
                "run": step.operator.name,
                "type": step.operator.type,
                "reads": [_whole(read) for read in step.reads],
                "writes": [_whole(one) for one in step.writes],
                "streamed_bytes": step.weights + step.streamed,
            }
        case Transfer(direction, array, address, size, to):
            row = {f"{direction}_all": array, "address": address, "bytes": size}
            return row | ({"to": to} if direction == "move" else {})
