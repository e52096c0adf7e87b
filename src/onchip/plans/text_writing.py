"""The text form of a plan: one fact or instruction a line, so that plans diff and tests read well.

A word that is not plain is written as a JSON string. `#` starts a comment where a word could start. Facts
come in any order; `program` is everything after that line. `onchip.plans.text_reading` reads it back.
"""

from __future__ import annotations

import json
from dataclasses import astuple, fields

from onchip.machines.chip import RATES, Memory
from onchip.network import Geometry, Network, Operator, Tensor
from onchip.network.json import TEXTS
from onchip.plans.file_limits import format_of, refuse_unwritable
from onchip.plans.lines import line_of
from onchip.plans.program import (
    Blocks,
    Boxes,
    Group,
    Instruction,
    Nest,
    Plan,
    PlanChip,
    Rings,
    Rows,
    Section,
    Tiling,
)
from onchip.plans.result import Result
from onchip.plans.text_nest import nest_lines
from onchip.plans.text_reach import reach_text
from onchip.plans.text_reading import from_text
from onchip.plans.text_rows import rows_lines
from onchip.plans.text_tiles import tile_lines
from onchip.plans.text_words import SECTION, TILED, counted, word, words

__all__ = ["from_text", "instruction_text", "to_text"]


def instruction_text(instruction: Instruction) -> str:
    """Return one instruction as its line: `alloc y @150528`."""
    return line_of(instruction)


def to_text(plan: Plan) -> str:
    """Return the whole plan as text; `from_text` gives it back unchanged.

    Raises `PlanFormatError` for a plan that no file can hold: a number beyond 10^18, a float that is not
    finite, a name with a lone surrogate.
    """
    refuse_unwritable(plan)
    net = plan.network
    names = [t.name for t in net.tensors]
    lines = [format_of(plan), f"network {word(net.name)}"]
    lines += [f"{key} {word(getattr(net, key))}" for key in TEXTS]
    lines += [_tensor(t) for t in net.tensors]
    lines += [_operator(net, op) for op in net.operators]
    lines += [reach_text(op.name, op.reach) for op in net.operators if op.reach is not None]
    lines += [
        f"repeats {word(op.name)} {word(net.operators[op.repeats].name)}"
        for op in net.operators
        if op.repeats is not None
    ]
    lines += [f"view {word(names[v.tensor])} {word(names[v.of])} {v.offset}" for v in net.views]
    lines += [f"output {word(names[t])}" for t in net.outputs]
    lines.append(_chip(plan.chip))
    lines += [_memory(m) for m in plan.chip.memories]
    lines += [] if plan.chip.tiles is None else tile_lines(plan.chip.tiles)
    rates = [(key, getattr(plan.chip, key)) for key in RATES]
    lines += [f"rate {key} {value!r}" for key, value in rates if value is not None]
    lines.append(f"budget {plan.budget}")
    lines += [line for g in plan.groups for line in _group(g)]
    lines += [line_of(fact) for fact in (*plan.pins, *plan.state, *plan.caches, *plan.layouts)]
    lines += [f"option {word(k)} {json.dumps(v)}" for k, v in plan.options.items()]
    figures = [(f.name, getattr(plan.result, f.name)) for f in fields(Result)]
    lines += [f"result {name} {value}" for name, value in figures if isinstance(value, int | float)]
    lines += [f"result {name} {word(value)}" for name, value in figures if isinstance(value, str) and value]
    lines += [line_of(fact) for fact in (*plan.result.memories, *plan.result.moves, *plan.timing)]
    lines += [_section(s) for s in plan.sections]
    lines.append("program")
    lines += ["  " + line_of(i) for i in plan.program]
    return "\n".join(lines) + "\n"


def _tensor(tensor: Tensor) -> str:
    line = f"tensor {word(tensor.name)} {tensor.bytes} {tensor.kind}"
    if tensor.shape:
        line += " shape " + " ".join(map(str, tensor.shape))
    if tensor.patches is None:
        return line
    return f"{line} patches " + " ".join(map(str, astuple(tensor.patches)))


def _operator(net: Network, op: Operator) -> str:
    line = f"operator {word(op.name)} {word(op.type)}"
    line += f" in{words(net.tensors[t].name for t in op.inputs)}"
    line += f" out{words(net.tensors[t].name for t in op.outputs)}"
    if op.weight_bytes:
        line += f" weights {op.weight_bytes}"
    if op.workspace:
        line += f" workspace {op.workspace}"
    if op.macs:
        line += f" macs {op.macs}"
    return line if op.geometry is None else line + _geometry(op.geometry)


def _geometry(geometry: Geometry) -> str:
    """Return the words that differ from the default, which the reader fills in."""
    line, default = f" geometry {word(geometry.kind)}", Geometry("")
    for key in ("input", "output", "kernel", "stride", "padding", "dilation"):
        sizes = getattr(geometry, key)
        if sizes:
            line += f" {key} " + " ".join(map(str, sizes))
    for key in ("groups", "layout"):
        if getattr(geometry, key) != getattr(default, key):
            line += f" {key} {getattr(geometry, key)}"
    if (geometry.pixels, geometry.channels) != (default.pixels, default.channels):
        return f"{line} traversal {geometry.traversal} pixels {geometry.pixels} channels {geometry.channels}"
    return line if geometry.traversal == default.traversal else f"{line} traversal {geometry.traversal}"


def _group(group: Group) -> list[str]:
    line = f"group {word(group.name)}{_tiling(group.tiling)}"
    own = () if group.tiling is None else TILED.get(type(group.tiling).__name__.lower(), ())
    line += f" scratch {group.scratch_bytes} subgroups {group.subgroups}"
    line += f" operators{words(group.operators, own)}"
    if group.refills:
        line += f" refills {counted(group.refills)}"
    line += f" resident{words(group.resident_weights, own)}" if group.resident_weights else ""
    match group.tiling:
        case Nest():
            return [line, *nest_lines(group.tiling)]
        case Rows():
            return [line, *rows_lines(group.tiling)]
    return [line]


def _tiling(tiling: Tiling | Blocks | Boxes | Rings | Nest | Rows | None) -> str:
    match tiling:
        case Boxes(sizes, order):
            return "".join(f" {n}" for n in ("boxes", *sizes, "order", *order))
        case Tiling(rows, streamed, channels, images):
            line = f" tiling rows {rows} channels {channels} images {images}"
            return line + (f" streaming{words(streamed, TILED['tiling'])}" if streamed else "")
        case Blocks(rows, columns, output_channels, channels, keep_weights):
            line = f" blocks rows {rows} columns {columns} output_channels {output_channels}"
            return line + f" channels {channels}" + (" keep_weights" if keep_weights else "")
        case Rings(stages, strips, fetched, traversal):
            line = f" rings strips {strips} fetched {fetched} traversal {traversal}"
            own = TILED["rings"]
            return line + "".join(f" stage {stage.rows}{words(stage.operators, own)}" for stage in stages)
    return ""


def _chip(chip: PlanChip) -> str:
    line = f"chip {word(chip.name)} {chip.alignment_bytes}"
    separate, wide = chip.weight_scratchpad_bytes, chip.accumulator_bytes
    line += "" if separate is None else f" weights {separate}"
    return line if wide is None else f"{line} accumulators {wide}"


def _memory(memory: Memory) -> str:
    line = f"memory {word(memory.name)} {memory.bytes}" + ("" if memory.operands else " storage")
    for key in ("bytes_per_second", "picojoules_per_byte"):
        value = getattr(memory, key)
        line += "" if value is None else f" {key} {value!r}"
    return line


def _section(section: Section) -> str:
    """Return the line; names that equal words of the line are quoted."""
    line = f"section {word(section.name)} {section.first} {section.end}"
    for key in ("start", "merge", "processing"):
        if getattr(section, key) is not None:
            line += f" {key} {word(getattr(section, key), SECTION)}"
    return line + "".join(f" branch{words(branch, SECTION)}" for branch in section.branches)
