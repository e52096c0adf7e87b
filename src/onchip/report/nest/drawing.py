"""The nests of a plan for the page: rows of loops, leaves and buffers, each with its bars.

A row says what it is, where it lies in the scratch, and what crosses for it; the rows of a body stand inside
that of its loop. Equal nests are drawn once; the script writes the names of the chosen group into it. Names
are numbers in the rows, and reach the page through the template alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from onchip.planners.fused_group import TIMES
from onchip.report import svg
from onchip.report.nest.shown import ShownBuffer, ShownLeaf, ShownLoop, ShownNest
from onchip.report.nest.words import (
    array_words,
    common_start,
    equal_nests,
    names_shown,
    sides_words,
    times_words,
    ways_words,
)
from onchip.report.wording import short_size, visible

__all__ = ["MOST_RAILS", "page_nests", "script_names"]

WIDE = 1000.0
"""The units across a bar; the page stretches it."""

MOST_TICKS = 40
"""The most turns that the strip of a loop marks one by one."""

MOST_RAILS = 10
"""The most bodies around a row that are drawn; deeper loops say how deep they are."""

MOST_AXES = 4
"""The most operators named with the axis that a loop goes along."""

CLASSES = {"enters": "b-in", "weights": "b-resident", "inside": "b-inner", "leaves": "b-out"}
ROLES = {"enters": "from outside", "weights": "weights", "inside": "made and read here", "leaves": "leaves"}


@dataclass(frozen=True, slots=True)
class _Scale:
    """Bytes as units of a bar: of the scratch, and of what crosses most; and the names as shown."""

    nest: ShownNest
    names: tuple[str, ...]

    def scratch(self, n: int) -> float:
        return WIDE * n / max(1, self.nest.scratch)

    def crossing(self, n: int) -> float:
        return WIDE * n / max([1, *(b.crosses for b in self.nest.all_buffers())])


def page_nests(nests: Mapping[str, ShownNest]) -> list[dict[str, Any]]:
    """Return every different nest for the template, with the groups that run so."""
    return [
        {
            "groups": [visible(name) for name in groups],
            "facts": _facts(nests[first]),
            "beside": nests[first].beside,
            "names": names_shown(nests[first]),
            "start": _start(nests[first]),
            "scratch": short_size(nests[first].scratch),
            "rows": _rows(nests[first]),
        }
        for first, groups in equal_nests(nests).items()
    ]


def script_names(nests: Mapping[str, ShownNest], units: Sequence[str]) -> dict[int, list[Any]]:
    """Return by the number of a run: that of its nest on the page, what its names begin with, its names."""
    at = {name: i for i, groups in enumerate(equal_nests(nests).values()) for name in groups}
    return {
        n: [at[name], _start(nests[name]), list(names_shown(nests[name]))]
        for n, name in enumerate(units)
        if name in nests
    }


def _start(nest: ShownNest) -> str:
    start = common_start([nest.names[leaf.operator] for leaf in nest.leaves()])
    return visible(start) if start else ""


def _facts(nest: ShownNest) -> list[tuple[str, str, str]]:
    """Return the figures above the picture: name, value, note."""
    again = nest.moved / nest.least if nest.least else 1.0
    note = "each byte once" if nest.moved <= nest.least else f"{again:,.2f} {TIMES} each operand once"
    whole, count = sum(w.bytes for w in nest.whole), len(nest.whole)
    beside = f"{count:,} operand{'s' * (count != 1)} beside the scratch"
    peak = [leaf for leaf in nest.leaves() if leaf.alive == nest.need]
    where = f"at {len(peak):,} of {len(nest.leaves()):,} operators"
    beyond = "" if nest.scratch == nest.need else f"{short_size(nest.scratch)} with addresses"
    return [
        ("crosses", short_size(nest.moved), note),
        ("most alive", short_size(nest.need), beyond or where),
        ("whole on chip", short_size(whole), beside),
    ]


def _rows(nest: ShownNest) -> list[dict[str, Any]]:
    scale = _Scale(nest, names_shown(nest))
    rows = [
        {
            "kind": "whole",
            "deep": 0,
            "name": w.name,
            "what": "made here" if w.made else "read here",
            "before": w.before,
            "bytes": short_size(w.bytes),
        }
        for w in nest.whole
    ]
    rows.append({"kind": "nest", "deep": 0, "runs": 1})
    rows += [_buffer(b, 1, scale) for b in nest.buffers]
    for item in nest.body:
        rows += _item(nest, item, 1, scale)
    return rows


def _item(nest: ShownNest, item: ShownLoop | ShownLeaf, deep: int, scale: _Scale) -> list[dict[str, Any]]:
    if isinstance(item, ShownLeaf):
        own = [_buffer(b, deep + 1, scale) | {"own": True} for b in item.buffers]
        return [_leaf(nest, item, deep, scale), *own]
    rows = [_loop(item, deep)]
    rows += [_buffer(b, deep + 1, scale) for b in item.buffers]
    for inner in item.body:
        rows += _item(nest, inner, deep + 1, scale)
    return rows


def _loop(loop: ShownLoop, deep: int) -> dict[str, Any]:
    return {
        "kind": "loop",
        "deep": deep,
        "word": loop.word,
        "axes": loop.over[:MOST_AXES],
        "same": loop.over[0][1] if len({axis for _, axis in loop.over}) == 1 else None,
        "last_axis": loop.over[-1] if loop.over else None,
        "more": max(0, len(loop.over) - MOST_AXES),
        "size": f"{loop.size:,}",
        "turns": loop.turns,
        "tile": f"{loop.tile:,}",
        "last": f"{loop.last:,}" if loop.last and loop.last != loop.tile else "",
        "runs": loop.runs,
        "slides": loop.slides,
        "strip": _strip(loop),
    }


def _strip(loop: ShownLoop) -> Markup:
    """Return the axis of a loop as a bar, cut into its turns; the first turn is filled."""
    first = WIDE * min(1.0, loop.tile / max(1, loop.size))
    parts = [
        svg.element("rect", x=0, y=0, width=WIDE, height=10, class_="n-axis"),
        svg.element("rect", x=0, y=0, width=max(8.0, first), height=10, class_="n-turn"),
    ]
    if loop.turns <= MOST_TICKS:
        cuts = [WIDE * loop.tile * n / max(1, loop.size) for n in range(1, loop.turns)]
        parts += [svg.element("path", d=f"M{svg.number(x)} 0V10", class_="n-cut") for x in cuts]
    return _bar(parts, 10, "n-strip")


def _leaf(nest: ShownNest, leaf: ShownLeaf, deep: int, scale: _Scale) -> dict[str, Any]:
    alive = [b for b in nest.all_buffers() if b.first <= leaf.number <= b.last]
    return {
        "kind": "leaf",
        "deep": deep,
        "name": leaf.operator,
        "label": leaf.label,
        "slices": [f"{word} {size:,} by {tile:,}" for word, size, tile in leaf.slices],
        "over": leaf.over,
        "runs": leaf.runs,
        "again": [f"{made / size:.2f}" for made, size in leaf.again],
        "array": array_words(leaf),
        "alive": short_size(leaf.alive),
        "peak": leaf.alive == nest.need,
        "bar": _bar([_piece(b, scale, leaf.number) for b in alive], 14, "n-live"),
    }


def _buffer(b: ShownBuffer, deep: int, scale: _Scale) -> dict[str, Any]:
    part = b.held != b.size
    moved: list[tuple[float, str]] = [(min(b.size, b.crosses), "n-once"), (b.crosses - b.size, "n-again")]
    at, bars = 0.0, []
    for n, class_ in moved:
        if n > 0:
            bars.append(
                svg.element(
                    "rect", x=at, y=0, width=max(3.0, scale.crossing(int(n))), height=4, class_=class_
                )
            )
            at += scale.crossing(int(n))
    return {
        "kind": "buffer",
        "deep": deep,
        "name": b.name,
        "class": CLASSES[b.role],
        "role": ROLES[b.role],
        "kept": b.kept,
        "ring": b.ring,
        "over": b.over,
        "ways": ways_words(b),
        "sides": sides_words(b.sides, b.whole),
        "of": sides_words(b.whole, b.whole) if part else "",
        "held": short_size(b.bytes),
        "size": short_size(b.size),
        "part": part,
        "turns": b.turns,
        "each": ("up to " if b.held * b.turns != b.crosses else "") + short_size(b.held),
        "crosses": short_size(b.crosses) if b.crosses else "",
        "times": times_words(b),
        "often": b.crosses > b.size,
        "back": b.role == "leaves" and b.crosses > b.size,
        "bar": _bar([_piece(b, scale, b.first)], 14, "n-place"),
        "moved": _bar(bars, 4, "n-moved"),
    }


def _piece(b: ShownBuffer, scale: _Scale, leaf: int) -> Markup:
    """Return a buffer's range of the scratch; `n-new` where it is first used at this leaf."""
    name = svg.element("title", scale.names[b.name], data_n=str(b.name))
    new = " n-new" if b.first == leaf else ""
    return svg.element(
        "rect", name, x=scale.scratch(b.offset), y=1, width=max(2.0, scale.scratch(b.bytes)), height=12,
        class_=CLASSES[b.role] + new,
    )  # fmt: skip


def _bar(parts: Sequence[Markup], height: int, class_: str) -> Markup:
    return svg.element(
        "svg",
        Markup("").join(parts) or Markup(" "),
        viewBox=f"0 0 {svg.number(WIDE)} {height}",
        preserveAspectRatio="none",
        class_=class_,
        aria_hidden="true",
    )
