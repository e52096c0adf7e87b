"""Names and sizes for people. Names come from files: misleading characters are shown as escapes."""

from __future__ import annotations

from onchip.base.units import exact, short_size

__all__ = ["SENTENCE", "SPACE", "exact", "short_size", "short_time", "shorten", "visible"]

_LONGEST = 240

SENTENCE = 2_000
"""The most characters shown of a space: all of any planner's; a file may state a longer one."""


SPACE = "The space of this claim"
"""The heading above the plans that `optimal` and the bounds range over."""


def visible(name: str, longest: int = _LONGEST) -> str:
    """Return a name with control, bidirectional, surrogate and other invisible characters as escapes.

    Beyond `longest` characters its middle is left out; an empty name is shown as such.
    """
    if not name:
        return "(unnamed)"
    name = shorten(name, longest)
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def shorten(text: str, width: int) -> str:
    """Return at most `width` characters without the middle, since both ends tell names apart."""
    if len(text) <= width:
        return text
    head = (width - 1) // 3
    return text[:head] + "…" + text[len(text) - (width - 1 - head) :]


def short_time(picoseconds: int) -> str:
    """Return the time in a short unit: `1.23 ms`."""
    for unit, size in (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3)):
        if picoseconds >= size:
            return (
                f"{picoseconds / size:.3g} {unit}"
                if picoseconds < 999.5 * size
                else f"{picoseconds / size:,.0f} {unit}"
            )
    return f"{picoseconds} ps"
