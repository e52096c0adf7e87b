"""The scratchpad's content before a program begins and after it: pinned weights and state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onchip.plans import PinnedWeights, Plan
from onchip.run.caches import buffers_of

__all__ = ["Pinned", "pinned_of"]


@dataclass(frozen=True)
class Pinned:
    """`weights`: operator name to (address, bytes). `first`, `last`: addresses of states' inputs and outputs.

    All are at the plan's sizes; tensors are ids. With a weight scratchpad of their own weights are not here.
    """

    weights: dict[str, tuple[int, int]]
    first: dict[int, int]
    last: dict[int, int]

    def extent(self, plan: Plan) -> int:
        """Return one past the highest byte that is held."""
        return max(self._ends(plan), default=0)

    def _ends(self, plan: Plan) -> Iterator[int]:
        for address, size in self.weights.values():
            yield address + plan.chip.round_up(size)
        for t, address in self.first.items():
            yield address + plan.chip.round_up(plan.network.tensors[t].bytes)
        for buffer in buffers_of(plan).values():
            yield buffer.address + plan.chip.round_up(buffer.bytes)


def pinned_of(plan: Plan) -> Pinned:
    """Return the ranges of the plan's pins and states. Unknown names are left to the checker."""
    network = plan.network
    weights = {}
    if plan.chip.weight_scratchpad_bytes is None:
        for pin in plan.pins:
            if isinstance(pin, PinnedWeights) and pin.operator in network.operator_id:
                op = network.operators[network.operator_id[pin.operator]]
                weights[pin.operator] = (pin.address, op.weight_bytes)
    ids = network.tensor_id
    first = {ids[s.input]: s.address for s in plan.state if s.input in ids}
    last = {ids[s.output]: s.address for s in plan.state if s.output in ids}
    return Pinned(weights, first, last)
