"""The result of all slices of a leaf, computed at once.

A leaf may have a hundred thousand slices of one element each, and a call of a kernel for each would take
minutes. So one call makes all of them from the operands as they are when the leaf begins. Every slice still
fetches and reads its own operands; it takes its part of the result only if it reads what that was made from.
Of the innermost slices the first `ONE_BY_ONE` run so; the others, which are like them, run at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onchip.run.tiled.nests.forms import Span

__all__ = ["LEAST_SLICES", "ONE_BY_ONE", "Ahead"]

Array = np.ndarray[Any, Any]

LEAST_SLICES = 16
"""With fewer slices each calls its kernel."""

ONE_BY_ONE = 64
"""The turns of the innermost slices that run one by one, each in the scratch."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """`operands` by the number of their use, and the `result`, each with the box that it is."""

    operands: Mapping[int, tuple[Sequence[Span], Array]]
    box: Sequence[Span]
    result: Array

    def part(self, reads: Mapping[int, tuple[Sequence[Span], Array]], box: Sequence[Span]) -> Array | None:
        """Return a slice's part of the result, None if it reads something else than that was made from."""
        for i, (at, value) in reads.items():
            outer, whole = self.operands[i]
            if not _equal(whole[_inside(at, outer)], value):
                return None
        return self.result[_inside(box, self.box)]


def _inside(box: Sequence[Span], outer: Sequence[Span]) -> tuple[slice, ...]:
    return tuple(slice(low - first, high - first) for (low, high), (first, _) in zip(box, outer, strict=True))


def _equal(one: Array, other: Array) -> bool:
    if one.dtype.kind != "f":
        return bool((one == other).all())
    kind = np.dtype(f"i{one.itemsize}")
    return bool((one.view(kind) == other.view(kind)).all())
