"""Operands of a nest that lie whole in ranges of their own, outside its scratch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from onchip.network.axes import Buffer
from onchip.run.state import State
from onchip.run.tiled.nests.dram import part_of
from onchip.run.tiled.nests.lives import NOTHING, Life

__all__ = ["finish_whole", "lies_under", "whole_lives"]

Array = np.ndarray[Any, Any]


def whole_lives(
    state: State, name: str, buffers: Sequence[Buffer], whole: Collection[int]
) -> dict[int, Life]:
    """Return the lives of the operands of group `name` that do not stream; refuses absent ones."""
    at = f"{name} ({state.where()})"
    found: dict[int, Life] = {}
    for b in sorted(whole):
        buffer = buffers[b]
        t = buffer.tensor
        assert t is not None
        if buffer.maker is None:
            state.expect_whole(t, f"read by {at}", "input-")
            state.comparison.same(t, state.value(t, state.arena.read(*state.slot(t))), f"read by {at}")
            found[b] = _life(state, buffer, None)
            continue
        if t not in state.address:
            state.refuse("output-not-reserved", f"{state.name(t)}, written by {name}, has no range")
        if t in state.parts:
            state.refuse("join-not-concat", f"{name} is a group, and joins nothing")
        under = state.over.get(t)
        owners = () if under is None else (state.owner(under),)
        state.expect_owner(*state.slot(t), state.owner(t), f"reserved for {at}", *owners)
        found[b] = _life(state, buffer, np.full(buffer.sides, NOTHING, np.uint8))
    for b, life in found.items():
        t = buffers[b].tensor
        if t is not None and t in state.over:
            below = [x for x in found if buffers[x].tensor == state.over[t]]
            _share(state, buffers, b, life, {x: found[x] for x in below})
    return found


def _life(state: State, buffer: Buffer, states: Array | None) -> Life:
    """Return the life of an operand in its range."""
    t = buffer.tensor
    assert t is not None
    layout, (start, end) = state.slots.layout[t], state.slot(t)
    cells = state.arena.bytes[start:end][: layout.count * layout.pitch].reshape(layout.count, -1)
    data = part_of(cells[:, : layout.dtype.itemsize].view(layout.dtype)[:, 0], buffer, state)
    assert np.shares_memory(data, state.arena.bytes)
    region = [(0, size) for size in buffer.sides]
    return Life(state, buffer.name, region, data, states, None, state.claim(t))


def _share(state: State, buffers: Sequence[Buffer], b: int, life: Life, below: Mapping[int, Life]) -> None:
    """Record for every byte that an output and the operands below it share whether it was written over."""
    tensors = {buffers[x].tensor for x in (b, *below)}
    slots = [state.slot(t) for t in tensors if t is not None]
    first = min(start for start, _ in slots)
    gone = np.zeros(max(end for _, end in slots) - first, np.bool_)
    for x, other in ((b, life), *below.items()):
        t = buffers[x].tensor
        assert t is not None
        layout, at = state.slots.layout[t], state.slot(t)[0] - first
        cells = gone[at : at + layout.count * layout.pitch].reshape(layout.count, -1)
        parts = [part_of(cells[:, i], buffers[x], state) for i in range(layout.pitch)]
        if x == b:
            other.marks = parts
        else:
            other.gone = parts


def lies_under(state: State, buffers: Sequence[Buffer], whole: Collection[int]) -> dict[int, int]:
    """Return the whole inputs that lie where an output does, the same element at the same address."""
    outputs = {buffers[b].tensor: b for b in whole if buffers[b].maker is not None}
    found = {}
    for t, b in outputs.items():
        if t is None or t not in state.over:
            continue
        over = state.over[t]
        for x in whole:
            one, other = buffers[x], buffers[b]
            alike = (one.sides, one.whole, one.element) == (other.sides, other.whole, other.element)
            if one.tensor == over and alike and state.slot(t) == state.slot(over):
                found[x] = b
    return found


def finish_whole(state: State, name: str, buffers: Sequence[Buffer], whole: Collection[int]) -> None:
    """Complete the outputs made in place; the operands below them release the bytes that are left."""
    for b in sorted(whole):
        t = buffers[b].tensor
        if buffers[b].maker is None or t is None:
            continue
        state.arena.hand_over(*state.slot(t), state.claim(t))
        if t in state.over:
            state.give_back(state.over.pop(t))
        value = state.value(t, state.arena.read(*state.slot(t)))
        state.comparison.same(t, value, f"written by {name} ({state.where()})")
