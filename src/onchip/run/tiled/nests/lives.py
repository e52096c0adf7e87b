"""The life of a buffer in the arena from its begin to its end, and which of its elements are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onchip.base.errors import Mismatch
from onchip.run.arena import Claim
from onchip.run.poison import poison_of
from onchip.run.state import State
from onchip.run.tiled.nests.forms import Span

__all__ = ["FINAL", "NOTHING", "PARTIAL", "Accumulators", "Life", "in_slots"]

Array = np.ndarray[Any, Any]
States = np.ndarray[Any, np.dtype[np.uint8]]

Places = tuple[slice | Array, ...]

NOTHING, PARTIAL, FINAL = 0, 1, 2
"""The states of an element: not made in this life, a sum that is not complete, there."""


class Accumulators:
    """Places for partial sums, `slot` bytes each in `room`, of the positions `region` of each side.

    Without a region they are the places of a life's own elements, as many and in the same order. Values too
    wide for their slots, as a plan for smaller elements may have, are counted only.
    """

    def __init__(self, room: Array, slot: int, shape: Sequence[int], region: Sequence[Span] | None) -> None:
        self.room, self.slot, self.shape, self.region = room, slot, tuple(shape), region
        self.values: Array | None = None

    def of(self, kind: np.dtype[Any]) -> Array:
        """Return the places as values of a type."""
        if self.values is None or self.values.dtype != kind:
            self.values = in_slots(self.room, self.slot, self.shape, kind)
        return self.values

    def at(self, box: Sequence[Span], places: Places) -> Places:
        """Return the places of a box, `places` among the elements."""
        if self.region is None:
            return places
        if any(a < low or b > high for (a, b), (low, high) in zip(box, self.region, strict=True)):
            raise Mismatch(f"accumulators have {_text(self.region)}, not {_text(box)}")
        return tuple(slice(a - low, b - low) for (a, b), (low, _) in zip(box, self.region, strict=True))


def in_slots(room: Array, slot: int, shape: Sequence[int], kind: np.dtype[Any]) -> Array:
    """Return values of a type in slots of some bytes; beside the room if they do not fit."""
    if kind.itemsize > slot or int(np.prod(shape, dtype=np.int64)) * slot > room.size:
        return np.zeros(shape, kind)
    strides = [slot * int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
    return np.ndarray(tuple(shape), kind, room.data, 0, strides)


class Life:
    """A part of a buffer, the positions `region` of each side, as `data` in the arena.

    `states` are those of its elements, None if all are final. `claim` owns the bytes [start, end), none if
    they are counted only. `beside` are lives that share the bytes: writing here ends what was there.
    Along the side `turning` it is a ring: position i lies at place i modulo the places there.
    """

    def __init__(
        self,
        state: State,
        name: str,
        region: Sequence[Span],
        data: Array,
        states: States | None,
        place: Span | None,
        claim: Claim,
        turning: int | None = None,
    ) -> None:
        self.state, self.name, self.region, self.data = state, name, tuple(region), data
        self.states, self.place, self.claim, self.turning = states, place, claim, turning
        self.beside: list[Life] = []
        self.wide: Array | None = None
        """Sums that are not complete, of elements that are too narrow for them: at a buffer's bytes all the
        same."""
        self.accumulators: Accumulators | None = None
        """The places of sums that are not complete, if they are wider than elements."""
        self.gone: list[Array] = []
        """Of a whole operand, for each byte of an element: the elements that were written over."""
        self.marks: list[Array] = []
        """Of the output over it, the same bytes: what it writes is gone below."""

    def at(self, box: Sequence[Span], user: str) -> Places:
        """Return the places of a box. Raises `Mismatch` if it is not all here, or no longer its owner's.

        Of an empty box, as a window that lies in the padding reads, nothing has to be here.
        """
        if any(a >= b for a, b in box):
            return tuple(slice(0, b - a) if b > a else slice(0, 0) for a, b in box)
        if any(a < low or b > high for (a, b), (low, high) in zip(box, self.region, strict=True)):
            wanted, here = (_text(spans) for spans in (box, self.region))
            raise Mismatch(
                f"{self.name}, used by {user}: the scratch has {here} of it, not {wanted}"
                f" ({self.state.where()})"
            )
        if self.place is not None:
            self.state.expect_owner(*self.place, self.claim.owner, f"used by {user}")
        return self._places(box)

    def _places(self, box: Sequence[Span]) -> Places:
        found: list[slice | Array] = [
            slice(a - low, b - low) for (a, b), (low, _) in zip(box, self.region, strict=True)
        ]
        if self.turning is not None:
            (low, high), n = box[self.turning], self.data.shape[self.turning]
            first = low % max(n, 1)
            whole = first + high - low <= n
            found[self.turning] = slice(first, first + high - low) if whole else np.arange(low, high) % n
        return tuple(found)

    def turn(self, region: Sequence[Span]) -> None:
        """Let a ring have other positions: those that it had before are still there, the others are not yet.

        Raises `Mismatch` for more positions than it has places.
        """
        side = self.turning
        assert side is not None
        assert self.states is not None
        (low, high), (first, end) = region[side], self.region[side]
        if high - low > self.data.shape[side]:
            raise Mismatch(f"{self.name}: {high - low} positions in a ring of {self.data.shape[side]}")
        self.region = tuple(region)
        for span in ((low, min(high, max(low, first))), (max(low, min(end, high)), high)):
            at = self._places([span if i == side else one for i, one in enumerate(region)])
            self.states[at] = NOTHING

    def read(self, box: Sequence[Span], user: str) -> Array:
        """Return a box of finished elements, poison for those that are not.

        Raises `Mismatch` for elements that have no poison, or were written over.
        """
        at = self.at(box, user)
        if any(gone[at].any() for gone in self.gone):
            raise Mismatch(f"{self.name}, read by {user}: the output over it was written there before")
        found = self.data[at]
        if self.states is not None and (missing := self.states[at] != FINAL).any():
            if found.dtype.kind != "f":
                raise Mismatch(f"{self.name}, read by {user}: {int(missing.sum()):,} elements are not made")
            found = np.where(missing, found.dtype.type(poison_of((), found.dtype)), found)
        return found

    def there(self, box: Sequence[Span]) -> Array:
        """Return a box as it is. Raises `Mismatch` unless all of its elements are finished."""
        at = self.at(box, "slices")
        if self.states is not None and (self.states[at] != FINAL).any():
            raise Mismatch(f"{self.name}: not all of it is made")
        return self.data[at]

    def sum(self, box: Sequence[Span], user: str) -> Array:
        """Return a box of sums that are not complete. Raises `Mismatch` if some are not there."""
        at = self.at(box, user)
        if self.states is None or (self.states[at] != PARTIAL).any():
            raise Mismatch(f"{self.name}, made by {user}: its partial sums are gone ({self.state.where()})")
        if self.accumulators is not None and self.accumulators.values is not None:
            return self.accumulators.values[self.accumulators.at(box, at)].copy()
        return self.data[at] if self.wide is None else self.wide[at]

    def unfinished(self, box: Sequence[Span], at: Places) -> Array | None:
        """Return a box of sums that are not complete, where they do not lie among the elements."""
        if self.accumulators is not None:
            values = self.accumulators.values
            return None if values is None else values[self.accumulators.at(box, at)].copy()
        return None if self.wide is None else self.wide[at]

    def resume(self, box: Sequence[Span], sums: Array) -> None:
        """Take a box of sums that are not complete from DRAM."""
        if self.accumulators is None:
            self.wide = sums.copy()
        else:
            places = self.accumulators.at(box, self.at(box, "DRAM"))
            self.accumulators.of(sums.dtype)[places] = sums

    def put(self, box: Sequence[Span], value: Array, state: int, user: str) -> None:
        """Write a box, each element in this state."""
        at = self.at(box, user)
        if state == PARTIAL and self.accumulators is not None:
            self.accumulators.of(value.dtype)[self.accumulators.at(box, at)] = value
        elif state == PARTIAL and self.data.dtype != value.dtype:
            if self.wide is None:
                self.wide = np.zeros(self.data.shape, value.dtype)
            self.wide[at] = value
        else:
            self.data[at] = value
        if self.states is not None:
            self.states[at] = state
        for other in self.beside:
            if other.states is not None:
                other.states[at] = NOTHING
        for marks in self.marks:
            marks[at] = True


def _text(spans: Sequence[Span]) -> str:
    return "[" + ", ".join(f"{low}:{high}" for low, high in spans) + "]"
