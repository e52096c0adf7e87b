"""Graphs of rows as text: the structure of a network without its weights, an operator a line.

`NAME kind HxWxC [k=HxW s=HxW p=TOP,LEFT] in=A,B [half] [keep]`. A kernel and a stride of 1x1 and no padding
are left out; windows end at the map's last row and column. Several operands of `conv` are one map of all
their channels; an operand of `add` with fewer channels is padded with channels; a `dw` with more channels
than its operand makes several of each. Kinds: `input`, `conv`, `dw`, `pool`, `add`, `resize` (nearest),
`bilinear` (`half`: half-pixel centres), `sum` (a mean's rows, 4 bytes an element, each over its last),
`last` (the mean's end), `whole` (reads every row). `keep`: an output.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from onchip.base.errors import ModelError
from onchip.microcontroller.rows.graph import Operand, RowGraph, RowOperator, Rows
from onchip.microcontroller.rows.places import bilinear, nearest
from onchip.microcontroller.rows.windows import (
    all_rows,
    beside,
    by_element,
    by_pixel,
    clipped,
    same_rows,
)

__all__ = ["TextMap", "graph_of_text", "maps_of_text"]

KINDS = frozenset({"input", "conv", "dw", "pool", "add", "resize", "bilinear", "sum", "last", "whole"})
ATTRIBUTES = ("k", "s", "p", "in")
FLAGS = ("half", "keep")
SUM_BYTES = 4
MOST_PLACES = 1 << 16


@dataclass(frozen=True, slots=True)
class TextMap:
    """A line of the text: a map and the operator that makes it."""

    name: str
    kind: str
    shape: tuple[int, int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    reads: tuple[int, ...]
    half: bool
    kept: bool

    @property
    def pixel(self) -> int:
        """The bytes of a pixel."""
        return self.shape[2] * (SUM_BYTES if self.kind == "sum" else 1)


def maps_of_text(text: str, where: str = "graph") -> tuple[TextMap, ...]:
    """Return the maps of a graph in its text; raises `ModelError` with the line."""
    found: list[TextMap] = []
    names: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            found.append(_map_of(words, names, found))
        except ValueError as problem:
            raise ModelError(str(problem), where=where, item=f"line {number}") from None
        names[found[-1].name] = len(found) - 1
    if not found:
        raise ModelError("has no operators", where=where)
    return tuple(found)


def _map_of(words: list[str], names: dict[str, int], before: list[TextMap]) -> TextMap:
    if len(words) < 3:
        raise ValueError("needs a name, a kind and a shape")
    name, kind, size, *rest = words
    if name in names:
        raise ValueError(f"{name} comes twice")
    if kind not in KINDS:
        raise ValueError(f"{kind} is no kind: {', '.join(sorted(KINDS))}")
    given: dict[str, str] = {}
    for word in rest:
        key, _, value = word.partition("=")
        known = key in ATTRIBUTES or key in FLAGS
        if not known or key in given or (key in FLAGS) == bool(value):
            raise ValueError(f"{word} is no attribute, or comes twice")
        given[key] = value
    shape = _numbers(size, "x", 3)
    reads = tuple(_known(operand, names) for operand in given["in"].split(",")) if "in" in given else ()
    if bool(reads) == (kind == "input"):
        raise ValueError("an input reads nothing, all others something")
    if kind in ("dw", "pool", "resize", "bilinear", "sum", "last") and len(reads) != 1:
        raise ValueError(f"{kind} reads one map")
    found = TextMap(
        name,
        kind,
        (shape[0], shape[1], shape[2]),
        _pair(given.get("k", "1x1"), "x"),
        _pair(given.get("s", "1x1"), "x"),
        _pair(given.get("p", "0,0"), ",", least=0),
        reads,
        "half" in given,
        "keep" in given,
    )
    _must_fit(found, [before[i] for i in reads])
    return found


def _must_fit(made: TextMap, read: list[TextMap]) -> None:
    rows, columns, channels = made.shape
    for operand in read:
        h, w, c = operand.shape
        wrong = (
            (made.kind == "add" and (h, w) != (rows, columns))
            or (made.kind == "add" and c > channels)
            or (made.kind == "dw" and channels % c)
            or (made.kind in ("pool", "resize", "bilinear", "sum", "last") and c != channels)
            or (made.kind == "sum" and (h != rows or columns != 1))
            or (made.kind == "last" and (operand.kind != "sum" or rows != 1))
        )
        if wrong:
            sizes = f"{h}x{w}x{c}", f"{rows}x{columns}x{channels}"
            raise ValueError(f"{operand.name}, {sizes[0]}, is no operand of {made.kind} {sizes[1]}")


def _known(name: str, names: dict[str, int]) -> int:
    if name not in names:
        raise ValueError(f"{name} is not made before")
    return names[name]


def _numbers(text: str, between: str, count: int, least: int = 1) -> tuple[int, ...]:
    if not re.fullmatch(rf"\d{{1,6}}(?:{between}\d{{1,6}}){{{count - 1}}}", text, re.ASCII):
        raise ValueError(f"{text} is not {count} numbers with {between} between them")
    found = tuple(map(int, text.split(between)))
    if not all(least <= number <= MOST_PLACES for number in found):
        raise ValueError(f"{text}: numbers from {least} to {MOST_PLACES:,}")
    return found


def _pair(text: str, between: str, least: int = 1) -> tuple[int, int]:
    first, second = _numbers(text, between, 2, least)
    return first, second


def graph_of_text(text: str, where: str = "graph") -> RowGraph:
    """Return the graph of rows of a text; raises `ModelError` with the line."""
    maps = maps_of_text(text, where)
    return RowGraph(tuple(_operator(i, made, maps) for i, made in enumerate(maps)))


def _operator(i: int, made: TextMap, maps: tuple[TextMap, ...]) -> RowOperator:
    rows, columns, channels = made.shape
    operands = tuple(_operand(made, maps[t], t) for t in made.reads)
    if made.kind == "sum":
        operands += (Operand(i, ((0, 0), *((row, row + 1) for row in range(rows - 1))), 0),)
    taps = made.kernel[0] * made.kernel[1]
    work = {"conv": taps * sum(maps[t].shape[2] for t in made.reads), "dw": taps}.get(made.kind, 0)
    return RowOperator(
        made.name,
        rows,
        columns * made.pixel,
        operands,
        made.kept,
        work=rows * columns * channels * work,
        columns=columns if made.kind not in ("sum", "last", "whole") else 0,
    )


def _operand(made: TextMap, read: TextMap, maker: int) -> Operand:
    (rows, columns, _), size = made.shape, columns_bytes(made)
    p_o, p_i = made.pixel, read.pixel
    axes: list[tuple[Rows, ...]] = [
        clipped(read.shape[a], made.shape[a], made.kernel[a], made.stride[a], made.padding[a]) for a in (0, 1)
    ]
    match made.kind:
        case "conv":
            return Operand(maker, axes[0], by_pixel(axes[1], p_o, p_i), axes[1])
        case "dw":
            distance = by_element(axes[1], p_o, p_i, made.shape[2] // read.shape[2])
            return Operand(maker, axes[0], distance, axes[1])
        case "pool" | "add":
            return Operand(maker, axes[0], by_element(axes[1], p_o, p_i), axes[1])
        case "resize" | "bilinear":
            places = nearest if made.kind == "resize" else bilinear
            both = [places(read.shape[a], made.shape[a], half=made.half) for a in (0, 1)]
            return Operand(maker, both[0], by_element(both[1], p_o, p_i), both[1])
        case "sum":
            return Operand(maker, same_rows(rows), beside(size))
        case "last":
            last = read.shape[0]
            return Operand(maker, ((last - 1, last),), by_element(same_rows(columns), p_o, p_i))
    return Operand(maker, all_rows(read.shape[0], rows), beside(size))


def columns_bytes(made: TextMap) -> int:
    """Return the bytes of a row."""
    return made.shape[1] * made.pixel
