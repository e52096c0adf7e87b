"""The elements that a `Resize` reads along each axis, for every coordinate transformation and mode."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import numpy as np

from onchip.readers.constants import Constants
from onchip.readers.onnx_graph import Node

__all__ = ["resized"]

Step = tuple[int, int, int, int]
"""(stride, before, span, per) of an axis: index o reads [floor((o * stride - before) / per), ... + span)."""

SPARE = 64
"""Coordinates are rounded as floats: a 64th of an element on both sides allows for that."""


def resized(
    node: Node, constants: Constants, read: Sequence[int], made: Sequence[int]
) -> tuple[Step | None, ...] | None:
    """Return the step of every axis, None for one that stays the same; None if the steps are not known."""
    mode = _word(node, "mode", "nearest")
    # A node with only scales behind its operand is that of opset 10, which had one transformation.
    old = len(node.inputs) == 2
    how = "asymmetric" if old else _word(node, "coordinate_transformation_mode", "half_pixel")
    if node.integer("antialias", 0) or mode not in _AROUND or len(read) != len(made):
        return None
    if _word(node, "keep_aspect_ratio_policy", "stretch") != "stretch":
        return None  # one factor for all axes, which their sizes do not imply
    if not _scales_agree(node.inputs[1 if old else 2 :][:1], constants, read, made):
        return None
    lower, upper = _AROUND[mode]
    steps: list[Step | None] = []
    for size, result in zip(read, made, strict=True):
        if size == result:
            steps.append(None)
            continue
        found = _coordinate(how, size, result)
        if found is None:
            return None
        # The coordinate (o * stride + first) / per, less the spare, rounded down, and from there on.
        stride, first, per = (n * SPARE for n in found)
        before = -(first - per // SPARE + lower * per)
        common = gcd(stride, before, per)
        steps.append((stride // common, before // common, upper - lower + 2, per // common))
    return tuple(steps)


_AROUND = {"nearest": (0, 1), "linear": (0, 1), "cubic": (-1, 2)}
"""The first and last element read around a coordinate rounded down."""


def _coordinate(how: str, size: int, result: int) -> tuple[int, int, int] | None:
    """Return (stride, first, per): index o lies at (o * stride + first) / per of the operand."""
    match how:
        case "asymmetric":
            return size, 0, result
        case "pytorch_half_pixel" if result == 1:
            return 0, 0, 1
        case "half_pixel" | "pytorch_half_pixel":
            return 2 * size, size - result, 2 * result
        case "align_corners":
            return (size - 1, 0, result - 1) if result > 1 else (0, 0, 1)
    return None


def _scales_agree(
    stated: Sequence[str], constants: Constants, read: Sequence[int], made: Sequence[int]
) -> bool:
    """Return whether stated scales, if any, agree with the sizes, so that coordinates follow from the sizes:
    to within half of the spare, at the last element."""
    if not any(stated):
        return True
    value = constants.value(stated[0]) if stated[0] in constants else None
    if value is None or value.size not in (0, len(read)):
        return False
    factors = np.asarray(value, np.float64).reshape(-1)
    return not value.size or all(
        f > 0 and abs(m / f - n) < 0.5 / SPARE for f, n, m in zip(factors, read, made, strict=True)
    )


def _word(node: Node, name: str, default: str) -> str:
    found = node.attribute(name)
    return default if found is None else found.s.decode("utf-8", "replace")
