"""The network at a glance: the sizes of weights and feature maps, and their addresses, over the layers.

The first picture is Fig. 1 of the simple method, the second its memory map over all sections; both have the
same steps along them, so that a module's sizes stand above its addresses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from markupsafe import Markup

from onchip.network import bits
from onchip.report.modules.anatomy import Part
from onchip.report.modules.axes import LEFT, RIGHT, WIDTH, Steps, bands, horizontal
from onchip.report.modules.roles import drawable
from onchip.report.steps import Step, Timeline
from onchip.report.svg import element, picture, title
from onchip.report.wording import short_size, visible

__all__ = ["addresses", "layer_sizes", "sizes"]

MAPS, WEIGHTS, GAP = 150.0, 90.0, 6.0
"""Heights: of the feature maps above the axis, of the weights below it, between the two."""

STRIP = 190.0
"""The height of the addresses."""


def layer_sizes(line: Timeline, free: Collection[int]) -> list[tuple[Step, int, int]]:
    """Return (step, bytes of its feature map as stored, bytes of its weights); `free` ones store nothing."""
    net = line.plan.network
    found = []
    for step in line.steps:
        layers = [op for op in step.operators if op not in free]
        written = sum(net.tensors[t].bytes for op in layers for t in bits(net.writes[op]))
        found.append((step, written, sum(net.operators[op].weight_bytes for op in step.operators)))
    return found


def sizes(parts: Sequence[Part], line: Timeline, free: Collection[int]) -> Markup:
    """Return Fig. 1: feature maps upwards, weights downwards by layer, and the memory's size as a line."""
    rows = layer_sizes(line, free)
    budget = line.plan.budget
    steps, top = Steps(0, len(line.steps)), 24.0
    most = max([budget * 9 // 8, *(m for _, m, _ in rows)])
    heaviest = max([budget * 9 // 8, *(w for _, _, w in rows)])
    ground, below = top + MAPS, top + MAPS + GAP

    def up(n: float) -> float:
        return ground - n / most * MAPS

    def down(n: float) -> float:
        return below + n / heaviest * WEIGHTS

    def inside() -> Iterator[Markup]:
        yield from bands(parts, steps, top, MAPS + GAP + WEIGHTS)
        yield from horizontal(most, up, LEFT, WIDTH - RIGHT)
        yield from horizontal(heaviest, down, LEFT, WIDTH - RIGHT, count=3, zero=False)
        for step, size, weights in rows:
            x, wide = steps.x(step.index), steps.wide
            narrow = max(wide * 0.82, wide - 3)
            words = title(
                f"{visible(step.name)}: feature map {short_size(size)}, weights {short_size(weights)}"
            )
            shown = []
            if size:
                shown.append(
                    element("rect", x=x, y=up(size), width=narrow, height=size / most * MAPS, class_="r-map")
                )
            if weights:
                height = weights / heaviest * WEIGHTS
                shown.append(element("rect", x=x, y=below, width=narrow, height=height, class_="r-weights"))
            if shown:
                yield element("g", words, *shown, data_step=step.index)
        for y in (up(budget), down(budget)):
            yield element("path", d=f"M{LEFT:.1f} {y:.1f}H{WIDTH - RIGHT:.1f}", class_="memory")
        label = f"memory {short_size(budget)}"
        yield element("text", label, x=WIDTH - RIGHT - 4, y=up(budget) - 5, class_="end strong halo")
        yield element("text", "feature maps", x=LEFT + 4, y=top + 12, class_="strong halo")
        yield element("text", "weights", x=LEFT + 4, y=below + 12, class_="strong halo")

    return picture(
        WIDTH,
        below + WEIGHTS + 8,
        "Bytes of each layer's feature map and weights, with the memory's size",
        inside(),
    )


def addresses(parts: Sequence[Part], line: Timeline) -> Markup:
    """Return the memory map by section: a module's output keeps its address and changes its role."""
    budget = max(line.plan.budget, line.extent_bytes)
    steps, top = Steps(0, len(line.steps)), 24.0

    def y(n: float) -> float:
        return top + STRIP - n / budget * STRIP

    def inside() -> Iterator[Markup]:
        yield from bands(parts, steps, top, STRIP)
        yield from horizontal(budget, y, LEFT, WIDTH - RIGHT)
        for part in parts:
            for p in drawable(part, line):
                low, high = p.stay.address, p.stay.address + p.stay.size
                yield element(
                    "rect",
                    title(f"{visible(p.stay.name)}: {p.role}, {short_size(p.stay.size)}"),
                    x=steps.x(p.first),
                    y=y(high),
                    width=max(0.4, steps.wide * (p.end - p.first)),
                    height=max(0.4, y(low) - y(high)),
                    class_=f"box r-{p.role}",
                    data_box=p.index,
                )

    return picture(WIDTH, top + STRIP + 8, "Addresses over the steps of the whole network, by role", inside())
