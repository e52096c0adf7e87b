"""The space that the claims of segment planning range over: one sentence, made from the options."""

from __future__ import annotations

from onchip.microcontroller.segments.fold import Space
from onchip.microcontroller.segments.options import SegmentOptions

__all__ = ["space_of"]

_INPUT = {
    "held": "the input held",
    "once": "the input held or fetched once row by row",
    "again": "the input held or fetched by rows or columns, some more than once",
}


def space_of(options: SegmentOptions) -> str:
    """Return the space that `optimal` and the bound of a microcontroller's plan range over."""
    space = Space()
    parts = [
        "layers in the network's order, modules' in any, cut into groups where one tensor alone goes on",
        "a group one layer, or stages of layers that hand on rings of rows",
        f"a stage one layer by single rows, or several by columns in bands of {_listed(space.heights)} rows",
    ]
    parts.append(f"in {_listed(space.strips)} strips")
    parts.append("outputs beside their inputs or, in one strip, over them at any legal distance")
    parts += [_INPUT[options.input], "all addresses"]
    return ", ".join(parts)


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" or {numbers[-1]}"
