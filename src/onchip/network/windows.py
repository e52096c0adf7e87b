"""Windows: the positions of an operand that positions of an output read, along one axis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from onchip.network.operators import Geometry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Range", "Window", "last_readers", "window_of"]

Range = tuple[int, int]
"""Positions [first, end)."""


@dataclass(frozen=True, slots=True)
class Window:
    """Output position o of `outputs` reads the inputs o * stride - before + k * dilation that exist.

    There are `size` inputs; one position reads within `span` of them, the first and the last included. With
    stride 0 every output position reads the same.
    """

    size: int
    outputs: int
    stride: int = 1
    before: int = 0
    span: int = 1
    dilation: int = 1

    @property
    def taps(self) -> int:
        """Inputs that one position reads, those beyond the ends included."""
        return (self.span - 1) // self.dilation + 1

    @property
    def clips(self) -> bool:
        """True if the window of any output position extends beyond an end of the inputs."""
        return self.before > 0 or (self.outputs - 1) * self.stride - self.before + self.span > self.size

    def start(self, output: int) -> int:
        """Return the first input that output positions from `output` on read."""
        return min(max(output * self.stride - self.before, 0), self.size)

    def end(self, outputs: int) -> int:
        """Return one past the last input that output positions [0, `outputs`) read."""
        if outputs <= 0:
            return 0
        return min(max((outputs - 1) * self.stride - self.before + self.span, 0), self.size)

    def reads(self, outputs: Range) -> Range:
        """Return the inputs that some output positions read, those between included; (0, 0) for none."""
        first, end = outputs
        if first >= end:
            return 0, 0
        low, high = self.start(first), self.end(end)
        return (low, high) if low < high else (0, 0)

    def missing(self, outputs: Range) -> Range:
        """Return the number of positions read by some outputs before the first input, and after the last."""
        first, end = outputs
        if first >= end:
            return 0, 0
        low = first * self.stride - self.before
        high = (end - 1) * self.stride - self.before + self.span
        return max(0, min(high, 0) - low), max(0, high - max(low, self.size))

    def mirrored(self) -> Window:
        """Return the same window with positions counted from the other end on both sides."""
        return replace(self, before=(self.outputs - 1) * self.stride - self.before + self.span - self.size)


def window_of(geometry: Geometry, axis: int, size: int, outputs: int) -> Window:
    """Return the window of a geometry along axis 0 (rows) or 1 (columns); one position without a kernel."""
    stride, dilation = geometry.stride or (1, 1), geometry.dilation or (1, 1)
    before = geometry.padding[axis] if geometry.padding else 0
    span = ((geometry.kernel or (1, 1))[axis] - 1) * dilation[axis] + 1
    return Window(size, outputs, stride[axis], before, span, dilation[axis])


def last_readers(window: Window, *, reverse: bool = False) -> NDArray[np.int64]:
    """Return for each input position the last output position that reads it, in reverse the first, or -1.

    A window reads its taps, and no position between them.
    """
    import numpy as np

    position = np.arange(window.size, dtype=np.int64)
    found = np.full(window.size, -1, dtype=np.int64)
    for tap in range(window.taps):
        at = position + window.before - tap * window.dilation
        if window.stride:
            output, rest = np.divmod(at, window.stride)
            hit = (rest == 0) & (output >= 0) & (output < window.outputs)
        else:
            output, hit = np.full_like(at, 0 if reverse else window.outputs - 1), at == 0
        better = hit & ((found < 0) | (output < found if reverse else output > found))
        found[better] = output[better]
    return found
