"""Fig. 8 and Table 3 beside TinyEngine's own kernels: instructions and accesses in place of time and energy.

Both need a checkout of TinyEngine (`--tinyengine DIR`); without one the page keeps what it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mcu_tinyengine import Beside, beside, columns, random_pointwise
from vmcu_executed import MILLISECONDS, MODEL
from vmcu_fig7 import shapes
from vmcu_networks import layers_of_blocks

from onchip.microcontroller.emulator.counting import Counts
from onchip.microcontroller.int8.model import Conv, Layer
from onchip.microcontroller.kernels.conv import CHUNK, conv, conv_words
from onchip.microcontroller.kernels.use import KernelUse, kernel_for
from onchip.microcontroller.kernels.windows import conv_shape
from onchip.microcontroller.load import int8_model

__all__ = ["PRICES", "fig_8", "table_3_beside"]

PRICES = (0, 1, 2, 4)
"""What a load or store costs beside the instruction that makes it, in instructions."""


KINDS = ("as they are", "unrolled", "rounded as there", "rounded as there, unrolled")
"""Our kernels, and what is changed in them."""


def fig_8(checkout: Path) -> Iterator[str]:
    layers = [random_pointwise(*shape) for shape in shapes()]
    slow = [_rounded_twice(layer) for layer in layers]
    found = {
        kind: beside(given, checkout, ours=ours)
        for kind, (given, ours) in zip(
            KINDS,
            ((layers, kernel_for), (layers, _unrolled), (slow, kernel_for), (slow, _unrolled)),
            strict=True,
        )
    }
    for all_ in found.values():
        _equal(all_)
    yield (
        "| case | layer | onchip: instructions | loads | stores | TinyEngine: instructions | loads | stores "
        "| of which columns |"
    )
    yield f"|--:|---|{'--:|' * 7}"
    plain = found[KINDS[0]]
    for i, (layer, one) in enumerate(zip(layers, plain, strict=True), 1):
        beforehand = columns(layer, checkout).instructions / one.theirs.instructions
        counts = " | ".join(
            f"{n:,}" for c in (one.ours, one.theirs) for n in (c.instructions, c.loads, c.stores)
        )
        yield f"| {i} | {layer.name.replace('>', ' > ')} | {counts} | {beforehand:.1%} |"
    yield ""
    yield f"| case | fewer instructions: {' | '.join(KINDS)} | fewer accesses, as they are |"
    yield "|--:|--:|--:|--:|--:|--:|"
    for i, each in enumerate(zip(*found.values(), strict=True), 1):
        shares = [_saved(one, 0) for one in each]
        shares.append(1 - _accesses(each[0].ours) / _accesses(each[0].theirs))
        yield f"| {i} | {' | '.join(f'{share:.1%}' for share in shares)} |"
    yield ""
    yield f"| a load or store costs, beside its instruction | saved: {' | '.join(KINDS)} | paper |"
    yield "|---|--:|--:|--:|--:|--:|"
    for price in PRICES:
        cells = " | ".join(_range([_saved(one, price) for one in all_]) for all_ in found.values())
        paper = "20.6-53.0 % of the energy" if price else "18.5-40.0 % of the latency"
        yield f"| {price} instructions | {cells} | {paper} |"


def _unrolled(layer: Layer) -> KernelUse:
    """Return a convolution's kernel with all of its reduction in one turn, which the paper names."""
    assert isinstance(layer, Conv)
    shape = replace(conv_shape(layer), unroll=layer.input_shapes[0][3] // 4)
    name = f"unrolled_{shape.channels}_{shape.pixels}_{shape.scale}"
    return KernelUse(conv(name, shape), tuple(conv_words(layer)), 0, shape.pixels, CHUNK)


def _rounded_twice(layer: Conv) -> Conv:
    """Return the layer with a first channel whose sums are so large that our kernel scales all channels in
    the long form: saturated and rounded twice, as TinyEngine's does."""
    bias, multiplier, shift = layer.bias.copy(), layer.multiplier.copy(), layer.shift.copy()
    bias[0], multiplier[0], shift[0] = (1 << 30) + (1 << 24), 1 << 30, -24
    return replace(layer, bias=bias, multiplier=multiplier, shift=shift)


def table_3_beside(checkout: Path) -> Iterator[str]:
    model = int8_model(MODEL)
    blocks = list(layers_of_blocks(MODEL))
    found = beside([model.layer[name] for _, names in blocks for name in names], checkout)
    _equal(found)
    by_name = {one.layer.name: one for one in found}
    yield (
        "| block | onchip: instructions | loads | stores | TinyEngine: instructions | loads | stores "
        "| TinyEngine / onchip: instructions | accesses | paper, ms |"
    )
    yield f"|---|{'--:|' * 9}"
    ratios: list[tuple[float, float, float]] = []
    for name, names in blocks:
        ours = sum((by_name[layer].ours for layer in names), Counts())
        theirs = sum((by_name[layer].theirs for layer in names), Counts())
        vmcu, tiny = MILLISECONDS[name]
        ratio = theirs.instructions / ours.instructions, _accesses(theirs) / _accesses(ours), tiny / vmcu
        ratios.append(ratio)
        counts = " | ".join(f"{n:,}" for c in (ours, theirs) for n in (c.instructions, c.loads, c.stores))
        yield f"| {name} | {counts} | {' | '.join(f'{r:.2f}' for r in ratio)} |"
    means = (sum(column) / len(ratios) for column in zip(*ratios, strict=True))
    yield f"| mean | | | | | | | {' | '.join(f'{mean:.2f}' for mean in means)} |"


def _equal(found: Sequence[Beside]) -> None:
    for one in found:
        if not one.equal:
            raise SystemExit(f"{one.layer.name}: the outputs of both kernels differ")


def _accesses(counts: Counts) -> int:
    return counts.loads + counts.stores


def _saved(one: Beside, price: int) -> float:
    """Return the share saved where a load or store costs so many instructions beside its own."""
    ours, theirs = (c.instructions + price * _accesses(c) for c in (one.ours, one.theirs))
    return 1 - ours / theirs


def _range(shares: Sequence[float]) -> str:
    return f"{min(shares):.1%} to {max(shares):.1%}"
