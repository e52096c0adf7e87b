"""Concats that move nothing: operands that lie in their output on chip, or side by side in DRAM.

Both are shown, not assumed: the bytes that are there already must be what the operator's kernel computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from onchip.base.errors import Mismatch
from onchip.network import Network, Operator
from onchip.plans import Join, Plan
from onchip.run.arena import POISON
from onchip.run.slots import Slots

if TYPE_CHECKING:
    from onchip.run.machine import Machine

__all__ = ["Copies", "join", "reserve_around", "write_around"]

Array = np.ndarray[Any, Any]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def _offsets(network: Network, slots: Slots, op: Operator) -> dict[int, int]:
    """Where each operand lies in the output of a concat, in bytes of its slot; empty if they do not add up.

    Only sizes are looked at: whether the operator really puts its operands one after another shows when it
    runs.
    """
    if len(op.outputs) != 1 or any(network.root[t] != t for t in op.inputs):
        return {}
    sizes = [slots.slot[t] for t in op.inputs]
    if sum(sizes) != slots.slot[op.outputs[0]]:
        return {}
    return dict(zip(op.inputs, accumulate(sizes, initial=0), strict=False))


class Copies:
    """The tensors' copies in DRAM. What the program joins lies in one buffer, each part a slice of it."""

    def __init__(self, plan: Plan, slots: Slots) -> None:
        network = plan.network
        self._copies: dict[int, Bytes] = {}
        self._places: dict[int, Bytes] = {}
        self.whole: set[int] = set()
        """Outputs of joins all of whose operands lie in place."""
        self.twice: dict[int, int] = {}
        """By output of a join that has no place: an operand that is a part of another one."""
        part_of: dict[int, tuple[int, int]] = {}
        names = dict.fromkeys(i.operator for i in plan.program if isinstance(i, Join))
        for op in (network.operators[network.operator_id[n]] for n in names if n in network.operator_id):
            offsets = _offsets(network, slots, op)
            shared = next((t for t in offsets if t in part_of), None)
            if shared is not None:
                self.twice[op.outputs[0]] = shared
            elif offsets:
                part_of |= {t: (op.outputs[0], at) for t, at in offsets.items()}
                self.whole.add(op.outputs[0])
        for t in {*part_of, *self.whole}:
            root, at = t, 0
            while root in part_of:
                root, offset = part_of[root]
                at += offset
            if root not in self._places:
                self._places[root] = np.full(slots.slot[root], POISON, np.uint8)
            self._places[t] = self._places[root][at : at + slots.slot[t]]

    def __contains__(self, t: object) -> bool:
        return t in self._copies

    def __getitem__(self, t: int) -> Bytes:
        return self._copies[t]

    def __setitem__(self, t: int, data: Bytes) -> None:
        if t in self._places:
            self._places[t][...] = data
            data = self._places[t]
        self._copies[t] = data

    def __iter__(self) -> Iterator[int]:
        return iter(self._copies)

    def joined(self, t: int) -> Bytes:
        """The output of a join, there from now on: the bytes that its operands have written."""
        self._copies[t] = self._places[t]
        return self._copies[t]


def join(machine: Machine, name: str) -> None:
    """Run a concat in DRAM. Raises as the machine does."""
    if name in machine.groups:
        machine.refuse("join-not-concat", f"{name} is a group")
    [op] = machine.operators(name)
    if op.id in machine.ran:
        machine.refuse("already-run", f"{op.name} ran before")
    out = op.outputs[0]
    if out in machine.dram.twice:
        shared = machine.name(machine.dram.twice[out])
        machine.refuse("join-twice", f"{shared}, joined by {op.name}, is a part of another join")
    if out not in machine.dram.whole or len(op.outputs) != 1:
        machine.refuse("join-not-concat", f"the operands of {op.name} cannot lie side by side as its output")
    if out in machine.address:
        machine.refuse("join-reserved", f"{machine.name(out)}, joined in DRAM, has a range")
    for t in op.inputs:
        if machine.network.tensors[t].kind == "input":
            machine.refuse(
                "join-graph-input", f"{machine.name(t)} is a graph input: it lies where it was given"
            )
        if t not in machine.dram:
            machine.refuse("join-no-dram-copy", f"{machine.name(t)} has no copy in DRAM")
    at = f"{op.name} ({machine.where()})"
    operands = {t: machine.value(t, machine.dram[t]) for t in op.inputs}
    for t, value in operands.items():
        machine.comparison.same(t, value, f"joined by {at}")
    result = machine.kernel(op, operands)[out]
    machine.ran.add(op.id)
    machine.comparison.follow(op.inputs, op.outputs)
    found = machine.value(out, machine.dram.joined(out))
    _expect_same(found, result, f"tensor {machine.name(out)}, joined by {at}: what lies in DRAM")
    machine.comparison.same(out, found, f"joined by {at}")
    machine.joined += 1


def reserve_around(
    machine: Machine, t: int, address: int, parts: Sequence[int], memory: str | None = None
) -> None:
    """Reserve a concat's output around operands that lie in it, each exactly where it belongs."""
    machine.expect_new(t)
    producer = machine.network.producer[t]
    assert producer is not None
    op = machine.network.operators[producer]
    offsets = _offsets(machine.network, machine.slots, op)
    if not offsets:
        machine.refuse("join-not-concat", f"the operands of {op.name} cannot lie in {machine.name(t)}")
    named, scale = {}, machine.slots.scale
    for x in parts:
        if x not in offsets:
            machine.refuse("overlap-not-input", f"{machine.name(x)} is no operand of {op.name}")
        machine.expect_whole(x, f"a part of {machine.name(t)}")
        named[x] = machine.place(address, memory) * scale + offsets[x]
        if machine.address[x] != named[x]:
            lies, belongs = machine.address[x] // scale, named[x] // scale
            machine.refuse("join-place", f"{machine.name(x)} lies at {lies:,}, and belongs at {belongs:,}")
    machine.reserve(t, address, memory, parts)
    machine.parts[t] = named


def write_around(
    machine: Machine, op: Operator, results: Mapping[int, Array], named: Mapping[int, int]
) -> None:
    """Let a concat's output take over the operands `named` (at those bytes of the arena), and write the rest.

    Their bytes are not touched: that they are what the kernel computes is what is shown.
    """
    [t] = op.outputs
    start, end = machine.slot(t)
    at = f"{op.name} ({machine.where()})"
    data = machine.to_slot(t, results[t])
    gaps, low = [], start
    for x, place in sorted(named.items(), key=lambda item: item[1]):
        gaps.append((low, place))
        low = place + machine.slots.slot[x]
        del machine.address[x]
        machine.arena.hand_over(place, low, machine.claim(t))
        machine.in_place += machine.slots.slot[x]
    for a, b in (*gaps, (low, end)):
        machine.arena.write(a, data[a - start : b - start], machine.claim(t))
    found = machine.value(t, machine.arena.read(start, end))
    _expect_same(
        found, results[t], f"tensor {machine.name(t)}, around whose parts {at} wrote: what lies there"
    )


def _expect_same(found: Array, expected: Array, what: str) -> None:
    a, b = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (found, expected))
    if not np.array_equal(a, b):
        raise Mismatch(f"{what} is not what the operator makes of its operands")
