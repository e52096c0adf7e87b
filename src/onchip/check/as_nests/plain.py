"""The nest without loops: every operator once, with all that it reads and makes.

Any group with axes has it. It is taken where the law of nests has no loops that run as the tiling does.
"""

from __future__ import annotations

from collections.abc import Collection

from onchip.network import Network
from onchip.network.axes import GroupAxes
from onchip.plans import Leaf, Nest

__all__ = ["plain_nest"]


def plain_nest(network: Network, axes: GroupAxes, whole: Collection[int]) -> Nest:
    """Return the nest of a group that fetches, makes and stores everything once; `whole` is there already."""
    keep = [
        buffer.name
        for buffer in axes.buffers
        if buffer.tensor is not None
        and buffer.tensor not in whole
        and (buffer.maker is None or leaves(network, axes, buffer.tensor))
    ]
    return Nest(tuple(Leaf(cut.name) for cut in axes.operators), tuple(keep))


def leaves(network: Network, axes: GroupAxes, tensor: int) -> bool:
    """Return whether a tensor that the group makes is read outside, or by nothing, or is an output."""
    readers = network.readers[tensor]
    for cut in axes.operators:
        readers &= ~(1 << cut.operator)
    return bool(readers or not network.readers[tensor] or network.output_roots >> tensor & 1)
