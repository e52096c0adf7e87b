"""A fusion problem: the inputs of the cost model from a network, a chip and the options.

Tensors with a known map [images, channels, rows, columns] and operators with known windows over them can run
in bands of rows; every other operator is *opaque*: it runs alone, whole or in boxes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal

from onchip.base.units import MAX_BYTES
from onchip.check.streaming import streaming_scratch
from onchip.machines.chip import Chip
from onchip.network import Network, Operator, bits, mask
from onchip.network.access import Access, Form, Operand, access_of
from onchip.network.maps import Map, Maps
from onchip.planners.fusion.boxes import Boxed, box_ways
from onchip.planners.fusion.options import FusionOptions

__all__ = ["FusedOperator", "FusionProblem"]

CHANNEL_TILE = 16
"""T_c of a chip that states no array of processing elements."""

MOST_STREAMED = 8
"""The most operands of an operator with a workspace, of which all sets are tried."""


@dataclass(frozen=True, slots=True)
class FusedOperator:
    """One operator as fusion sees it.

    `access` is the dependence of its outputs on its operands, None for an opaque operator. `outputs` are root
    tensors. `weight_bytes` are all its weights, `tile_bytes` those of one channel tile of inputs and outputs.
    `boxes` are the ways in which an opaque operator runs in boxes of its output, `streams` the sets of
    operands (bitsets) that can pass through its workspace; if `thinned`, there may be better ones. An
    operator with an access and a reach has boxes, too, unless it runs in blocks.
    """

    id: int
    access: Access | None
    outputs: tuple[int, ...]
    weight_bytes: int
    tile_bytes: int
    boxes: tuple[Boxed, ...] = ()
    streams: tuple[int, ...] = ()
    thinned: bool = False

    @property
    def form(self) -> Form | Literal["opaque"]:
        """The dependence of an output channel on input channels; `opaque` if it is not known."""
        return "opaque" if self.access is None else self.access.form

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands; none for an opaque operator."""
        return () if self.access is None else self.access.operands

    @property
    def windowed(self) -> bool:
        """True if it may run in blocks of its output."""
        return self.access is not None and self.access.windowed


@dataclass(frozen=True)
class FusionProblem:
    """The arrays of a fusion problem: `maps` by tensor id (None: unknown), `operators` by operator id.

    `batch` is N, `budget` the scratchpad in bytes (B), `channel_tile` T_c, `least_rows` T_h; `least_columns`
    is T_w, for which only the methods of other fusers ask. In a buffer with parts, feature maps take at most
    `maps_budget` bytes and weights `weights_budget`. In nests a sum that is not complete takes `accumulator`
    bytes.
    """

    network: Network
    options: FusionOptions
    budget: int
    alignment: int
    batch: int
    channel_tile: int
    least_rows: int
    maps: tuple[Map | None, ...]
    operators: tuple[FusedOperator, ...]
    maps_budget: int = MAX_BYTES
    weights_budget: int = MAX_BYTES
    accumulator: int | None = None
    least_columns: int = 1

    @classmethod
    def of(cls, network: Network, chip: Chip, options: FusionOptions, budget: int) -> FusionProblem:
        """Return the problem of fusing `network` (at batch N) on `chip` within `budget` scratchpad bytes."""
        least_rows, least_columns, tile = getattr(chip, "tile", (1, 1, CHANNEL_TILE))
        tile = options.channel_tile or tile
        maps = Maps(network)
        operators = []
        for op in network.operators:
            outputs = tuple(bits(network.writes[op.id]))
            access = None if op.workspace else access_of(maps, op.id)
            if access is None or isinstance(access, str):
                ways = box_ways(network, op, chip.alignment_bytes, *_parts(chip))
                opaque = FusedOperator(op.id, None, outputs, op.weight_bytes, 0)
                streams, every = _streams(network, op)
                thinned = not (ways.complete and every)
                operators.append(replace(opaque, boxes=ways.boxes, streams=streams, thinned=thinned))
                continue
            tiled = access.kernel.part(op.weight_bytes, tile, tile)
            known = FusedOperator(op.id, access, outputs, op.weight_bytes, tiled)
            if op.reach is not None and not access.windowed:
                ways = box_ways(network, op, chip.alignment_bytes, *_parts(chip))
                known = replace(known, boxes=ways.boxes, thinned=not ways.complete)
            operators.append(known)
        return cls(
            network,
            options,
            budget,
            chip.alignment_bytes,
            maps.batch or 1,
            tile,
            max(1, least_rows),
            tuple(maps.of(t.id) if network.root[t.id] == t.id else None for t in network.tensors),
            tuple(operators),
            *_parts(chip),
            accumulator=chip.accumulator_bytes,
            least_columns=max(1, least_columns),
        )

    def round_up(self, size: int) -> int:
        """Return `size` bytes rounded up to the alignment."""
        return -(-size // self.alignment) * self.alignment

    @property
    def maps_room(self) -> int:
        """Bytes that the buffers of feature maps may take."""
        return min(self.budget, self.maps_budget)

    def weights_room(self, maps: int) -> int:
        """Return the bytes that weights may take beside feature maps of `maps` bytes."""
        return min(self.budget - maps, self.weights_budget)

    def misses(self, needs: int) -> int:
        """Return the budget, or the part of it, that `needs` bytes exceed."""
        parts = (self.budget, self.maps_budget, self.weights_budget)
        return next((part for part in parts if part < needs), self.budget)

    def channels_at_a_time(self, tensor: int) -> int:
        """Return the channels of a map that are in the scratch when it is streamed: min(T_c, C)."""
        shape = self.maps[tensor]
        assert shape is not None
        return min(self.channel_tile, shape.channels)

    @cached_property
    def position(self) -> tuple[int, ...]:
        """For each operator, its place in the network's order."""
        result = [0] * len(self.operators)
        for i, v in enumerate(self.network.order):
            result[v] = i
        return tuple(result)

    def external(self, members: int) -> int:
        """Return the bitset of the tensors that a group reads and does not write."""
        read = written = 0
        for v in bits(members):
            read |= self.network.reads[v]
            written |= self.network.writes[v]
        return read & ~written

    def escaping(self, members: int) -> int:
        """Return the bitset of a group's tensors that are read outside, are outputs, or are never read."""
        result = 0
        for v in bits(members):
            for t in bits(self.network.writes[v]):
                readers = self.network.readers[t]
                if not readers or readers & ~members or self.network.output_roots >> t & 1:
                    result |= 1 << t
        return result

    def crossing_bytes(self, members: int) -> int:
        """Return the bytes of all images of a group's external inputs and escaping outputs, each once."""
        return sum(
            self.network.tensors[t].bytes for t in bits(self.external(members) | self.escaping(members))
        )

    @property
    def executable(self) -> bool:
        """True if the options describe something that a machine can run."""
        o = self.options
        return o.batch_weights != "shared" and o.weight_tile and o.halo != "recompute"


def _streams(network: Network, op: Operator) -> tuple[tuple[int, ...], bool]:
    """Return the sets of operands that can pass through an operator's workspace, and whether they are all."""
    if not op.workspace:
        return (), True
    operands = tuple(bits(network.reads[op.id] | network.writes[op.id]))
    if len(operands) > MOST_STREAMED:
        return (), False
    found = []
    for count in range(1, len(operands) + 1):
        for some in combinations(operands, count):
            if streaming_scratch(network, op.id, some) <= op.workspace:
                found.append(mask(some))
    return tuple(found), True


def _parts(chip: Chip) -> tuple[int, int]:
    """Return the bytes for feature maps and for weights on a chip with a buffer in parts.

    An output is the next operator's input in place, so the buffers for inputs and for outputs swap their
    roles from one operator to the next, and only their sum is a bound.
    """
    if chip.buffer is None:
        return MAX_BYTES, MAX_BYTES
    return chip.buffer.input_bytes + chip.buffer.output_bytes, chip.buffer.weight_bytes
