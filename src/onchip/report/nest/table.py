"""The nests of a plan on a terminal: a row for each, equal ones in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onchip.base.short_names import distinct_names
from onchip.planners.fused_group import TIMES
from onchip.report.grid import Grid
from onchip.report.nest.shown import ShownBuffer, ShownLeaf, ShownLoop, ShownNest
from onchip.report.nest.words import equal_nests, loop_words, names_shown, times_words
from onchip.report.wording import short_size, shorten, visible

__all__ = ["LEGEND", "nest_table"]

LEGEND = (
    "around: operators inside a loop; [4]: the part of an axis that a loop goes over; x of y: the part of a"
    " tensor that lies on chip at a time; a ring: new rows in the place of old ones; whole: tensors that lie"
    " whole beside the scratch; once: each byte crosses once"
)
"""The legend of the columns."""

MOST_ROWS = 24
"""The most different nests that the terminal lists; of more, those that move most."""

MOST_NAMED = 3
"""The most buffers of one kind named in a row; the others are counted."""

NAME, SHORT = 22, 15
"""The most characters of a name, from 100 columns up and below."""


def nest_table(nests: Mapping[str, ShownNest], width: int) -> Grid:
    """Return a row for every different nest: its loops, what stays on chip, what crosses and how often."""
    equal = equal_nests(nests)
    listed = list(equal)
    if len(listed) > MOST_ROWS:
        most = sorted(listed, key=lambda name: -nests[name].moved * len(equal[name]))[:MOST_ROWS]
        listed = [name for name in listed if name in most]
    grid = Grid(
        ("group", False), ("loops, outermost first", False), ("stays on chip", False), ("crosses", False)
    )
    for name in listed:
        nest, count = nests[name], len(equal[name])
        long = names_shown(nest)
        short = distinct_names(long, NAME if width >= 100 else SHORT)
        shown = [short[one] for one in long]
        group = shorten(visible(name), 14) + (f" {TIMES}{count}" if count > 1 else "")
        grid.add_row(group, _loops(nest, shown), _stays(nest, shown), _crosses(nest, shown))
    if left := len(equal) - len(listed):
        grid.add_row("", f"{left:,} more, which move less")
    return grid


def _loops(nest: ShownNest, names: Sequence[str]) -> str:
    lines = []
    for item, deep in nest.walk():
        if isinstance(item, ShownLoop):
            around = sum(isinstance(inner, ShownLeaf) for inner in _inside(item))
            lines.append(f"{'  ' * deep}{loop_words(item, names)}, around {around:,}")
    return "\n".join(lines) or "none: one after the other"


def _inside(loop: ShownLoop) -> list[ShownLoop | ShownLeaf]:
    found: list[ShownLoop | ShownLeaf] = []
    for item in loop.body:
        found += [item, *(_inside(item) if isinstance(item, ShownLoop) else [])]
    return found


def _stays(nest: ShownNest, names: Sequence[str]) -> str:
    """Return what is made and read inside alone, the largest first, then what is whole."""
    inside = sorted((b for b in nest.all_buffers() if b.role == "inside"), key=lambda b: -b.bytes)
    lines = [f"{names[b.name]} {_part(b)}" for b in inside[:MOST_NAMED]]
    lines += _more(len(inside), lines)
    if nest.whole:
        whole = [names[w.name] for w in nest.whole[:MOST_NAMED]]
        lines.append("whole: " + ", ".join(whole + _more(len(nest.whole), whole)))
    return "\n".join(lines) or "nothing"


def _part(buffer: ShownBuffer) -> str:
    held, ring = short_size(buffer.held), ", a ring" if buffer.ring else ""
    return (held if buffer.held == buffer.size else f"{held} of {short_size(buffer.size)}") + ring


def _crosses(nest: ShownNest, names: Sequence[str]) -> str:
    """Return what crosses more than once, the most first, then what crosses once, together."""
    crossing = [b for b in nest.all_buffers() if b.crosses]
    often = sorted((b for b in crossing if b.crosses > b.size), key=lambda b: -b.crosses)
    lines = [
        f"{names[b.name]} {short_size(b.size)} {times_words(b)} = {short_size(b.crosses)}"
        for b in often[:MOST_NAMED]
    ]
    lines += _more(len(often), lines)
    if once := [b for b in crossing if b.crosses <= b.size]:
        moved = short_size(sum(b.crosses for b in once))
        weights = sum(b.role == "weights" for b in once)
        others = list(dict.fromkeys(names[b.name] for b in once if b.role != "weights"))
        parts = [f"{weights:,} weight{'s' * (weights != 1)}"] if weights else []
        parts += others[:MOST_NAMED] + _more(len(others), others[:MOST_NAMED])
        lines.append(f"once: {', '.join(parts)}, {moved}")
    return "\n".join(lines) or "nothing"


def _more(count: int, shown: Sequence[str]) -> list[str]:
    return [f"{count - len(shown):,} more"] if count > len(shown) else []
