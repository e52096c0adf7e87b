"""The words on a nest: what a loop cuts, how often a buffer crosses, names without what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onchip.planners.fused_group import TIMES
from onchip.report.nest.shown import ShownBuffer, ShownLeaf, ShownLoop, ShownNest
from onchip.report.wording import shorten, visible

__all__ = [
    "array_words",
    "common_start",
    "equal_nests",
    "loop_words",
    "names_shown",
    "sides_words",
    "slice_words",
    "times_words",
    "ways_words",
]

LONGEST = 60
"""The most characters of a name in a picture; its middle is left out."""


def equal_nests(nests: Mapping[str, ShownNest]) -> dict[str, list[str]]:
    """Return the groups of equal nests, each by the name of its first."""
    first: dict[ShownNest, str] = {}
    found: dict[str, list[str]] = {}
    for name, nest in nests.items():
        found.setdefault(first.setdefault(nest, name), []).append(name)
    return found


def common_start(names: Sequence[str]) -> str:
    """Return the dotted (or slashed) parts with which all of some names begin; a name keeps its last part."""
    if len(names) < 2:
        return ""
    low, high = min(names), max(names)
    same = next((n for n, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return low[: max(low.rfind(".", 0, same), low.rfind("/", 0, same)) + 1]


def names_shown(nest: ShownNest) -> tuple[str, ...]:
    """Return the names of a nest as shown: without the start that all of its operators share, and visible."""
    start = common_start([nest.names[leaf.operator] for leaf in nest.leaves()])
    return tuple(visible(name.removeprefix(start) or name, LONGEST) for name in nest.names)


def loop_words(loop: ShownLoop, names: Sequence[str]) -> str:
    """Return `heads: 12 in 4 turns of 3`; an axis without a word goes by its number."""
    what = loop.word
    if not what:
        name, axis = loop.over[-1]
        what = f"axis {axis} of {shorten(names[name], 24)}"
    turns = f"{loop.turns:,} turn{'s' * (loop.turns != 1)}"
    rest = f", the last of {loop.last:,}" if loop.last and loop.last != loop.tile else ""
    rest += ", windows slide" if loop.slides else ""
    return f"{what}: {loop.size:,} in {turns} of {loop.tile:,}{rest}"


def slice_words(leaf: ShownLeaf) -> str:
    """Return `sum 768 by 64`, a leaf's own loops from the outermost in; empty without any."""
    return ", ".join(f"{word} {size:,} by {tile:,}" for word, size, tile in leaf.slices)


def sides_words(sides: Sequence[int], whole: Sequence[int]) -> str:
    """Return `197 x 64`, the sides of a buffer or a part of it, but those of one index as a whole."""
    shown = (f"{n:,}" for n, all_of_it in zip(sides, whole, strict=True) if all_of_it > 1)
    return f" {TIMES} ".join(shown) or "1"


def times_words(buffer: ShownBuffer) -> str:
    """Return how often a buffer's bytes cross: `x1`, or `x2.5` of its size."""
    times = buffer.times
    digits = 0 if abs(times - round(times)) < 0.005 or times >= 99.5 else 2 if times < 2 else 1
    return f"{TIMES}{times:,.{digits}f}"


def ways_words(buffer: ShownBuffer) -> list[str]:
    """Return `2 copies`, `stores by channel 1`, `3 steps late`: how a buffer comes and goes."""
    found = [f"{buffer.copies:,} copies"] if buffer.copies > 1 else []
    if buffer.load is not None:
        found.append(f"loads by channel {buffer.load}")
    if buffer.store is not None:
        found.append(f"stores by channel {buffer.store}")
    if buffer.late:
        found.append(f"{buffer.late:,} step{'s' * (buffer.late != 1)} late")
    return found


def array_words(leaf: ShownLeaf) -> str:
    """Return `rows | features, sum`, the axes on each side of the array; empty where none says any."""
    if not any(leaf.array):
        return ""
    return " | ".join(", ".join(side) or "-" for side in leaf.array)
