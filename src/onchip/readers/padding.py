"""`SAME` padding, which ONNX and TensorFlow Lite define alike."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["same_padding"]


def same_padding(
    size: Sequence[int],
    result: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    *,
    more_before: bool = False,
) -> tuple[int, int, int, int]:
    """Return (top, left, bottom, right); sizes are (height, width). An odd rest goes behind by default."""
    before, after = [], []
    for axis in (0, 1):
        span = (kernel[axis] - 1) * dilation[axis] + 1
        total = max(0, (result[axis] - 1) * stride[axis] + span - size[axis])
        small, large = total // 2, total - total // 2
        before.append(large if more_before else small)
        after.append(small if more_before else large)
    return before[0], before[1], after[0], after[1]
