"""The live ranges of a network's tensors, and a planning method's result for them: bytes and work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onchip.base.errors import ModelError
from onchip.microcontroller.segments.layers import Layers, layers_of
from onchip.network import Network, bits
from onchip.planners.packing import Buffer

__all__ = ["Baseline", "Lives", "greedy_bytes"]


@dataclass(frozen=True, slots=True)
class Baseline:
    """A network by one method: bytes of RAM for activations and scratch, multiply-accumulates of one run."""

    method: str
    ram_bytes: int
    macs: int


@dataclass(frozen=True)
class Lives:
    """A network's layers in their order; `last[t]` is the last layer that reads tensor t, or the end."""

    net: Layers
    first: dict[int, int]
    last: dict[int, int]

    @classmethod
    def of(cls, network: Network) -> Lives:
        """Return the live ranges; raises `ModelError` for operators that are no layers over maps."""
        net = layers_of(network)
        if isinstance(net, str):
            raise ModelError(net, where=network.source or network.name)
        first = {t.id: 0 for t in network.tensors if t.kind == "input"}
        last = dict.fromkeys(first, 0)
        for i, layer in enumerate(net.layers):
            first[layer.makes] = last[layer.makes] = i
            for t in layer.reads:
                last[t] = i
        for t in bits(network.output_roots):
            last[t] = len(net.layers) - 1
        return cls(net, first, last)

    @property
    def macs(self) -> int:
        """The multiply-accumulates with everything made once."""
        return sum(op.work for op in self.net.network.operators)

    def readers(self, tensor: int) -> list[int]:
        """Return the layers that read a tensor."""
        return [i for i, layer in enumerate(self.net.layers) if tensor in layer.reads]

    def beside(self, layer: int, but: Sequence[int]) -> int:
        """Return the live bytes made before this layer and read by it or later, except `but`."""
        return sum(
            self.net.maps[t].bytes
            for t, born in self.first.items()
            if t not in but and born <= layer <= self.last[t] and t != self.net.layers[layer].makes
        )


def greedy_bytes(buffers: Sequence[Buffer]) -> int:
    """Return the extent if the largest goes first, each to the lowest gap (TFLM's greedy planner)."""
    placed: list[tuple[int, int, Buffer]] = []
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.lower)):
        at = 0
        for start, end, other in sorted(placed, key=lambda item: item[:2]):
            if other.lower < buffer.upper and buffer.lower < other.upper:
                if start - at >= buffer.size:
                    break
                at = max(at, -(-end // buffer.alignment) * buffer.alignment)
        placed.append((at, at + buffer.size, buffer))
    return max((end for _, end, _ in placed), default=0)
