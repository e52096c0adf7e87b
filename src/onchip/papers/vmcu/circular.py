"""vMCU's pool as in the paper: circular, in segments, every address taken modulo its size.

Layers run in sequence. Each output starts the layer's distance before its input, so offsets only
fall, and the modulo brings them back: a chain needs no more than its worst layer. Onchip's own plans
alternate forward and reverse instead, which needs the same bytes and no modulo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from onchip.base.errors import ModelError
from onchip.microcontroller.segments.group import StageChoice, figures
from onchip.microcontroller.segments.layers import Layers, layers_of
from onchip.network import Geometry, Network, Operator

__all__ = ["CircularPlan", "Placed", "circular_pool", "segment_bytes"]

Segment = Literal["paper", "byte"]


@dataclass(frozen=True, slots=True)
class Placed:
    """A layer in the pool: its segment, distance and footprint in bytes; where input and output start."""

    operator: str
    segment: int
    distance: int
    footprint: int
    input: int
    output: int


@dataclass(frozen=True, slots=True)
class CircularPlan:
    """A chain of layers in one circular pool of `bytes`."""

    bytes: int
    layers: tuple[Placed, ...]

    def address(self, offset: int) -> int:
        """Return the address in the pool of a byte at this offset: Pool[addr % size]."""
        return offset % self.bytes


def segment_bytes(geometry: Geometry) -> int:
    """Return the paper's rule (5.3) for int8: the smaller row of a matrix, or pixel of a map, in or out."""
    return min(geometry.input[-1], geometry.output[-1])


def circular_pool(network: Network, segment: Segment = "paper") -> CircularPlan:
    """Return every layer of a chain at its distance in whole segments, in a pool of the fewest bytes for all.

    Raises `ModelError` for a network that is no chain: the paper's pool holds one tensor and the next.
    """
    order = [network.operators[i] for i in network.order]
    for before, op in zip([None, *order], order, strict=False):
        reads = [t for t in op.inputs if before is None or t in before.outputs]
        if len(op.inputs) != 1 or len(op.outputs) != 1 or not reads:
            raise ModelError(f"{op.name} reads more than what was made last", where=network.name)
    walks = [_walk(op, segment) for op in order]
    by_id = {op.id: replace(op, geometry=walk) for op, walk in zip(order, walks, strict=True)}
    net = layers_of(replace(network, operators=tuple(by_id[op.id] for op in network.operators)))
    if isinstance(net, str):
        raise ModelError(net, where=network.name)
    return _stacked(net, [op.name for op in order], [_size(walk, segment) for walk in walks])


def _stacked(net: Layers, names: Sequence[str], segments: Sequence[int]) -> CircularPlan:
    found: list[Placed] = []
    at = 0
    for i, (name, size) in enumerate(zip(names, segments, strict=True)):
        layer = net.layers[i]
        (source,), made = layer.reads, layer.makes
        apart = figures(net, [StageChoice((i,))], resident=source).distance
        assert apart is not None  # one strip of one layer always has one
        apart = -(-apart // size) * size
        footprint = max(net.maps[source].bytes + apart, net.maps[made].bytes)
        found.append(Placed(name, size, apart, footprint + layer.workspace, at, at - apart))
        at -= apart
    return CircularPlan(max(layer.footprint for layer in found), tuple(found))


def _walk(op: Operator, segment: Segment) -> Geometry:
    """Return the operator's geometry with writes of one segment at a time."""
    if op.geometry is None or not op.geometry.promises:
        raise ModelError(f"{op.name} states no geometry to plan with")
    g = op.geometry
    return replace(g, traversal="forward", pixels=1, channels=_size(g, segment))


def _size(geometry: Geometry, segment: Segment) -> int:
    return segment_bytes(geometry) if segment == "paper" else 1
