"""Layers one by one, each output over its input as far as it is safe: vMCU's single-layer kernels."""

from __future__ import annotations

from onchip.microcontroller.compare.lives import Baseline, Lives
from onchip.microcontroller.segments.group import StageChoice, figures

__all__ = ["one_layer_bytes", "overlapped"]


def overlapped(lives: Lives) -> Baseline:
    """Return the greatest need of any layer, beside all else that is live; addresses are not searched."""
    return Baseline(
        "overlap", max(one_layer_bytes(lives, i) for i in range(len(lives.net.layers))), lives.macs
    )


def one_layer_bytes(lives: Lives, i: int) -> int:
    """Return the bytes while layer i runs, its output over an operand that no later layer reads."""
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
