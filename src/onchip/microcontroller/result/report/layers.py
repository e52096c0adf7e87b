"""The layers on a microcontroller's page: what each does and how much flash it keeps."""

from __future__ import annotations

from typing import Any

from onchip.microcontroller.int8.shapes import macs
from onchip.microcontroller.result.microcontroller import Microcontroller
from onchip.microcontroller.result.report import pictures
from onchip.report.wording import visible

__all__ = ["layer_words"]

MOST_LAYERS = 300


def layer_words(made: Microcontroller) -> dict[str, Any]:
    """Return the rows of all layers: instructions where it ran, else multiply-adds, and bytes of flash."""
    run = made.run
    if run is not None:
        count = {layer.name: run.by_layer[layer.name].instructions for layer in made.model.layers}
        says = (
            f"Instructions of one inference on the emulated {made.board.core}, with the driver's part of each"
            " layer, and the flash of its weights and factors. Cycles are not modelled by an emulator."
        )
    else:
        count = {layer.name: macs(layer) for layer in made.model.layers}
        says = "Multiply-adds and the flash of weights and factors; --run counts instructions."
    flash = made.sources.constant_bytes
    total, most = max(sum(count.values()), 1), max(*count.values(), 1)
    largest = max([*flash.values(), 1])
    layers = made.model.layers
    return {
        "layers_say": says,
        "layer_heading": "multiply-adds" if run is None else "instructions",
        "layers": [
            {
                "name": visible(layer.name),
                "makes": " x ".join(map(str, layer.output_shape[1:])),
                "doing": pictures.share(
                    "instructions", count[layer.name] / most, f"{layer.name}: {count[layer.name]:,}"
                ),
                "count": f"{count[layer.name]:,}",
                "share": f"{100 * count[layer.name] / total:.1f} %",
                "keeping": pictures.share(
                    "flash",
                    flash.get(layer.name, 0) / largest,
                    f"{flash.get(layer.name, 0):,} bytes of flash",
                ),
                "flash": f"{flash.get(layer.name, 0):,}",
            }
            for layer in layers[:MOST_LAYERS]
        ],
        "layers_cut": f"The first {MOST_LAYERS:,} of {len(layers):,}." if len(layers) > MOST_LAYERS else "",
    }
