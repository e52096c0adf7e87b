"""The boards that a network fits, for a terminal: a line a board."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from onchip.microcontroller.result.board_fits import BoardFit, time_of
from onchip.microcontroller.result.reckoned import UNSEEN
from onchip.report.grid import Grid
from onchip.report.wording import visible

__all__ = ["fits_sentence", "fits_table", "verdict"]


def fits_table(name: str, rows: Sequence[BoardFit]) -> RenderableType:
    """Return RAM, flash and time of a network on every board."""
    head = Text(visible(name), style="bold")
    head.append(f": fits {sum(row.fits for row in rows)} of {len(rows)} boards", style="not bold")
    table = Grid(
        ("board", False),
        ("core", False),
        ("RAM", True),
        ("of", True),
        ("flash", True),
        ("of", True),
        ("instructions", True),
        ("time", True),
        ("", False),
        whole_names=True,
    )
    for row in rows:
        about = "" if row.counted else "~"
        table.add_row(
            Text(visible(row.board.name), style="bold" if row.fits else ""),
            row.board.core.removeprefix("cortex-"),
            f"{row.ram_bytes:,}",
            _size(row.board.ram_bytes),
            f"{row.flash_bytes:,}" if row.flash_bytes else "-",
            _size(row.board.flash_bytes),
            "-" if row.instructions is None else f"{about}{row.instructions / 1e6:,.2f} M",
            f"{about}{time_of(row.seconds)}" if row.seconds is not None else "-",
            verdict(row),
        )
    return Group(head, Text(), table, Text(), *(Text(line) for line in fits_sentence(rows)))


def _size(memory: int) -> str:
    """Return a memory's bytes in the largest unit that divides them, as data sheets do."""
    units = ((1 << 20, " MiB"), (1 << 10, " KiB"), (1, " B"))
    return next(f"{memory // unit:,}{name}" for unit, name in units if memory % unit == 0)


def verdict(row: BoardFit) -> str:
    """Return whether it fits, in a few words."""
    if row.fits:
        return "fits" if row.work < 1.005 else f"fits, at {row.work:.2f} times the work"
    lacks = " and ".join(f"{needs - there:,} B of {memory}" for memory, needs, there in row.short)
    return f"lacks {lacks}"


def fits_sentence(rows: Sequence[BoardFit]) -> list[str]:
    """Return how the figures were found."""
    linked = [row for row in rows if row.linked]
    lines = []
    if len(linked) == len(rows):
        lines.append("RAM and flash are those of the linked program, stack and all.")
    else:
        others = [row for row in rows if not row.linked]
        why = next((row.why for row in others if row.why), "")
        named = "All" if not linked else f"Those of {', '.join(visible(row.board.name) for row in others)}"
        lines.append(
            f"{named} {'are' if linked else 'figures are'} reckoned, not linked{f' ({why})' if why else ''}:"
            " RAM without stack and statics, flash without code."
        )
    if any(row.counted for row in rows):
        lines.append(
            f"Instructions are of one inference, counted on the emulated core (~: {_reckoned(rows)})."
        )
    else:
        lines.append(f"Instructions are of one inference, {_reckoned(rows)}.")
    lines.append(
        "Time is instructions at the board's full clock, one a cycle: an estimate, for wait states cost more"
        " and two at once cost less."
    )
    return lines


def _reckoned(rows: Sequence[BoardFit]) -> str:
    """Return how figures that are not counted come about, and how far off they are."""
    off = max((UNSEEN[row.board.core] for row in rows if not row.counted), default=max(UNSEEN.values()))
    return f"reckoned from the layers' shapes, nine networks in ten within {100 * off:.0f} %"
