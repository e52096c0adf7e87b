"""Concats that move nothing: operands that lie in their output on chip, or contiguously in DRAM.

Both are verified: the bytes already there must equal the output of the operator's kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onchip.base.errors import Mismatch
from onchip.network import Operator
from onchip.run.copies import offsets_of
from onchip.run.state import State

__all__ = ["join", "reserve_around", "write_around"]

Array = np.ndarray[Any, Any]


def join(state: State, name: str) -> None:
    """Run a concat in DRAM. Raises as the machine does."""
    if name in state.groups:
        state.refuse("join-not-concat", f"{name} is a group")
    [op] = state.operators(name)
    if op.id in state.ran:
        state.refuse("already-run", f"{op.name} ran before")
    out = op.outputs[0]
    if out in state.dram.twice:
        shared = state.name(state.dram.twice[out])
        state.refuse("join-twice", f"{shared}, joined by {op.name}, is a part of another join")
    if out not in state.dram.whole or len(op.outputs) != 1:
        state.refuse("join-not-concat", f"the operands of {op.name} cannot lie side by side as its output")
    if out in state.address:
        state.refuse("join-reserved", f"{state.name(out)}, joined in DRAM, has a range")
    for t in dict.fromkeys(state.network.root[t] for t in op.inputs):
        if state.network.tensors[t].kind == "input":
            state.refuse("join-graph-input", f"{state.name(t)} is a graph input: it lies where it was given")
        if t not in state.dram:
            state.refuse("join-no-dram-copy", f"{state.name(t)} has no copy in DRAM")
    at = f"{op.name} ({state.where()})"
    operands = {t: state.value(t, state.dram[state.network.root[t]]) for t in op.inputs}
    for t, value in operands.items():
        state.comparison.same(t, value, f"joined by {at}")
    result = state.kernel(op, operands)[out]
    state.ran.add(op.id)
    state.comparison.follow(op.inputs, op.outputs)
    found = state.value(out, state.dram.joined(out))
    _expect_same(found, result, f"tensor {state.name(out)}, joined by {at}: what lies in DRAM")
    state.comparison.same(out, found, f"joined by {at}")
    state.joined += 1


def reserve_around(
    state: State, t: int, address: int, parts: Sequence[int], memory: str | None = None
) -> None:
    """Reserve a concat's output around operands that lie in it, each exactly at its place."""
    state.expect_new(t)
    producer = state.network.producer[t]
    assert producer is not None
    op = state.network.operators[producer]
    offsets = offsets_of(state.network, state.slots, op)
    if not offsets:
        state.refuse("join-not-concat", f"the operands of {op.name} cannot lie in {state.name(t)}")
    named, scale = {}, state.slots.scale
    for x in parts:
        if x not in offsets:
            state.refuse("overlap-not-input", f"{state.name(x)} is no operand of {op.name}")
        state.expect_whole(x, f"a part of {state.name(t)}")
        named[x] = state.place(address, memory) * scale + offsets[x]
        if state.address[x] != named[x]:
            lies, belongs = state.address[x] // scale, named[x] // scale
            state.refuse("join-place", f"{state.name(x)} lies at {lies:,}, and belongs at {belongs:,}")
    state.reserve(t, address, memory, parts)
    state.parts[t] = named


def write_around(state: State, op: Operator, results: Mapping[int, Array], named: Mapping[int, int]) -> None:
    """Let a concat's output take over the operands `named` (at those bytes of the arena), and write the rest.

    The operands' bytes are not written: the comparison shows that they equal the kernel's output.
    """
    [t] = op.outputs
    start, end = state.slot(t)
    at = f"{op.name} ({state.where()})"
    data = state.to_slot(t, results[t])
    gaps, low = [], start
    for x, place in sorted(named.items(), key=lambda item: item[1]):
        gaps.append((low, place))
        low = place + state.slots.slot[x]
        del state.address[x]
        state.arena.hand_over(place, low, state.claim(t))
        state.in_place += state.slots.slot[x]
    for a, b in (*gaps, (low, end)):
        state.arena.write(a, data[a - start : b - start], state.claim(t))
    found = state.value(t, state.arena.read(start, end))
    _expect_same(found, results[t], f"tensor {state.name(t)}, around whose parts {at} wrote: what lies there")


def _expect_same(found: Array, expected: Array, what: str) -> None:
    a, b = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (found, expected))
    if not np.array_equal(a, b):
        raise Mismatch(f"{what} is not what the operator makes of its operands")
