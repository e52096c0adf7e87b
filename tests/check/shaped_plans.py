"""Random plans of groups in tiles whose tensors state their shapes, so that every operator has a reach."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tiled_plans import plan_of, random_blocks, random_tiled

from map_networks import MapNetwork
from onchip.network import Network, OperatorSpec
from onchip.plans import Plan

__all__ = ["shaped", "shaped_blocks_plan", "shaped_tiled_plan"]


def shaped(drawn: MapNetwork) -> MapNetwork:
    """The same network, with the shape of every tensor as its maker, or its reader, lays it out."""
    network = drawn.network
    layouts = {op.geometry.layout for op in network.operators if op.geometry}
    shapes = {}
    for t in network.tensors:
        c, h, w = drawn.shapes[t.name]
        maker = network.producer[t.id]
        geometry = None if maker is None else network.operators[maker].geometry
        if geometry is not None and len(geometry.output) == 2:
            shapes[t.name] = (drawn.images, c)
        else:
            shapes[t.name] = (drawn.images, h, w, c) if "NHWC" in layouts else (drawn.images, c, h, w)
    names = [t.name for t in network.tensors]
    specs = [
        OperatorSpec(
            op.name, op.type, [names[t] for t in op.inputs], [names[t] for t in op.outputs],
            op.weight_bytes, op.workspace, op.geometry,
        )
        for op in network.operators
    ]  # fmt: skip
    rows = [(t.name, t.bytes, t.kind) for t in network.tensors]
    outputs = [names[t] for t in network.outputs]
    return replace(drawn, network=Network.build("maps", rows, specs, outputs, shapes=shapes))


def shaped_tiled_plan(rng: Random) -> Plan:
    """A legal plan with a group in bands."""
    tiled, alignment = random_tiled(rng)
    return plan_of(replace(tiled, drawn=shaped(tiled.drawn)), alignment)


def shaped_blocks_plan(rng: Random) -> Plan:
    """A legal plan with a group in blocks."""
    found, alignment = random_blocks(rng)
    return plan_of(replace(found, drawn=shaped(found.drawn)), alignment)
