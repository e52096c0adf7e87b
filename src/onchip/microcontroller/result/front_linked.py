"""The point of a front that fits so many bytes of RAM, stack and all: its program is linked to know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from onchip.machines.board import MOST_BYTES
from onchip.microcontroller.result.microcontroller_build import Maker, can_build

if TYPE_CHECKING:
    from onchip.machines.board import Board
    from onchip.microcontroller.int8.model import Int8Model
    from onchip.microcontroller.result.ram_front import RamFront, RamPoint
    from onchip.microcontroller.segments import SegmentOptions

__all__ = ["Taken", "point_within"]


@dataclass(frozen=True, slots=True)
class Taken:
    """A point, and the bytes of RAM of its linked program; None without a cross compiler."""

    point: RamPoint
    linked_ram: int | None


def point_within(
    found: RamFront,
    model: Int8Model,
    board: Board,
    ram_bytes: int,
    options: SegmentOptions,
    say: Callable[[str], None],
) -> Taken:
    """Return the point with the least work whose program takes at most `ram_bytes`.

    Without a cross compiler for the board, the point's own bytes are compared. Raises `Infeasible` with the
    fewest bytes that would do.
    """
    fitting = [point for point in found.points if point.ram_bytes <= ram_bytes]
    if not fitting:
        raise found.points[-1].lack(ram_bytes)
    if not can_build(board):
        return Taken(fitting[0], None)
    maker = Maker(model, replace(board, ram_bytes=MOST_BYTES, flash_bytes=MOST_BYTES), options, 0, say)
    fewest = None
    for point in fitting:
        say(f"linking the plan of {point.ram_bytes:,} bytes")
        made = maker.build(point.program(), ())
        if made.image is None:  # too large to emulate, so that its stack is not known
            return Taken(point, None)
        if made.ram_bytes <= ram_bytes:
            return Taken(point, made.ram_bytes)
        fewest = min(made.ram_bytes, fewest or made.ram_bytes)
    assert fewest is not None
    no = found.points[-1].lack(ram_bytes)
    raise no.but(needs=fewest, tensors=(*no.tensors, ("stack and other data", fewest - no.needs)))
