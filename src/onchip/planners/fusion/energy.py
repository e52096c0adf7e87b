"""Energy and time of a fused group on an accelerator, level by level, relative to one multiply-accumulate.

The counts follow Eyeriss, as in Optimus (section 7.1): words that cross to DRAM, words read and written in
the buffer, words that travel along the array, register accesses, multiply-accumulates, each at a price.
docs/fusion-energy.md derives the counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from onchip.base.errors import ChipError
from onchip.machines.chip import ELEMENTS, Chip
from onchip.network import bits
from onchip.planners.fusion.cost import GroupCost
from onchip.planners.fusion.dataflow import Accesses, Array, Dataflow, Work, accesses
from onchip.planners.fusion.problem import FusionProblem
from onchip.planners.fusion.rows import Bands, bands_of, walk

__all__ = ["GroupEnergy", "group_energy", "works"]

LEVELS = ("dram", "buffer", "array", "register")


@dataclass(frozen=True, slots=True)
class GroupEnergy:
    """The energy and time of a group, all images together: in multiply-accumulates and seconds.

    `seconds` is the longer of `compute_seconds` (cycles of the array) and `dram_seconds`: copies and
    computation of a group overlap. A time is None if the chip does not state the rate.
    """

    dram_words: int
    accesses: Accesses
    dram: float
    buffer: float
    array: float
    registers: float
    macs: float
    compute_seconds: float | None
    dram_seconds: float | None

    @property
    def energy(self) -> float:
        """The sum of all energies."""
        return self.dram + self.buffer + self.array + self.registers + self.macs

    @property
    def seconds(self) -> float | None:
        """The time of the group; None if a part of it is."""
        if self.compute_seconds is None or self.dram_seconds is None:
            return None
        return max(self.compute_seconds, self.dram_seconds)


def group_energy(
    problem: FusionProblem, cost: GroupCost, chip: Chip, *, least: Literal["words", "energy"] = "words"
) -> GroupEnergy:
    """Return the energy and time of one group on `chip`; raises `ChipError` without an array or prices.

    `least`: what an element's block of sums is chosen for, words of the buffer or energy of buffer and array.
    """
    array = _array(chip)
    words = -(-cost.dram_bytes // ELEMENTS[chip.element])
    price = {level: chip.require(f"{level}_access_macs", "an energy") for level in LEVELS}
    if least == "energy":
        array = replace(array, prices=(price["buffer"], price["array"]))
    found = Accesses(buffer=words)  # words that cross to DRAM are also written or read in the buffer
    for work in works(problem, cost):
        found += accesses(work, array)
    clock = chip.clock_hertz
    bandwidth = chip.rates.dram_bytes_per_second
    return GroupEnergy(
        words,
        found,
        dram=words * price["dram"],
        buffer=found.buffer * price["buffer"],
        array=found.array * price["array"],
        registers=found.registers * price["register"],
        macs=float(found.macs),
        compute_seconds=None if clock is None else found.cycles / clock,
        dram_seconds=None if bandwidth is None else cost.dram_bytes / bandwidth,
    )


def works(problem: FusionProblem, cost: GroupCost) -> Iterator[Work]:
    """Yield the work of each operator of a group, all images together."""
    bands = bands_of(problem, cost.members) if cost.rows else None
    if bands is None:
        yield from _alone(problem, cost)
        return
    made = _rows_made(problem, bands, cost)
    for v in bits(cost.members):
        op = problem.operators[v]
        (operand, *_), (y, *_) = op.operands, op.outputs
        shape, source = problem.maps[y], problem.maps[operand.tensor]
        assert shape is not None
        assert source is not None
        streamed = cost.streamed >> operand.tensor & 1 and op.form == "reduce"
        slices = -(-source.channels // problem.channel_tile) if streamed else 1
        yield _work(problem, v, made[y] * problem.batch, cost.subgroups * cost.images, slices)


def _alone(problem: FusionProblem, cost: GroupCost) -> Iterator[Work]:
    """Yield the work of an operator that runs whole, or in blocks: every output once."""
    for v in bits(cost.members):
        op = problem.operators[v]
        shape = problem.maps[op.outputs[0]]
        if op.form != "opaque" and shape is not None:
            yield _work(problem, v, shape.rows * problem.batch, max(1, cost.subgroups), 1)


def _work(problem: FusionProblem, v: int, rows: int, bands: int, slices: int) -> Work:
    op = problem.operators[v]
    shape = problem.maps[op.outputs[0]]
    assert shape is not None
    access = op.access
    high, wide, deep, groups, stride = 1, 1, 1, 1, 1
    if access is not None and access.windowed:
        rows_, columns = access.operands[0].rows, access.operands[0].columns
        high, wide, stride = rows_.taps, columns.taps, rows_.stride
        if op.form == "reduce":
            deep, groups = access.kernel.inputs, access.groups
    operands = len(op.operands) if op.form == "elementwise" else 1
    element = shape.element
    return Work(
        rows=rows,
        bands=min(bands, rows),
        columns=shape.columns,
        out_channels=shape.channels,
        in_channels=deep,
        groups=groups,
        kernel_rows=high * operands,  # each additional operand is one more word to read for each word made
        kernel_columns=wide,
        stride=stride,
        weights=op.weight_bytes // element,
        mixes=op.form == "reduce",
        slices=slices,
    )


def _rows_made(problem: FusionProblem, bands: Bands, cost: GroupCost) -> dict[int, int]:
    """Return the rows of one image of each tensor that are made, repeated ones as often as they are."""
    anew = (1 << len(problem.maps)) - 1 if problem.options.halo == "recompute" else cost.streamed
    made = dict.fromkeys(bands.tensors, 0)
    for band in walk(problem, bands, cost.streamed, cost.rows):
        for x, (before, low, high) in band.items():
            made[x] += high - (low if anew >> x & 1 else before)
    return made


def _array(chip: Chip) -> Array:
    """Return the chip's array; one word of registers for a sum if it states no register file."""
    chip.require("pe_rows", "an energy")
    assert chip.array is not None
    match chip.dataflow:
        case "ow-cout" | "oh-ow" | "cin-cout" as dataflow:
            registers = (chip.array.register_file_bytes or 0) // ELEMENTS[chip.element]
            return Array(chip.array.rows, chip.array.columns, max(3, registers), dataflow)
    raise ChipError(f"states no dataflow of {', '.join(get_args(Dataflow))}", where=f"chip {chip.name}")
