"""Layers one by one, each output over its input as far as that is safe: vMCU's single-layer kernels."""

from __future__ import annotations

from onchip.microcontroller.compare.lives import Baseline, Lives
from onchip.microcontroller.segments.group import StageChoice, figures

__all__ = ["one_layer_bytes", "overlapped"]


def overlapped(lives: Lives) -> Baseline:
    """The greatest need of any layer, beside whatever else is live then; addresses are not searched."""
    return Baseline(
        "overlap", max(one_layer_bytes(lives, i) for i in range(len(lives.net.layers))), lives.macs
    )


def one_layer_bytes(lives: Lives, i: int) -> int:
    """Bytes while layer i runs, over an operand where that is read for the last time; others beside."""
    layer = lives.net.layers[i]
    made = lives.net.maps[layer.makes].bytes
    operands = tuple(dict.fromkeys(layer.reads))
    held = {t: lives.net.maps[t].bytes for t in operands}
    best = sum(held.values()) + made
    for t in operands:
        if lives.last[t] != i or t in lives.net.network.outputs:
            continue
        for net in (lives.net, lives.net.mirrored()):
            ends = figures(net, [StageChoice((i,))], resident=t, alone=True).span(held[t], made)
            best = min(best, sum(held.values()) - held[t] + ends)
    return best + layer.workspace + lives.beside(i, operands)
