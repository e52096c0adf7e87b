"""Patch fusion with recomputation, as MCUNetV2 and msf-CNN plan it: the first layers run patch by patch.

The map behind the first layers is made in n x n patches. Each patch needs its pyramid of every earlier map,
halo included, which is recomputed for every patch and kept only for its duration. The layers behind run on
whole tensors, depthwise layers in place.
"""

from __future__ import annotations

from collections.abc import Sequence

from onchip.microcontroller.compare.in_place import in_place_steps, overwrites
from onchip.microcontroller.compare.lives import Baseline, Lives
from onchip.microcontroller.segments.chain import Chain
from onchip.microcontroller.segments.drive import bands_of
from onchip.microcontroller.segments.layers import Layer
from onchip.network.windows import Range

__all__ = ["GRIDS", "patched"]

GRIDS = (2, 3, 4, 5, 6, 8)
"""Patches along either side."""


def patched(lives: Lives, *, held: bool = True) -> Baseline:
    """Return the patches, and the layers run by patches, that need the least RAM; then the least work.

    With `held` the input lies in RAM whole; otherwise every patch fetches its reads from elsewhere.
    """
    steps = in_place_steps(lives)
    chain = Chain(lives.net)
    name = "patches" if held else "patches, input not held"
    best = Baseline(name, max(steps), lives.macs)
    for end in chain.cuts[1:]:
        behind = max(steps[end:], default=0)
        for n in GRIDS:
            made = lives.net.maps[lives.net.layers[end - 1].makes]
            if n > min(made.rows, made.columns):
                break
            first, macs = _first_layers(lives, end, n)
            given = lives.net.maps[chain.input].bytes if held else 0
            found = Baseline(name, max(behind, first + given + made.bytes), macs)
            best = min(best, found, key=lambda b: (b.ram_bytes, b.macs))
    return best


def _first_layers(lives: Lives, end: int, n: int) -> tuple[int, int]:
    """Return the bytes of the largest patch through layers [0, end), and all the network's work."""
    layers, maps = lives.net.layers[:end], lives.net.maps
    last = layers[-1].makes
    down = [_pyramid(layers, band, True) for band in bands_of((0, maps[last].rows), -(-maps[last].rows // n))]
    across = [
        _pyramid(layers, band, False)
        for band in bands_of((0, maps[last].columns), -(-maps[last].columns // n))
    ]
    heights = {t: max(_size(lines, t) for lines in down) for t in maps}
    widths = {t: max(_size(lines, t) for lines in across) for t in maps}
    most = 0
    for i, layer in enumerate(layers):
        alive = {t for t in lives.first if lives.first[t] <= i <= lives.last[t] and t != last}
        alive = {t for t in alive if any(t == before.makes for before in layers[: i + 1])}
        bytes_of = {t: heights[t] * widths[t] * maps[t].pixel for t in alive}
        if overwrites(lives, layer, i) and layer.makes in bytes_of:
            del bytes_of[layer.makes]
        most = max(most, sum(bytes_of.values()) + layer.workspace)
    work = sum(
        layer.macs
        * sum(_size(lines, layer.makes) for lines in down)
        * sum(_size(lines, layer.makes) for lines in across)
        for layer in layers
    )
    rest = sum(lives.net.network.operators[layer.operator].work for layer in lives.net.layers[end:])
    return most, work + rest


def _pyramid(layers: Sequence[Layer], lines: Range, rows: bool) -> dict[int, Range]:
    """Return the lines of every tensor that these lines of the last one need."""
    need = {layers[-1].makes: lines}
    for layer in reversed(layers):
        for t, window in zip(layer.reads, layer.rows if rows else layer.columns, strict=True):
            first, end = window.reads(need.get(layer.makes, (0, 0)))
            if first < end:
                low, high = need.get(t, (first, end))
                need[t] = min(low, first), max(high, end)
    return need


def _size(lines: dict[int, Range], tensor: int) -> int:
    first, end = lines.get(tensor, (0, 0))
    return end - first
