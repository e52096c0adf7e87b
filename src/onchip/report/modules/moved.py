"""Bytes that a module moves to and from DRAM, naive against planned: Fig. 9 of the simple method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from onchip.planners.modules.table import Row
from onchip.report.modules.axes import LEFT, RIGHT, WIDTH, horizontal
from onchip.report.svg import element, fitted, picture, title
from onchip.report.wording import short_size, visible

__all__ = ["moved"]

PLOT, HEAD, FOOT = 200.0, 22.0, 24.0
WIDEST = 44.0
"""The width of a bar where there are few."""


def moved(rows: Sequence[tuple[int, Row]]) -> Markup:
    """Return two bars a module: weights below, feature maps above; `rows` are (section, row)."""
    most = max([row.naive_fm_bytes + row.weight_bytes for _, row in rows] + [1])
    most = max([most] + [row.fm_bytes + row.weight_bytes for _, row in rows])
    each = min((WIDTH - LEFT - RIGHT) / max(1, len(rows)), WIDEST * 3)
    bar = each * 0.38
    right = LEFT + each * len(rows)

    def y(n: float) -> float:
        return HEAD + PLOT - n / most * PLOT

    def column(x: float, weights: int, maps: int, kind: str, label: str) -> Markup:
        pieces = [
            element("rect", x=x, y=y(high), width=bar, height=y(low) - y(high), class_=f"{role} {kind}")
            for low, high, role in ((0, weights, "r-weights"), (weights, weights + maps, "r-map"))
            if high > low
        ]
        whole = weights + maps
        if bar > 24:
            words = f"{whole / 1024:,.0f}" if whole >= 10 * 1024 else f"{whole / 1024:,.1f}"
            pieces.append(element("text", words, x=x + bar / 2, y=y(whole) - 4, class_="middle small quiet"))
        words = f"{label}: weights {short_size(weights)}, feature maps {short_size(maps)}"
        return element("g", title(words), *pieces)

    def inside() -> Iterator[Markup]:
        yield from horizontal(most, y, LEFT, right)
        for i, (index, row) in enumerate(rows):
            x = LEFT + each * i + each * 0.09
            weights = row.weight_bytes
            name = visible(row.name)
            yield element(
                "g",
                column(x, weights, row.naive_fm_bytes, "naive", f"{name}, every layer through DRAM"),
                column(x + bar + each * 0.04, weights, row.fm_bytes, "planned", f"{name}, as planned"),
                element(
                    "text",
                    fitted(name, each - 3, 11) if each > 44 else "",
                    x=x + each * 0.4,
                    y=HEAD + PLOT + 16,
                    class_="middle",
                ),
                data_module=index,
            )

    return picture(
        max(right + RIGHT, 240),
        HEAD + PLOT + FOOT,
        "Bytes to and from DRAM of each module: every layer through DRAM against the plan",
        inside(),
        whole=False,
    )
