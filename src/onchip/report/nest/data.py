"""A nest as JSON: what the checker derives of it, for `onchip report --json` and programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onchip.report.nest.shown import ShownBuffer, ShownLeaf, ShownLoop, ShownNest

__all__ = ["nest_data"]


def nest_data(nest: ShownNest) -> dict[str, Any]:
    """Return a nest with its names, as docs/report.md lists its keys."""
    return {
        "scratch_bytes": nest.scratch,
        "need_bytes": nest.need,
        "crossing_bytes": nest.moved,
        "once_bytes": nest.least,
        "beside": nest.beside,
        "whole": [
            {
                "name": nest.names[w.name],
                "bytes": w.bytes,
                "made": w.made,
                "before": [nest.names[n] for n in w.before],
            }
            for w in nest.whole
        ],
        "buffers": [_buffer(b, nest.names) for b in nest.buffers],
        "body": [_item(item, nest.names) for item in nest.body],
    }


def _item(item: ShownLoop | ShownLeaf, names: Sequence[str]) -> dict[str, Any]:
    if isinstance(item, ShownLoop):
        return {
            "loop": item.word,
            "over": {names[name]: axis for name, axis in item.over},
            "size": item.size,
            "tile": item.tile,
            "turns": item.turns,
            "all_turns": item.runs,
            "windows": item.slides,
            "buffers": [_buffer(b, names) for b in item.buffers],
            "body": [_item(inner, names) for inner in item.body],
        }
    return {
        "run": names[item.operator],
        "leaf": item.number,
        "slices": [{"axis": word, "size": size, "tile": tile} for word, size, tile in item.slices],
        "over": None if item.over is None else names[item.over],
        "all_turns": item.runs,
        "alive_bytes": item.alive,
        "made_again": [{"made": made, "of": size} for made, size in item.again],
        "array": [list(side) for side in item.array],
        "buffers": [_buffer(b, names) for b in item.buffers],
    }


def _buffer(b: ShownBuffer, names: Sequence[str]) -> dict[str, Any]:
    return {
        "name": names[b.name],
        "role": b.role,
        "sides": list(b.sides),
        "whole_sides": list(b.whole),
        "held_bytes": b.held,
        "whole_bytes": b.size,
        "offset": b.offset,
        "bytes": b.bytes,
        "leaves": [b.first, b.last],
        "turns": b.turns,
        "crossing_bytes": b.crosses,
        "keep": b.kept,
        "ring": b.ring,
        "over": [names[n] for n in b.over],
        "copies": b.copies,
        "loads": b.load,
        "stores": b.store,
        "late": b.late,
    }
