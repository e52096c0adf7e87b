"""The curve of RAM against work for a terminal, and as data: what `onchip mcu --front` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.text import Text

from onchip.report.grid import Grid
from onchip.report.wording import visible

if TYPE_CHECKING:
    from onchip.microcontroller.result.front_linked import Taken
    from onchip.microcontroller.result.ram_front import RamFront, RamPoint
    from onchip.microcontroller.segments import SegmentOptions

__all__ = ["data", "table"]

RECKONED_ERROR = 0.14
"""The most by which a reckoned factor was off the counted one (`benchmarks/mcu_reckoned.py`)."""

WHENCE = {
    "held": "the image lies in RAM",
    "once": "the image comes row by row",
    "again": "the image can be read again",
}


def table(found: RamFront, name: str, options: SegmentOptions, taken: Taken | None) -> RenderableType:
    """Return a line per point: bytes, work and estimated instructions against none made twice, and a bar."""
    head = Text(visible(name), style="bold")
    head.append(f": RAM against work, {WHENCE[options.input]}", style="not bold")
    rows = Grid(
        ("bytes", True),
        ("multiply-adds", True),
        ("times", True),
        ("instructions", True),
        ("made in", False),
        ("", False),
    )
    for point in found.points:
        cells = (
            f"{point.ram_bytes:,}",
            f"{point.macs:,}",
            f"{point.factor:.4f}",
            f"~{point.reckoned:.2f}",
            _how(point),
            _mark(taken) if taken is not None and point is taken.point else "",
        )
        style = "bold" if taken is not None and point is taken.point else ""
        rows.add_row(*(Text(cell, style) for cell in cells), bar=point.ram_bytes)
    said = (
        "No plan in chains has fewer bytes in its largest group for no more multiply-adds."
        if found.complete
        else "These are plans, and there may be better ones: not all that make something twice were tried."
    )
    if taken is not None and taken.linked_ram is None:
        said += " --ram was compared with these bytes alone: the program was not linked."
    notes = (
        "Bytes are those of activations, rings and workspaces; stack and statics come on top. Instructions"
        f" are reckoned, against every layer on its own: counted ones were up to {100 * RECKONED_ERROR:.0f} %"
        " away on public networks."
    )
    return Group(head, Text(), rows, Text(), Text(f"{said} {notes}"))


def data(found: RamFront, name: str, options: SegmentOptions, taken: Taken | None) -> dict[str, Any]:
    """Return the curve as JSON data; `taken` is the index of a point in it, or null."""
    return {
        "network": name,
        "input": options.input,
        "macs": found.macs,
        "complete": found.complete,
        "seconds": found.seconds,
        "points": [
            {
                "arena_bytes": point.ram_bytes,
                "largest_group_bytes": point.bound,
                "macs": point.macs,
                "factor": point.factor,
                "reckoned_instructions_factor": point.reckoned,
                "groups": point.groups,
                "method": point.how,
            }
            for point in found.points
        ],
        "taken": None if taken is None else found.points.index(taken.point),
        "taken_linked_ram_bytes": None if taken is None else taken.linked_ram,
    }


def _how(point: RamPoint) -> str:
    return f"{point.groups} groups" if point.how == "chains" else point.how


def _mark(taken: Taken) -> str:
    if taken.linked_ram is None:
        return "<- --ram"
    return f"<- --ram, {taken.linked_ram:,} linked"
