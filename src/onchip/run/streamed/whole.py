"""Operands that pass whole through a scratch, piece by piece: of operators that run whole, and of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onchip.base.errors import InputError
from onchip.network import Operator
from onchip.run.arena import Claim
from onchip.run.state import State

__all__ = ["stream_in", "streamable", "through_scratch"]

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def streamable(
    state: State, name: str, operators: Sequence[Operator], streaming: Sequence[tuple[str, int]]
) -> list[int]:
    """Return the streamed operands; each has a copy in DRAM, or gets one."""
    written = {t for op in operators for t in op.outputs}
    wanted = []
    for tensor, crossing in streaming:
        t = state.tensor(tensor)
        size = state.network.tensors[t].bytes
        if crossing != size:
            raise InputError(
                f"streams {crossing:,} bytes of {tensor}, which has {size:,}: execution streams whole"
                " tensors only",
                item=f"operator {name}",
            )
        wanted.append(t)
        if t in written:
            if t in state.address:
                state.refuse("streaming-reserved", f"{tensor} is streamed and has a range")
            continue
        if not any(state.network.reads[op.id] >> t & 1 for op in operators):
            state.refuse("streaming-operand", f"{tensor} is no operand of {name}")
        if t not in state.dram:
            state.refuse("streaming-no-dram-copy", f"{tensor} has no copy in DRAM")
    return wanted


def stream_in(
    state: State, name: str, operators: Sequence[Operator], wanted: Sequence[int]
) -> dict[int, Array | None]:
    """Return the streamed operands: values of those that are read, None for those still to be written."""
    written = {t for op in operators for t in op.outputs}
    streamed: dict[int, Array | None] = {}
    for t in wanted:
        if t in written:
            streamed[t] = None
            continue
        data = through_scratch(state, name, t, state.dram[t])
        state.count("compulsory" if state.first_fetch(t) else "reload", len(data))
        streamed[t] = state.value(t, data)
    return streamed


def through_scratch(state: State, name: str, t: int, data: Bytes) -> Bytes:
    """Return a tensor's bytes after passing through the scratch in pieces, whole patches if it has patches.

    Without a scratch they are unchanged; only a tensor in patches needs one.
    """
    start, end = state.scratch.get(name, (0, 0))
    patched, room = state.network.tensors[t].patches, end - start
    if patched is not None:
        patch = len(data) // patched.elements * patched.height * patched.width
        room = room // patch * patch
        if not room:
            state.refuse("streaming-unproved", f"the scratch of {name} has no room for a patch")
    if not room:
        return data
    passed = np.empty_like(data)
    for at in range(0, len(data), room):
        piece = data[at : at + room]
        state.arena.write(start, piece, Claim(f"the scratch of {name}", state.index))
        passed[at : at + len(piece)] = state.arena.bytes[start : start + len(piece)]
    return passed
