"""The common parts of the figures: width, the steps along it, ticks in powers of two, the modules' bands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from onchip.report.modules.anatomy import Part
from onchip.report.svg import element, fitted, title
from onchip.report.wording import short_size

__all__ = ["LEFT", "RIGHT", "WIDTH", "Steps", "bands", "horizontal", "ticks"]

WIDTH, LEFT, RIGHT = 1340.0, 66.0, 8.0
"""The width of every figure, in pixels of a page of that width, and the margins at its sides."""


@dataclass(frozen=True)
class Steps:
    """The steps [first, end) from `left` to `right`."""

    first: int
    end: int
    left: float = LEFT
    right: float = WIDTH - RIGHT

    @property
    def wide(self) -> float:
        """One step's width."""
        return (self.right - self.left) / max(1, self.end - self.first)

    def x(self, step: float) -> float:
        """Return the x where a step begins."""
        return self.left + (step - self.first) * self.wide


def ticks(most: int, count: int = 5) -> list[int]:
    """Return multiples of a power of two, 0 first, at most `count` beyond it and none beyond `most`."""
    each = 1
    while most // each > count:
        each *= 2
    return list(range(0, most + 1, each))


def horizontal(
    most: int, y: Callable[[float], float], left: float, right: float, count: int = 5, *, zero: bool = True
) -> Iterator[Markup]:
    """Yield grid lines with their sizes."""
    for n in ticks(most, count)[0 if zero else 1 :]:
        yield element("path", d=f"M{left:.1f} {y(n):.1f}H{right:.1f}", class_="grid")
        yield element("text", short_size(n) if n else "0", x=left - 6, y=y(n) + 4, class_="quiet end")


def bands(parts: Sequence[Part], steps: Steps, top: float, height: float) -> Iterator[Markup]:
    """Yield the modules as bands behind a figure over steps, names above; a click opens one."""
    for part in parts:
        if not part.is_module:
            continue
        x, wide = steps.x(part.first), steps.wide * (part.end - part.first)
        how = f" · {part.section.processing}" if part.section.processing else ""
        words = part.name + how
        for text in (part.name, part.section.processing or ""):
            if len(words) * 5.9 > wide - 2:
                words = text
        yield element(
            "g",
            title(f"{part.name}{how}"),
            element("rect", x=x, y=top - 17, width=max(wide - 1, 0.5), height=height + 17),
            element("text", fitted(words, wide, 10.5), x=x + wide / 2, y=top - 5, class_="middle"),
            class_="band second" if part.section.processing == "II" else "band",
            data_module=part.index,
        )
