"""The protocol of what makes boxes, and what it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from onchip.network.axes import Buffer, Use
from onchip.run.tiled.nests.forms import Span

__all__ = ["Array", "Kernel", "Read", "Source"]

Array = np.ndarray[Any, Any]

Read = Callable[[int], Array]
"""Returns the box of an operand, by its position, in the sides of its buffer."""


@dataclass(frozen=True, slots=True)
class Source:
    """An operand or weight of an operator: its name and shape in the model, and the operator's use of it.

    What is not `filled` is fetched and counted, but the operator's nodes do not read it by that name.
    """

    name: str
    shape: tuple[int, ...]
    buffer: Buffer
    use: Use
    filled: bool


class Kernel(Protocol):
    """Makes boxes. `approximate` states that their sums may come in another order.

    With `sums` cut, `part` makes a part of a sum and `finish` the result from its total; else `part` makes
    the result.
    """

    approximate: bool
    sums: bool

    def part(self, read: Read, spans: Sequence[Span], *, first: bool) -> Array:
        """Return the box of the result, or of a part of its sum, in the sides of the output's buffer."""

    def finish(self, total: Array, read: Read, spans: Sequence[Span]) -> Array:
        """Return the box of the result, from its complete sum."""
