"""The placement problem: a network reduced to the cost of moving tensors and the room for keeping them.

Two sizes for each tensor: `size` is its room in the scratchpad (rounded up to the chip's alignment), `cost`
the bytes of one transfer (exact). Capacity concerns the first, traffic the second.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from onchip.network import Network
from onchip.planners.placement.overwriting import HardestStep, hardest_step, overwritable

__all__ = ["Kept", "Problem"]


@dataclass(frozen=True)
class Kept:
    """The part of a problem that pinning added.

    Operators `begin` and `end` and the tensors behind the network's are not in the network. `pinned`: tensors
    that never leave. `fixed`: address of a tensor's only residency. `state`: (input, output, address) of the
    input's first residency and the output's last. `weights`: the tensor that stands for an operator's pinned
    weights. `forbidden`: a traffic that only plans reach that evict a pinned tensor. `names`: the kept
    tensors and their bytes, for messages.
    """

    begin: int
    end: int
    pinned: frozenset[int]
    fixed: tuple[tuple[int, int], ...]
    state: tuple[tuple[int, int, int], ...]
    weights: tuple[tuple[int, int], ...]
    forbidden: int
    names: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Problem:
    """One network to place. Ids are the network's; views are replaced by their roots and appear nowhere.

    `size`, `cost`: bytes per tensor. `inputs`, `outputs`: tensor ids per operator. `workspace`: bytes per
    operator, rounded up too. `graph_inputs`, `graph_outputs`: bitsets of tensors. `order`: the one allowed
    order, or None if any order that respects the data is. `kept`: the additions for what the user keeps on
    chip (`onchip.planners.placement.pinning`). `overwrites`: per operator the inputs that its one output may
    be written over if they die with it (`--in-place`); empty if nothing may.
    """

    size: tuple[int, ...]
    cost: tuple[int, ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    workspace: tuple[int, ...]
    graph_inputs: int
    graph_outputs: int
    order: tuple[int, ...] | None = None
    kept: Kept | None = None
    overwrites: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, network: Network, alignment: int = 1, *, in_place: bool = False) -> Problem:
        """Return the problem of a network on a chip whose addresses are multiples of `alignment` bytes."""

        def up(n: int) -> int:
            return -(-n // alignment) * alignment

        return cls(
            size=tuple(up(t.bytes) for t in network.tensors),
            cost=tuple(t.bytes for t in network.tensors),
            inputs=network.read_ids,
            outputs=network.write_ids,
            workspace=tuple(up(op.workspace) for op in network.operators),
            graph_inputs=network.input_roots,
            graph_outputs=network.output_roots,
            overwrites=overwritable(network) if in_place else (),
        )

    def in_order(self, order: Iterable[int]) -> Problem:
        """Return the same problem with its operators in this order (of the network's own, or of all)."""
        order = tuple(order)
        if self.kept is not None and len(order) < len(self.inputs):
            order = (self.kept.begin, *order, self.kept.end)
        return replace(self, order=order)

    def name_of(self, tensor: int, network: Network) -> str:
        """Return a tensor's name, for messages; pinned weights go by their operator's."""
        if tensor < len(network.tensors):
            return network.tensors[tensor].name
        operator = dict(self.kept.weights).get(tensor) if self.kept is not None else None
        return "nothing" if operator is None else f"weights of {network.operators[operator].name}"

    @cached_property
    def readers(self) -> tuple[int, ...]:
        """Bitset of the operators that read each tensor."""
        result = [0] * len(self.size)
        for v, tensors in enumerate(self.inputs):
            for t in tensors:
                result[t] |= 1 << v
        return tuple(result)

    def step_bytes(self, operator: int) -> int:
        """Return the scratchpad bytes that `operator` alone needs: inputs, outputs, workspace."""
        tensors = {*self.inputs[operator], *self.outputs[operator]}
        return self.workspace[operator] + sum(self.size[t] for t in tensors)

    @cached_property
    def hardest_step(self) -> HardestStep:
        """The step that decides `minimum_budget`."""
        return hardest_step(self)

    @property
    def minimum_budget(self) -> int:
        """MR: the need of the largest operator. Below it no schedule exists, from it on one does.

        If outputs may be written over inputs, an operator's need depends on earlier operators: then it is the
        least with which some order (or the given one) runs.
        """
        return self.hardest_step.bytes
