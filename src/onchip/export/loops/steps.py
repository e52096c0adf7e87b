"""The records of a plan as steps: ranges of loops, places on chip, and what is copied and computed when.

A place is a range of the scratchpad that holds a part of a buffer, its region. Boxes are in positions along
the buffer's sides, half-open. A range is a pair of numbers, the range of a loop by its name, or the positions
that a window needs for the range of a loop.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onchip.network import Operator
from onchip.network.axes import Cut
from onchip.run.tiled.nests.kernel import Source

__all__ = [
    "Allocate",
    "Array",
    "Box",
    "Compute",
    "Copy",
    "Fixed",
    "For",
    "Give",
    "Named",
    "Part",
    "Place",
    "Program",
    "Range",
    "RunWhole",
    "Seen",
    "Slid",
    "Step",
    "Transfer",
    "Turns",
    "WholeRead",
]


@dataclass(frozen=True, slots=True)
class Fixed:
    """Positions `low` to `high`."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Named:
    """The range that a loop around gives this name in its present turn."""

    name: str


@dataclass(frozen=True, slots=True)
class Slid:
    """The needs of windows over `size` positions: o needs `span` from floor((o * stride - before) /
    per) on, as far as they exist."""

    of: str
    stride: int
    before: int
    per: int
    span: int
    size: int


Range = Fixed | Named | Slid
Box = tuple[Range, ...]

Part = tuple[Named | Fixed, int]
"""A range of a sum's axis, and the size of that axis."""


@dataclass(frozen=True, slots=True)
class Array:
    """Bytes in DRAM: a tensor, a constant of the model, or sums of a tensor that are not complete.

    Its elements lie one after the other, `element` bytes each. `offset` is where it begins in DRAM.
    """

    id: str
    name: str
    kind: str
    element: int
    count: int
    offset: int

    @property
    def bytes(self) -> int:
        """All of its bytes."""
        return self.element * self.count


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part of a buffer lies on chip: from byte `address` on, `bytes` of it.

    Element s0, s1, ... of a region that begins at r0, r1, ... lies at ((s0 - r0) * most[1] + s1 - r1) ...,
    times `pitch`, but for the sides as long as the region is (`length`): `most` are the longest. Along the
    side `ring` position s lies at s modulo most[ring]. In DRAM the buffer's elements begin at `offset` of
    `array`, at `first` along sides of the sizes `whole`. Sums that are not complete are `partial` bytes wide,
    in DRAM in the array `sums`. Of several `slots`, `slot_bytes` each, the regions lie in one after the other
    by turns, or turn by turn in those of `slot_of`; in a ring position s + `slot_of` of a turn lies where s
    would.
    """

    id: str
    names: tuple[str, ...]
    address: int
    bytes: int
    element: int
    pitch: int
    sides: tuple[int, ...]
    most: tuple[int, ...]
    kinds: tuple[np.dtype[Any], ...] = ()
    ring: int | None = None
    array: str | None = None
    offset: int = 0
    first: tuple[int, ...] = ()
    whole: tuple[int, ...] = ()
    sums: str | None = None
    partial: int = 0
    slots: int = 1
    slot_bytes: int = 0
    slot_of: tuple[int, ...] = ()

    def length(self, side: int) -> int | None:
        """Return a side's length in the order of elements; None where it is the region's in each turn.

        Rows of a ring with copies come while those of a turn before are in use, whose region may be longer or
        shorter along other sides: a row keeps to its place only where all turns lie alike.
        """
        return self.most[side] if side == self.ring or (self.ring is not None and self.slot_of) else None


@dataclass(frozen=True, slots=True)
class Allocate:
    """A place begins to hold a region; a ring that holds one already goes on to it."""

    place: str
    region: Box


@dataclass(frozen=True, slots=True)
class Give:
    """The bytes of a place are given back."""

    place: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A box is copied between a place and DRAM: `load` or `store`, where a range is not empty.

    With `parts`, a load of a constant is done in the last part of these sums only (`late`); a store is of
    sums that are not complete before their last part; and with `back` it is the load of those, in all parts
    but the first.
    """

    direction: str
    place: str
    box: Box
    parts: tuple[Part, ...] = ()
    late: bool = False
    back: bool = False


@dataclass(frozen=True)
class Seen:
    """An operand or weight as an operator reads it: a place, and the positions of its value in the place's
    buffer: position j along a side of `whole` is position j + shift there."""

    place: str
    source: Source
    whole: tuple[int, ...]
    shift: tuple[int, ...]


@dataclass(frozen=True)
class Compute:
    """An operator makes a box of its output from boxes of what it reads.

    `axes` are the ranges of its axes, `reads` a place and a box each, `writes` the same. `parts` are its
    sums: in any but the first part it adds to what there is, in any but the last it leaves a sum, in the
    place `accumulators`.
    """

    operator: Operator
    cut: Cut
    axes: Box
    reads: tuple[tuple[Seen, Box], ...]
    writes: tuple[str, Box]
    sides: tuple[int, ...]
    parts: tuple[Part, ...] = ()
    accumulators: str = ""
    split: frozenset[int] = frozenset()
    shares: bool = False


@dataclass(frozen=True, slots=True)
class Turns:
    """A loop's ranges: `tile` positions a turn of the range `of`; or turn by turn those of `tables`."""

    name: str
    tile: int = 0
    of: Named | Fixed = Fixed(0, 0)
    tables: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """The turns that tables list."""
        return len(next(iter(self.tables.values())))


@dataclass(frozen=True)
class For:
    """A loop around some steps."""

    turns: Turns
    body: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A whole tensor crosses (`load`, `store`), or moves on chip (`move`): `bytes` between two addresses."""

    direction: str
    array: str
    address: int
    bytes: int
    to: int = 0


@dataclass(frozen=True, slots=True)
class WholeRead:
    """A value that an operator reads, or writes, whole: at an address on chip, or in DRAM (`array`)."""

    name: str
    address: int | None
    array: str | None
    offset: int
    kind: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class RunWhole:
    """An operator runs on whole operands. `streamed` bytes cross beside those of copies: its weights, and
    operands that stay in DRAM."""

    operator: Operator
    reads: tuple[WholeRead, ...]
    writes: tuple[WholeRead, ...]
    weights: int
    streamed: int
    shares: bool


Step = Allocate | Give | Copy | Compute | For | Transfer | RunWhole


@dataclass(frozen=True)
class Program:
    """All steps of a plan, with its arrays and places, by their ids."""

    arrays: dict[str, Array]
    places: dict[str, Place]
    steps: tuple[Step, ...]
    pad: int
