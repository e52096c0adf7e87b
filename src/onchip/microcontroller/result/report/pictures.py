"""The pictures of a microcontroller's page: strips of bytes, RAM over one inference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from onchip.microcontroller.result.ram_steps import RamStep
from onchip.report.svg import element, title

__all__ = ["addresses", "over_time", "share", "stacked"]

WIDTH = 10_000.0
"""Units across a picture, which is as wide as its place: they carry a tenth of a thousandth of a strip."""


def stacked(parts: Sequence[tuple[str, str, int]], room: int, label: str) -> Markup:
    """Return (class, name, bytes) side by side on a strip of `room` bytes, with its end if they are more."""
    whole = max(room, sum(size for *_, size in parts), 1)
    inside, at = [], 0
    for shade, name, size in parts:
        if size:
            inside.append(_box(shade, at / whole, size / whole, f"{name}: {size:,} bytes"))
        at += size
    if room < whole:
        x = WIDTH * room / whole
        inside.append(
            element("line", title(f"{room:,} bytes: all of the memory"), class_="end", x1=x, x2=x, y1=0, y2=1)
        )
    return _strip(inside, label)


def share(shade: str, part: float, label: str) -> Markup:
    """Return a strip of which so much is filled."""
    return _strip([_box(shade, 0.0, min(max(part, 0.0), 1.0), label)], label)


def addresses(step: RamStep, extent: int) -> Markup:
    """Return what a step holds, at its addresses; an output that lies over its input is seen through."""
    order = ("kept", "read", "ring", "sums", "workspace", "made")
    parts = sorted(step.parts, key=lambda part: order.index(part.role))
    whole = max(extent, 1)
    inside = [
        _box(
            part.role,
            part.first / whole,
            part.bytes / whole,
            f"{part.name}{f', {part.says}' if part.says else ''}: {part.bytes:,} bytes at {part.first:,}",
        )
        for part in parts
    ]
    return _strip(inside, f"{step.name}: {step.bytes:,} bytes")


def over_time(steps: Sequence[RamStep], widths: Sequence[float], top: int, limit: int | None) -> Markup:
    """Return RAM over one inference: a bar for each step, as wide as its share of the work.

    `top` are the bytes of the picture's height, `limit` a line across it.
    """
    total, most = sum(widths) or 1.0, max((step.bytes for step in steps), default=0)
    inside, at = [], 0.0
    for step, width in zip(steps, widths, strict=True):
        high = step.bytes / max(top, 1)
        inside.append(
            element(
                "rect",
                title(f"{step.name}: {step.bytes:,} bytes, {100 * width / total:.1f} % of the work"),
                class_="step peak" if step.bytes == most else "step",
                x=WIDTH * at / total,
                y=1000 * (1 - high),
                width=WIDTH * width / total,
                height=1000 * high,
            )
        )
        at += width
    if limit is not None and limit <= top:
        y = 1000 * (1 - limit / top)
        inside.append(element("line", title(f"{limit:,} bytes"), class_="limit", x1=0, x2=WIDTH, y1=y, y2=y))
    return element(
        "svg",
        Markup("").join(inside) or Markup(" "),
        class_="time",
        viewBox=f"0 0 {WIDTH:.0f} 1000",
        preserveAspectRatio="none",
        role="img",
        aria_label="RAM over one inference",
    )


def _box(shade: str, first: float, part: float, words: str) -> Markup:
    return element("rect", title(words), class_=shade, x=WIDTH * first, y=0, width=WIDTH * part, height=1)


def _strip(inside: Iterable[Markup], label: str) -> Markup:
    return element(
        "svg",
        Markup("").join(inside) or Markup(" "),
        class_="strip",
        viewBox=f"0 0 {WIDTH:.0f} 1",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )
