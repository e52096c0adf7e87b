"""The form of a value in a box: for every dimension of the model's value, the pieces that the box cuts.

A box takes a range of some axes of an operator and all of the others. A dimension of a value is a row of
atoms, outermost first: a cut axis, of which the box has its range, or positions of which it has all. The
value in the box has the product of its atoms' extents in every dimension. Where nothing in a node depends on
positions, the node makes the box of its result from the boxes of its operands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from onchip.network.axes import ALL, Use
from onchip.network.operators import Side

__all__ = [
    "FULL",
    "PART",
    "REPEATED",
    "Atom",
    "Dim",
    "Form",
    "NotCompact",
    "Span",
    "box_of",
    "extent",
    "extents",
    "is_cut",
    "is_repeated",
    "is_whole",
    "narrowed",
    "needed",
    "range_of",
    "regrouped",
    "size_of",
    "tidy",
    "whole_form",
]

Array = np.ndarray[Any, Any]
Span = tuple[int, int]

FULL, REPEATED, PART = -1, -2, -3
"""In place of an axis: all positions; one that stands for all, which are equal; a fixed range of them."""


class NotCompact(Exception):
    """An operator's nodes cannot run on boxes of their values; never leaves the package."""


@dataclass(frozen=True, slots=True)
class Atom:
    """`size` positions along an axis, or all, or from `first` on the `count` of a part.

    With a `window` a box has of them what its range along the axis needs; they may be a part, too, as
    positions of which the window counts.
    """

    axis: int
    size: int
    first: int = 0
    count: int = 0
    window: Side | None = None


def needed(window: Side | None, span: Span, size: int) -> Span:
    """Return the positions, of `size`, that a range along an axis needs by a window; exactly it by None."""
    low, high = span
    if window is None:
        return span
    first = min(max(0, (low * window.stride - window.before) // window.per), size)
    if low >= high:
        return first, first
    end = ((high - 1) * window.stride - window.before) // window.per + window.span
    return first, max(first, min(end, size))


def box_of(use: Use, sides: Sequence[int], spans: Sequence[Span], cut: Collection[int]) -> list[Span]:
    """Return the positions of a buffer that a use needs for these ranges of the operator's axes.

    `cut` are the axes of which a box may have less than all: windows slide along no other.
    """
    found = [(0, size) if axis == ALL else spans[axis] for axis, size in zip(use.axes, sides, strict=True)]
    for side, window in enumerate(use.slides):
        if window is not None and window.axis in cut:
            found[side] = needed(window, spans[window.axis], sides[side])
    return found


def range_of(atom: Atom, spans: Sequence[Span]) -> Span:
    """Return the positions of an atom with an axis that a box has."""
    if atom.window is None:
        return spans[atom.axis]
    return needed(atom.window, spans[atom.axis], atom.count or atom.size)


Dim = tuple[Atom, ...]
Form = tuple[Dim, ...]


def tidy(dim: Iterable[Atom]) -> Dim:
    """Return a dimension without atoms of one position, and neighbours of the same kind as one."""
    found: list[Atom] = []
    for atom in dim:
        if atom.size == 1 and atom.axis < 0:
            continue
        if found and atom.axis in (FULL, REPEATED) and found[-1].axis == atom.axis:
            found[-1] = Atom(atom.axis, found[-1].size * atom.size)
        else:
            found.append(atom)
    return tuple(found)


def size_of(dim: Dim) -> int:
    """Return the size of a dimension in the model."""
    return prod(atom.size for atom in dim)


def extent(dim: Dim, spans: Sequence[Span]) -> int:
    """Return the size of a dimension in a box of these ranges of axes."""
    found = 1
    for atom in dim:
        if atom.axis >= 0:
            low, high = range_of(atom, spans)
            found *= high - low
        elif atom.axis == FULL:
            found *= atom.size
        elif atom.axis == PART:
            found *= atom.count
    return found


def extents(form: Form, spans: Sequence[Span]) -> tuple[int, ...]:
    """Return the shape of a value in a box."""
    return tuple(extent(dim, spans) for dim in form)


def is_whole(dim: Dim) -> bool:
    """True if every box has all of a dimension."""
    return not dim or (len(dim) == 1 and dim[0].axis == FULL)


def is_repeated(dim: Dim) -> bool:
    """True if a box has one position of the dimension that stands for all."""
    return all(atom.axis == REPEATED for atom in dim)


def is_cut(dim: Dim) -> bool:
    """True if a box may have less than all of the dimension."""
    return any(atom.axis >= 0 for atom in dim)


def whole_form(shape: Sequence[int]) -> Form:
    """Return the form of a value of which every box has all."""
    return tuple(tidy([Atom(FULL, n)]) for n in shape)


def regrouped(atoms: Iterable[Atom], shape: Sequence[int]) -> Form:
    """Return atoms in the order of elements as the dimensions of `shape`.

    Raises `NotCompact` where a dimension ends inside an atom that cannot be divided.
    """
    waiting = [atom for atom in atoms if atom.size > 1 or atom.axis >= 0][::-1]
    found: list[Dim] = []
    for size in shape:
        dim: list[Atom] = []
        while size > 1:
            if not waiting:
                raise NotCompact("its values have other sizes than the reach")
            atom = waiting.pop()
            if size % atom.size:
                outer = size
                if atom.axis not in (FULL, REPEATED) or atom.size % outer:
                    raise NotCompact("a dimension ends inside an axis")
                waiting.append(Atom(atom.axis, atom.size // outer))
                atom = Atom(atom.axis, outer)
            dim.append(atom)
            size //= atom.size
        found.append(tidy(dim))
    if waiting:
        raise NotCompact("its values have other sizes than the reach")
    return tuple(found)


def narrowed(value: Array, changes: Mapping[int, Dim], spans: Sequence[Span]) -> Array:
    """Return a value with some dimensions, of which it has all, cut to the box as the new ones say."""
    for at, dim in changes.items():
        sizes = tuple(atom.size for atom in dim)
        taken = tuple(slice(*range_of(atom, spans)) if atom.axis >= 0 else slice(None) for atom in dim)
        before, after = value.shape[:at], value.shape[at + 1 :]
        apart = value.reshape(*before, *sizes, *after)[(*(slice(None),) * at, *taken)]
        value = apart.reshape(*before, -1, *after)
    return value
