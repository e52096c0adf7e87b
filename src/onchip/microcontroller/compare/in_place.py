"""Whole tensors, depthwise layers in place: TinyEngine's memory without its buffer of one channel's plane."""

from __future__ import annotations

from onchip.microcontroller.compare.lives import Baseline, Lives, greedy_bytes
from onchip.microcontroller.segments.layers import Layer
from onchip.planners.packing import Buffer

__all__ = ["in_place_depthwise", "in_place_steps", "overwrites"]


def overwrites(lives: Lives, layer: Layer, i: int) -> bool:
    """Return whether layer i is depthwise and may overwrite its input with its output, channel by channel."""
    geometry = lives.net.network.operators[layer.operator].geometry
    source = layer.reads[0]
    return (
        geometry is not None
        and geometry.kind == "depthwise"
        and geometry.input[3] == geometry.output[3]
        and lives.net.maps[layer.makes].bytes <= lives.net.maps[source].bytes
        and lives.last[source] == i
        and source not in lives.net.network.outputs
    )


def in_place_depthwise(lives: Lives) -> Baseline:
    """Return greedy offsets of whole tensors, where an output in place shares its input's bytes."""
    holder = {t: t for t in lives.first}
    for i, layer in enumerate(lives.net.layers):
        if overwrites(lives, layer, i):
            holder[layer.makes] = holder[layer.reads[0]]
    end = {root: max(lives.last[t] for t, of in holder.items() if of == root) for root in holder.values()}
    buffers = [
        Buffer(lives.first[t], end[t] + 1, lives.net.maps[t].bytes) for t, of in holder.items() if t == of
    ]
    buffers += [
        Buffer(i, i + 1, layer.workspace) for i, layer in enumerate(lives.net.layers) if layer.workspace
    ]
    return Baseline("in place", greedy_bytes(buffers), lives.macs)


def in_place_steps(lives: Lives) -> list[int]:
    """Return the live bytes while each layer runs."""
    found = []
    for i, layer in enumerate(lives.net.layers):
        operands = tuple(dict.fromkeys(layer.reads))
        made = 0 if overwrites(lives, layer, i) else lives.net.maps[layer.makes].bytes
        held = sum(lives.net.maps[t].bytes for t in operands)
        found.append(held + made + layer.workspace + lives.beside(i, operands))
    return found
