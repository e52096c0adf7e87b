"""Operands that pass whole through a scratch, piece by piece: of operators that run whole, and of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import InputError
from onchip.network import Operator
from onchip.run.arena import Claim

if TYPE_CHECKING:
    from onchip.run.machine import Machine

__all__ = ["stream_in", "streamable", "through_scratch"]

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def streamable(
    machine: Machine, name: str, operators: Sequence[Operator], streaming: Sequence[tuple[str, int]]
) -> list[int]:
    """The streamed operands, each of which can be: it has a copy in DRAM, or gets one."""
    written = {t for op in operators for t in op.outputs}
    wanted = []
    for tensor, crossing in streaming:
        t = machine.tensor(tensor)
        size = machine.network.tensors[t].bytes
        if crossing != size:
            raise InputError(
                f"streams {crossing:,} bytes of {tensor}, which has {size:,}: execution streams whole"
                " tensors only",
                item=f"operator {name}",
            )
        wanted.append(t)
        if t in written:
            if t in machine.address:
                machine.refuse("streaming-reserved", f"{tensor} is streamed and has a range")
            continue
        if not any(machine.network.reads[op.id] >> t & 1 for op in operators):
            machine.refuse("streaming-operand", f"{tensor} is no operand of {name}")
        if t not in machine.dram:
            machine.refuse("streaming-no-dram-copy", f"{tensor} has no copy in DRAM")
    return wanted


def stream_in(
    machine: Machine, name: str, operators: Sequence[Operator], wanted: Sequence[int]
) -> dict[int, Array | None]:
    """The streamed operands: values of those that are read, None for those still to be written."""
    written = {t for op in operators for t in op.outputs}
    streamed: dict[int, Array | None] = {}
    for t in wanted:
        if t in written:
            streamed[t] = None
            continue
        data = through_scratch(machine, name, t, machine.dram[t])
        machine.count("compulsory" if machine.first_fetch(t) else "reload", len(data))
        streamed[t] = machine.value(t, data)
    return streamed


def through_scratch(machine: Machine, name: str, t: int, data: Bytes) -> Bytes:
    """A tensor's bytes after passing through the scratch in pieces, whole patches where it has patches.

    Without a scratch they are as they were; only a tensor in patches needs one.
    """
    start, end = machine.scratch.get(name, (0, 0))
    patched, room = machine.network.tensors[t].patches, end - start
    if patched is not None:
        patch = len(data) // patched.elements * patched.height * patched.width
        room = room // patch * patch
        if not room:
            machine.refuse("streaming-unproved", f"the scratch of {name} has no room for a patch")
    if not room:
        return data
    passed = np.empty_like(data)
    for at in range(0, len(data), room):
        piece = data[at : at + room]
        machine.arena.write(start, piece, Claim(f"the scratch of {name}", machine.index))
        passed[at : at + len(piece)] = machine.arena.bytes[start : start + len(piece)]
    return passed
