"""RAM against work as a curve for a terminal, and as data: what `onchip mcu --front` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from onchip.report.wording import visible

if TYPE_CHECKING:
    from onchip.segments import Front, FrontPoint, SegmentOptions

__all__ = ["data", "table"]

WHENCE = {
    "held": "the image lies in RAM",
    "once": "the image comes row by row",
    "again": "the image can be read again",
}


def table(found: Front, name: str, options: SegmentOptions, taken: FrontPoint | None) -> RenderableType:
    """A line for each point: bytes, work and reckoned instructions against none made twice, and a bar."""
    head = Text(visible(name), style="bold")
    head.append(f": RAM against work, {WHENCE[options.input]}", style="not bold")
    rows = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading, number in (
        ("bytes", True),
        ("multiply-adds", True),
        ("times", True),
        ("instructions", True),
        ("groups", True),
        ("", False),
    ):
        rows.add_column(heading, justify="right" if number else "left", no_wrap=True)
    rows.add_column()  # the bars: where the terminal is narrow they give way, the figures do not
    most = max(point.ram_bytes for point in found.points)
    for point in found.points:
        rows.add_row(
            f"{point.ram_bytes:,}",
            f"{point.macs:,}",
            f"{point.factor:.4f}",
            f"~{point.reckoned:.2f}",
            str(len(point.choice.groups)),
            "<- --ram" if point is taken else "",
            Bar(size=most, begin=0, end=point.ram_bytes),
            style="bold" if point is taken else "",
        )
    said = (
        "No plan has fewer bytes in its largest group for no more multiply-adds."
        if found.complete
        else "The search was cut short: these are plans, and there may be better ones."
    )
    notes = "Bytes are those of activations, rings and workspaces; stack and statics come on top."
    return Group(head, Text(), rows, Text(), Text(f"{said} {notes}"))


def data(found: Front, name: str, options: SegmentOptions, taken: FrontPoint | None) -> dict[str, Any]:
    """The curve as JSON has it; `taken` is a point's place in it, or null."""
    return {
        "network": name,
        "input": options.input,
        "macs": found.macs,
        "complete": found.complete,
        "seconds": found.seconds,
        "points": [
            {
                "arena_bytes": point.ram_bytes,
                "largest_group_bytes": point.choice.bound,
                "macs": point.macs,
                "factor": point.factor,
                "reckoned_instructions_factor": point.reckoned,
                "groups": len(point.choice.groups),
            }
            for point in found.points
        ],
        "taken": None if taken is None else found.points.index(taken),
    }
