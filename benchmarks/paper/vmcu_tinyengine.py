"""Fig. 8 and Table 3 beside TinyEngine's own kernels: instructions and accesses in place of time and energy.

Both need a checkout of TinyEngine (`--tinyengine DIR`); without one the page keeps what it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
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


KINDS = (
    "as they are",
    "unrolled",
    "rounded as there",
    "rounded as there, unrolled",
    "floating there",
    "floating there, unrolled",
)
"""What is changed: our kernels, or for the last two TinyEngine's, which then scale in floating point."""


def fig_8(checkout: Path) -> Iterator[str]:
    layers = [random_pointwise(*shape) for shape in shapes()]
    slow = [_rounded_twice(layer) for layer in layers]
    found: dict[str, list[Beside]] = {}
    for kind in KINDS:
        given = slow if kind.startswith("rounded") else layers
        ours = _unrolled if kind.endswith("unrolled") else kernel_for
        found[kind] = beside(given, checkout, ours=ours, floats=kind.startswith("floating"))
        if kind.startswith("floating"):  # onchip's kernels as they are built otherwise, without the FPU
            plain = found["unrolled" if kind.endswith("unrolled") else KINDS[0]]
            pairs = zip(plain, found[kind], strict=True)
            found[kind] = [replace(other, ours=one.ours) for one, other in pairs]
        else:
            _equal(found[kind])
    counted = "instructions | loads | stores"
    yield (
        f"| case | layer | onchip: {counted} | TinyEngine: {counted} | columns, of its instructions "
        f"| of its loads and stores | in floating point: {counted} | bytes that differ |"
    )
    yield f"|--:|---|{'--:|' * 12}"
    for i, (one, other) in enumerate(zip(found[KINDS[0]], found[KINDS[4]], strict=True), 1):
        assert isinstance(one.layer, Conv)
        beforehand = columns(one.layer, checkout)
        shares = (
            beforehand.instructions / one.theirs.instructions,
            _accesses(beforehand) / _accesses(one.theirs),
        )
        first, second, third = (
            f"{c.instructions:,} | {c.loads:,} | {c.stores:,}" for c in (one.ours, one.theirs, other.theirs)
        )
        wrong = other.different / prod(one.layer.output_shape)
        yield (
            f"| {i} | {one.layer.name.replace('>', ' > ')} | {first} | {second} "
            f"| {shares[0]:.1%} | {shares[1]:.1%} | {third} | {wrong:.1%} |"
        )
    yield ""
    yield f"| case | fewer instructions: {' | '.join(KINDS)} | fewer accesses, as they are |"
    yield f"|--:|{'--:|' * 7}"
    for i, each in enumerate(zip(*found.values(), strict=True), 1):
        shares = [_saved(one, 0) for one in each]
        shares.append(1 - _accesses(each[0].ours) / _accesses(each[0].theirs))
        yield f"| {i} | {' | '.join(f'{share:.1%}' for share in shares)} |"
    yield ""
    yield f"| a load or store costs, beside its instruction | saved: {' | '.join(KINDS)} | paper |"
    yield f"|---|{'--:|' * 7}"
    for price in PRICES:
        cells = " | ".join(_range([_saved(one, price) for one in all_]) for all_ in found.values())
        paper = "20.6-53.0 % of the energy" if price else "18.5-40.0 % of the latency"
        yield f"| {price} instructions | {cells} | {paper} |"


def _unrolled(layer: Layer) -> KernelUse:
    """Return a convolution's kernel with all of its reduction in one turn, which the paper names."""
    assert isinstance(layer, Conv)
    shape = replace(conv_shape(layer), unroll=layer.input_shapes[0][3] // 4)
    name = f"unrolled_{shape.channels}_{shape.pixels}_{shape.scale}"
    return KernelUse(conv(name, shape), tuple(conv_words(layer, shape)), 0, shape.pixels, CHUNK)


def _rounded_twice(layer: Conv) -> Conv:
    """Return the layer with a first channel whose sums are so large that our kernel scales all channels in
    the long form: saturated and rounded twice, as TinyEngine's does."""
    bias, multiplier, shift = layer.bias.copy(), layer.multiplier.copy(), layer.shift.copy()
    bias[0], multiplier[0], shift[0] = (1 << 30) + (1 << 24), 1 << 30, -24
    return replace(layer, bias=bias, multiplier=multiplier, shift=shift)


def table_3_beside(checkout: Path) -> Iterator[str]:
    model = int8_model(MODEL)
    blocks = list(layers_of_blocks(MODEL))
    layers = [model.layer[name] for _, names in blocks for name in names]
    found = {floats: beside(layers, checkout, floats=floats) for floats in (False, True)}
    _equal(found[False])
    by_name = {floats: {one.layer.name: one for one in all_} for floats, all_ in found.items()}
    counted = "instructions | loads | stores"
    yield (
        f"| block | onchip: {counted} | TinyEngine: {counted} | in floating point: instructions "
        "| TinyEngine / onchip: instructions | accesses | floating: instructions | the paper's, of ms |"
    )
    yield f"|---|{'--:|' * 11}"
    ratios: list[tuple[float, ...]] = []
    for name, names in blocks:
        ours, theirs, floating = (
            sum((getattr(by_name[floats][layer], side) for layer in names), Counts())
            for floats, side in ((False, "ours"), (False, "theirs"), (True, "theirs"))
        )
        vmcu, tiny = MILLISECONDS[name]
        ratios.append(
            (
                theirs.instructions / ours.instructions,
                _accesses(theirs) / _accesses(ours),
                floating.instructions / ours.instructions,
                tiny / vmcu,
            )
        )
        counts = " | ".join(f"{n:,}" for c in (ours, theirs) for n in (c.instructions, c.loads, c.stores))
        cells = " | ".join(f"{ratio:.2f}" for ratio in ratios[-1])
        yield f"| {name} | {counts} | {floating.instructions:,} | {cells} |"
    means = (sum(column) / len(ratios) for column in zip(*ratios, strict=True))
    yield f"| mean | | | | | | | | {' | '.join(f'{mean:.2f}' for mean in means)} |"


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
