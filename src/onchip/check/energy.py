"""The energy of a plan: its bytes and multiplications, at the chip's energy figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from onchip.network import Network
from onchip.plans import Alloc, Instruction, Join, PlanChip

__all__ = ["energy", "picojoules_per_dram_byte"]


def energy(
    network: Network,
    chip: PlanChip,
    dram_bytes: int,
    program: Sequence[Instruction] = (),
    accessed: Mapping[str, int] | None = None,
    weights: int = 0,
) -> int | None:
    """Return the picojoules of one inference that moves `dram_bytes`, rounded up; None if DRAM has no figure.

    Every DRAM byte also enters or leaves the scratchpad once; every operator reads its operands and weights
    there and writes its outputs, except for what the `program` joins in place. Operations without a figure
    on the chip count nothing. On a chip with several memories the bytes `accessed` in each count at its own
    figure, and fetched `weights` at the scratchpad's.
    """
    if chip.dram_picojoules_per_byte is None:
        return None
    macs = sum(op.work for op in network.operators)
    if accessed:
        return _up(
            dram_bytes * Fraction(chip.dram_picojoules_per_byte)
            + macs * Fraction(chip.mac_picojoules or 0)
            + sum(accessed[m.name] * _per_byte(chip, m.picojoules_per_byte) for m in chip.memories)
            + (weights + sum(op.weight_bytes for op in network.operators)) * _per_byte(chip)
        )
    local = sum(
        op.weight_bytes + sum(network.tensors[t].bytes for t in (*op.inputs, *op.outputs))
        for op in network.operators
    )
    for instruction in program:  # joined operands are neither read nor written
        match instruction:
            case Alloc(parts=parts):
                local -= 2 * sum(network.tensors[network.tensor_id[name]].bytes for name in parts)
            case Join(name):
                op = network.operators[network.operator_id[name]]
                local -= sum(network.tensors[t].bytes for t in (*op.inputs, *op.outputs))
    total = dram_bytes * picojoules_per_dram_byte(chip)
    return _up(total + macs * Fraction(chip.mac_picojoules or 0) + local * _per_byte(chip))


def picojoules_per_dram_byte(chip: PlanChip) -> Fraction:
    """Return the picojoules of a byte that crosses between DRAM and the scratchpad, at both figures."""
    return Fraction(chip.dram_picojoules_per_byte or 0) + _per_byte(chip)


def _per_byte(chip: PlanChip, own: float | None = None) -> Fraction:
    """Return the picojoules of a byte read or written in a memory: its `own` figure, or the scratchpad's."""
    return Fraction(own or chip.scratchpad_picojoules_per_byte or 0)


def _up(exact: Fraction) -> int:
    return -(-exact.numerator // exact.denominator)
