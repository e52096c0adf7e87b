"""Whole tensors, depthwise layers in place: TinyEngine's memory, without its buffers and with them."""

from __future__ import annotations

from onchip.microcontroller.compare.lives import Baseline, Lives, greedy_bytes
from onchip.microcontroller.segments.layers import Layer
from onchip.network import Geometry
from onchip.planners.packing import Buffer

__all__ = ["buffer_bytes", "in_place_depthwise", "in_place_steps", "overwrites", "with_buffers"]


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
    return Baseline("in place", greedy_bytes([*_tensors(lives), *_workspaces(lives)]), lives.macs)


def with_buffers(lives: Lives) -> Baseline:
    """Return the same with TinyEngine's buffers in place of our kernels' workspaces.

    Its scheduler keeps one buffer of each kind (`buffer_bytes`) for the whole network, as large as any layer
    asks for, beside the tensors.
    """
    geometries = (lives.net.network.operators[layer.operator].geometry for layer in lives.net.layers)
    columns, weights = zip(*(buffer_bytes(g) for g in geometries), strict=True)
    bytes_ = greedy_bytes(_tensors(lives)) + max(columns) + max(weights)
    return Baseline("in place, buffers", bytes_, lives.macs)


def buffer_bytes(geometry: Geometry | None) -> tuple[int, int]:
    """Return the bytes that TinyEngine asks for beside a layer's tensors: columns of windows, weights.

    A convolution takes the windows of two pixels in 16 bits, and its weights in 16 bits where the window is
    larger than a pixel. A depthwise layer in place takes 2 bytes for each place of a channel's padded plane.
    """
    match geometry:
        case Geometry(kind="conv"):
            window = geometry.kernel[0] * geometry.kernel[1] * geometry.input[3]
            more = 2 * window * geometry.output[3] if geometry.kernel != (1, 1) else 0
            return 4 * window, more
        case Geometry(kind="depthwise"):
            top, left, bottom, right = geometry.padding
            return 2 * (geometry.input[1] + top + bottom) * (geometry.input[2] + left + right), 0
    return 0, 0


def _workspaces(lives: Lives) -> list[Buffer]:
    return [Buffer(i, i + 1, layer.workspace) for i, layer in enumerate(lives.net.layers) if layer.workspace]


def _tensors(lives: Lives) -> list[Buffer]:
    """Return the tensors' buffers, those in place as one."""
    holder = {t: t for t in lives.first}
    for i, layer in enumerate(lives.net.layers):
        if overwrites(lives, layer, i):
            holder[layer.makes] = holder[layer.reads[0]]
    end = {root: max(lives.last[t] for t, of in holder.items() if of == root) for root in holder.values()}
    return [
        Buffer(lives.first[t], end[t] + 1, lives.net.maps[t].bytes) for t, of in holder.items() if t == of
    ]


def in_place_steps(lives: Lives) -> list[int]:
    """Return the live bytes while each layer runs."""
    found = []
    for i, layer in enumerate(lives.net.layers):
        operands = tuple(dict.fromkeys(layer.reads))
        made = 0 if overwrites(lives, layer, i) else lives.net.maps[layer.makes].bytes
        held = sum(lives.net.maps[t].bytes for t in operands)
        found.append(held + made + layer.workspace + lives.beside(i, operands))
    return found
