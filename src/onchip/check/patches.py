"""Tensors in patches: the check against the geometry, and the walk that streams them.

The patch walk of windows takes the channels in groups (of a depthwise convolution, a pool or padding, one
input channel; of a convolution, those that an output channel sums over), and in each group the output strip
by strip, a strip being one row of patches. For a strip it needs the rows of patches of the input that its
windows touch, of all channels of the group. They pass through a *ring* of n such rows: the next row of
patches takes the place of the one n rows above it.

The ring must have enough rows of patches that none comes twice. Let a(s) be the first row of patches that
strip s touches, b(s) the last, and B(s) the largest b of the strips up to s: the last row that has come when
strip s is made. The ring then holds rows B(s) - n + 1 to B(s). Strip s finds all its rows if and only if
a(s) >= B(s) - n + 1, so n = max over s of B(s) - a(s) + 1 is enough, and one less is not. No row that a later
strip needs is lost on the way: B never falls, so row r is overwritten when r + n comes, and any strip from
then on touches no row below B - n + 1 > r.

With windows that are not dilated, a and b never fall either (a window moves down, and ends at the map), so
B(s) = b(s), and n is the most rows that one strip spans. Dilated ones may touch a row, let it go and touch it
again: a tap that was in the padding above the map comes into it later. Then n is more than any strip spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

from onchip.check.operator_walk import WINDOWED, WindowShape, window_shape
from onchip.check.rules import broken
from onchip.network import Geometry, Network, Operator, Patches, Tensor
from onchip.network.windows import Window

__all__ = ["patch_pieces", "prove_patches", "ring_rows"]

MAX_ROWS = 1 << 20
"""The most rows of output of a walk that is followed."""


def prove_patches(network: Network) -> None:
    """Refuse patches that contradict the geometry of a tensor's map. Raises `Broken`."""
    if all(t.patches is None for t in network.tensors):
        return
    for op in network.operators:
        g = op.geometry
        if g is None:
            continue
        if len(op.outputs) == 1:
            _same(network, op, op.outputs[0], g.output, g)
        for t in op.inputs if g.promises else ():
            if g.kind == "elementwise":
                _repeated(network, op, t, g)
            elif g.kind == "concat":
                _same_plane(network, op, t, g)
            elif t == op.inputs[0]:
                _same(network, op, t, g.input, g)


def _map(shape: Sequence[int], g: Geometry) -> tuple[int, int, int] | None:
    """Return channels of all images, rows and columns; None unless the shape has four dimensions."""
    if len(shape) != 4:
        return None
    return (
        (shape[0] * shape[1], shape[2], shape[3])
        if g.layout == "NCHW"
        else (shape[0] * shape[3], shape[1], shape[2])
    )


def _same(network: Network, op: Operator, t: int, shape: Sequence[int], g: Geometry) -> None:
    stored, stated = network.tensors[t].patches, _map(shape, g)
    if stored is not None and stated is not None and _sides(stored) != stated:
        _contradicted(network, op, t, stored, stated)


def _repeated(network: Network, op: Operator, t: int, g: Geometry) -> None:
    """Refuse a broadcast operand unless it has one row or column for all, and channels that repeat evenly."""
    stored, stated = network.tensors[t].patches, _map(g.output, g)
    if stored is None or stated is None or min(stated) < 1:
        return
    (channels, *plane), (all_channels, *whole) = _sides(stored), stated
    if all_channels % channels or any(n not in (1, size) for n, size in zip(plane, whole, strict=True)):
        _contradicted(network, op, t, stored, stated)


def _same_plane(network: Network, op: Operator, t: int, g: Geometry) -> None:
    stored, stated = network.tensors[t].patches, _map(g.output, g)
    if stored is not None and stated is not None and _sides(stored)[1:] != stated[1:]:
        _contradicted(network, op, t, stored, stated)


def _sides(stored: Patches) -> tuple[int, int, int]:
    return stored.channels, stored.rows, stored.columns


def _contradicted(
    network: Network, op: Operator, t: int, stored: Patches, stated: tuple[int, int, int]
) -> NoReturn:
    says, lies = (" x ".join(map(str, sides)) for sides in (stated, _sides(stored)))
    broken("patches", f"{network.tensors[t].name} lies in patches of {lies}; {op.name} says {says}")


# -- the walk ----------------------------------------------------------------------------------------------


def patch_pieces(network: Network, operator: int, streamed: Sequence[int], weights: int) -> int | str:
    """Return the bytes of scratch with which operands in patches stream and nothing comes twice.

    Or, in words, why none suffice. `streamed` are root tensors in patches. `weights` are the bytes of weights
    that pass through the same scratch.
    """
    op = network.operators[operator]
    g = op.geometry
    if all(t in op.outputs for t in streamed):  # all inputs are on chip: any patch can be made at any time
        return sum(_patch(network.tensors[t]) for t in streamed)
    if g is None or len(op.outputs) != 1 or not op.inputs:
        return f"{op.name} states no geometry, or has not one output and an input"
    for t in streamed:
        if t not in op.outputs and [i for i in op.inputs if network.root[i] == t] != [t]:
            return f"{network.tensors[t].name} is read through a view"
    if g.kind in ("elementwise", "concat"):
        return _patch_by_patch(network, op, streamed, channels=g.kind == "concat")
    if g.kind in WINDOWED or g.kind == "pad":
        return _windows(network, op, g, streamed, weights)
    return f"nothing is known of operators of kind {g.kind} in patches"


def _patch(tensor: Tensor) -> int:
    """Return the bytes of one patch."""
    p = tensor.patches
    assert p is not None
    return p.height * p.width * _element(tensor)


def _element(tensor: Tensor) -> int:
    assert tensor.patches is not None
    return tensor.bytes // tensor.patches.elements


def _patch_by_patch(network: Network, op: Operator, streamed: Sequence[int], *, channels: bool) -> int | str:
    """Return the bytes of one patch of each streamed operand; their `channels` may differ (a concat's)."""
    out = network.tensors[op.outputs[0]]
    for operand in map(network.tensors.__getitem__, streamed):
        alike = operand.patches
        if channels and alike is not None and out.patches is not None:
            alike = replace(alike, channels=out.patches.channels)
        if alike != out.patches:
            return f"{operand.name} does not lie in the patches of {out.name}"
    return sum(_patch(network.tensors[t]) for t in streamed)


def _windows(network: Network, op: Operator, g: Geometry, streamed: Sequence[int], weights: int) -> int | str:
    shape = _padding(op.name, g) if g.kind == "pad" else window_shape(op.name, g)
    if isinstance(shape, str):
        return shape
    first, out = network.tensors[op.inputs[0]], network.tensors[op.outputs[0]]
    need = 0
    for t in streamed:
        if t == out.id:
            if out.patches is None or _sides(out.patches) != _map(g.output, g):
                return f"{out.name} does not lie in patches as {op.name} says"
            need += _patch(out)
        elif t != first.id:
            return f"{network.tensors[t].name} is not the input that the windows read"
        else:
            stored = first.patches
            if stored is None or _sides(stored) != _map(g.input, g):
                return f"{first.name} does not lie in patches as {op.name} says"
            if shape.rows.outputs > MAX_ROWS:
                return f"{op.name} is too large for a proof ({shape.rows.outputs:,} rows)"
            strip = 1 if out.patches is None else out.patches.height
            line = stored.grid[1] * stored.width * stored.height * _element(first)
            need += shape.fan_in * ring_rows(shape.rows, strip, stored.height) * line
            need += -(-weights // shape.groups)
    return need


def _padding(name: str, g: Geometry) -> WindowShape | str:
    """Return padding as windows of one element, over one channel at a time; or why it is not complete."""
    before, after = _map(g.input, g), _map(g.output, g)
    if before is None or after is None or len(g.padding) != 4 or min(*before, *after) < 1:
        return f"{name} does not say how it pads"
    (channels, height, width), (out_channels, rows, columns) = before, after
    top, left, bottom, right = g.padding
    if g.input[0] != g.output[0] or (channels, height + top + bottom, width + left + right) != (
        out_channels,
        rows,
        columns,
    ):
        return f"{name} does not pad its input to its output"
    row, column = Window(height, rows, before=top), Window(width, columns, before=left)
    images, alone = g.input[0], channels // g.input[0]
    return WindowShape(images, alone, alone, alone, row, column)


def ring_rows(axis: Window, strip: int, patch: int) -> int:
    """Return the rows of patches, `patch` rows each, that a ring needs for strips of `strip` output rows.

    This is n of the proof above; 1 if no window reads anything.
    """
    most, came = 1, -1
    for start in range(0, axis.outputs, strip):
        first, last = axis.size, -1
        for o in range(start, min(start + strip, axis.outputs)):
            top = o * axis.stride - axis.before
            low = max(0, -(top // axis.dilation))  # the taps that lie in the map
            high = min(axis.taps - 1, (axis.size - 1 - top) // axis.dilation)
            if low <= high:
                first = min(first, top + low * axis.dilation)
                last = max(last, top + high * axis.dilation)
        if last >= 0:
            came = max(came, last // patch)
            most = max(most, came - first // patch + 1)
    return most
