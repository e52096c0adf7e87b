"""A group as it runs: its operators in order, its tensors, their readers, and the escaping ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onchip.base.errors import InputError
from onchip.network import Operator, bits, mask
from onchip.network.maps import Maps
from onchip.run.onnx_engine import OnnxEngine
from onchip.run.tiled.chain import Chain
from onchip.run.tiled.maps import Map, map_of
from onchip.run.tiled.nodes import ELEMENTS, chain_or_nodes

__all__ = ["GroupShape", "group_shape"]


@dataclass(frozen=True)
class GroupShape:
    """`maps` and `width` (planned bytes of an element) by tensor id; `external` come from DRAM, `escaping`
    go there."""

    name: str
    chains: tuple[Chain, ...]
    maps: dict[int, Map]
    width: dict[int, int]
    external: tuple[int, ...]
    escaping: tuple[int, ...]

    @cached_property
    def tensors(self) -> tuple[int, ...]:
        """External inputs, then the operators' outputs, in order."""
        return (*self.external, *(c.output for c in self.chains))

    @cached_property
    def maker(self) -> dict[int, Chain]:
        return {c.output: c for c in self.chains}

    @cached_property
    def readers(self) -> dict[int, tuple[Chain, ...]]:
        return {t: tuple(c for c in self.chains if t in c.reads) for t in self.tensors}

    @cached_property
    def images(self) -> int:
        return self.maps[self.tensors[0]].images


def group_shape(engine: OnnxEngine, name: str, operators: Sequence[Operator]) -> GroupShape:
    """Return the group; raises `InputError` naming the operator or tensor that cannot be run in parts."""
    network, slots = engine.network, engine.slots
    known = Maps(network)
    images = known.batch is not None
    maps: dict[int, Map] = {}
    width: dict[int, int] = {}
    for t in dict.fromkeys(t for op in operators for t in (*op.inputs, *op.outputs)):
        found, item = map_of(_extents(engine, known, t), images=images), f"tensor {network.tensors[t].name}"
        if found is None:
            raise InputError("cannot be run in tiles: it is neither a map nor a matrix", item=item)
        if network.tensors[t].patches is not None:
            raise InputError("cannot be run in tiles: it lies in patches", item=item)
        maps[t], (width[t], rest) = found, divmod(network.tensors[t].bytes, found.size)
        if rest:
            raise InputError("cannot be run in tiles: its elements take no whole bytes", item=item)
    if len({m.images for m in maps.values()}) > 1:
        raise InputError("cannot be run in tiles: its tensors differ in images", item=f"group {name}")
    chains = tuple(chain_or_nodes(engine, op, known, maps) for op in operators)
    for chain in chains:
        for t in (*chain.reads, chain.output):
            dtype = slots.dtype[t]
            if dtype.kind not in ELEMENTS.get(chain.kind, "f") or dtype == np.float16:
                item = f"tensor {network.tensors[t].name}"
                raise InputError(f"cannot be run in tiles: its elements are {dtype}", item=item)
    written = [t for op in operators for t in op.outputs]
    members = mask(op.id for op in operators)
    return GroupShape(
        name,
        chains,
        maps,
        width,
        tuple(dict.fromkeys(t for op in operators for t in op.inputs if t not in written)),
        tuple(
            t
            for t in written
            if not network.readers[t] or network.readers[t] & ~members or network.output_roots >> t & 1
        ),
    )


def _extents(engine: OnnxEngine, known: Maps, t: int) -> tuple[int, ...]:
    """A tensor's shape as its producer's geometry states it, or for a graph input its first reader's.

    In a network with images, a matrix with a leading 1 is what it is itself, and so are maps of which a
    geometry only states a matrix of all rows: neither has rows that are images.
    """
    network, shape = engine.network, engine.slots.shape[t]
    producer = network.producer[t]
    if producer is not None:
        geometry = network.operators[producer].geometry
        stated = () if geometry is None else geometry.output
    else:
        reader = next(bits(network.readers[t]), None)
        geometry = None if reader is None else network.operators[reader].geometry
        stated = () if geometry is None or not geometry.promises else geometry.input
    if known.batch is not None:
        leading = len(stated) != 4 and len(shape) == 3 and shape[0] == 1
        if leading or (len(stated) == 2 and stated[0] != known.batch):
            return shape
    return stated if stated and math.prod(stated) == math.prod(shape) else shape
