"""The tensors' copies in DRAM, and the places of a concat's operands in its output."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import numpy as np

from onchip.network import Network, Operator
from onchip.plans import Join, Plan
from onchip.run.arena import POISON
from onchip.run.slots import Slots

__all__ = ["Copies", "offsets_of"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def offsets_of(network: Network, slots: Slots, op: Operator) -> dict[int, int]:
    """Return each operand's place in the output of a concat, in bytes of its slot; empty if sizes do not add
    up.

    Only sizes are examined: the run shows whether the operator really concatenates its operands in order.
    """
    if len(op.outputs) != 1 or any(network.root[t] != t for t in op.inputs):
        return {}
    sizes = [slots.slot[t] for t in op.inputs]
    if sum(sizes) != slots.slot[op.outputs[0]]:
        return {}
    return dict(zip(op.inputs, accumulate(sizes, initial=0), strict=False))


def roots_in(network: Network, slots: Slots, op: Operator) -> dict[int, int]:
    """Return the same for tensors whose views are operands: empty if those are not all of them, in order."""
    sizes = [slots.slot[t] for t in op.inputs]
    if len(op.outputs) != 1 or sum(sizes) != slots.slot[op.outputs[0]]:
        return {}
    found: dict[int, int] = {}
    covered: dict[int, int] = {}
    for t, at in zip(op.inputs, accumulate(sizes, initial=0), strict=False):
        root = network.root[t]
        if found.setdefault(root, at - slots.offset[t]) != at - slots.offset[t]:
            return {}
        covered[root] = covered.get(root, 0) + slots.slot[t]
    return found if all(size == slots.slot[root] for root, size in covered.items()) else {}


class Copies:
    """The tensors' copies in DRAM. Joined tensors lie in one buffer, each part a slice of it."""

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
        joins = [network.operators[network.operator_id[n]] for n in names if n in network.operator_id]
        for op in sorted(joins, key=lambda op: -len(op.inputs)):
            offsets = roots_in(network, slots, op)
            shared = next((t for t in offsets if t in part_of), None)
            longer = part_of[shared][0] if shared is not None else None
            begins = longer is not None and all(part_of.get(t) == (longer, at) for t, at in offsets.items())
            if longer is not None and begins and part_of.get(op.outputs[0], (longer, 0)) == (longer, 0):
                part_of[op.outputs[0]] = longer, 0
                self.whole.add(op.outputs[0])
            elif shared is not None:
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
        """Return the output of a join, which exists from now on: the bytes that its operands have written."""
        self._copies[t] = self._places[t]
        return self._copies[t]
