"""What is read when an operator writes over one of its inputs, and the least room in which operands stream.

Written from the tables of docs/plan-program.md, byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from math import prod
from typing import NamedTuple

from test_overlap import steps
from test_patches import strips_of, suffices

from onchip.network import Geometry, Network, Operator

__all__ = ["Foul", "loses_a_byte", "room_to_stream"]


class Axis(NamedTuple):
    """Output position o reads positions o * stride - before + k * dilation, k < taps, of `size`."""

    size: int
    outputs: int
    taps: int
    stride: int
    dilation: int
    before: int


class Foul(Exception):
    """What a plan does and must not, or states and is not so."""


def loses_a_byte(network: Network, op: Operator, x: int, by: int) -> bool:
    """Whether `op` reads a byte of root tensor `x`, `by` above its output, that it has overwritten.

    Raises `Foul` where no order is known.
    """
    g, offset = op.geometry, {v.tensor: v.offset for v in network.views}
    if g is None or len(op.outputs) != 1:
        raise Foul(f"{op.name} has no order of reading")
    for t in op.inputs:
        if network.root[t] != x:
            continue
        gone: set[int] = set()
        first = by + offset.get(t, 0)
        for read, written in _times(network, op, g, t):
            if any(first + byte in gone for byte in read):
                return True
            gone.update(written)
    return False


def _times(
    network: Network, op: Operator, g: Geometry, t: int
) -> Iterator[tuple[range | list[int], list[int]]]:
    """Bytes of operand `t` that are read, bytes of the output that are written, at each time."""
    out, operand = network.tensors[op.outputs[0]], network.tensors[t]
    patched = out.patches is not None or operand.patches is not None
    if patched and (g.kind != "elementwise" or (g.pixels, g.channels) != (1, 0)):
        raise Foul(f"{op.name} walks in patches")
    most = max(network.tensors[i].bytes for i in op.inputs)
    if (
        g.kind in ("elementwise", "rowwise") and operand.bytes < most
    ):  # perhaps broadcast: any byte, at any time
        for _, written in _of_largest(network, op, g):
            yield range(operand.bytes), written
        return
    if g.kind == "elementwise" and patched:
        if operand.patches != out.patches or out.patches is None:
            raise Foul(f"{op.name} is between other patches")
        yield from _element_by_element(out.patches.elements, operand.bytes, out.bytes, g.traversal)
        return
    if g.kind == "elementwise" and (g.pixels, g.channels) == (1, 0):
        if g.input != g.output:
            raise Foul(f"{op.name} is element-wise between other shapes")
        yield from _element_by_element(prod(g.output), operand.bytes, out.bytes, g.traversal)
        return
    if g.kind in ("elementwise", "rowwise", "concat"):
        shape = (*g.output[:-1], operand.bytes // max(1, prod(g.output[:-1])))
        g = Geometry(
            "rowwise",
            shape,
            g.output,
            layout=g.layout,
            traversal=g.traversal,
            pixels=g.pixels,
            channels=g.channels,
        )
        if operand.bytes % prod(shape[:-1]):
            raise Foul(f"{op.name} has no pixels of {operand.name}")
        yield from _bytes(g, 1, out.bytes // prod(g.output))
        return
    if t != op.inputs[0]:
        raise Foul(f"{op.name} reads {operand.name} in no known order")
    if operand.bytes % prod(g.input) or out.bytes % prod(g.output):
        raise Foul(f"{op.name} has other sizes than its geometry")
    yield from _bytes(g, operand.bytes // prod(g.input), out.bytes // prod(g.output))


def _of_largest(network: Network, op: Operator, g: Geometry) -> Iterator[tuple[range | list[int], list[int]]]:
    largest = max(op.inputs, key=lambda i: network.tensors[i].bytes)
    return _times(network, op, g, largest)


def _element_by_element(n: int, read: int, written: int, way: str) -> Iterator[tuple[list[int], list[int]]]:
    if read % n or written % n:
        raise Foul("is not element by element")
    a, b = read // n, written // n
    for i in range(n) if way == "forward" else range(n - 1, -1, -1):
        yield list(range(i * a, (i + 1) * a)), list(range(i * b, (i + 1) * b))


def _bytes(g: Geometry, read: int, written: int) -> Iterator[tuple[list[int], list[int]]]:
    for ins, outs in steps(g):
        yield (
            [e * read + b for e in ins for b in range(read)],
            [e * written + b for e in outs for b in range(written)],
        )


def room_to_stream(network: Network, op: Operator, streamed: Sequence[int], weights: int) -> int:
    """The least bytes in which a piece of each streamed operand passes, so that none comes twice.

    Raises `Foul` where the operands do not pass in pieces.
    """
    g = op.geometry
    tensors = [network.tensors[t] for t in streamed]
    patched = {t.patches is not None for t in tensors}
    if len(patched) > 1:
        raise Foul(f"{op.name} streams some operands in patches and others not")
    whole = all(t in op.outputs for t in streamed)
    if patched == {True} and whole:
        return sum(_patch(network, t) for t in streamed)
    if g is None or len(op.outputs) != 1:
        raise Foul(f"{op.name} streams in no known pieces")
    for t in streamed:
        if t not in op.outputs and [i for i in op.inputs if network.root[i] == t] != [t]:
            raise Foul(f"{op.name} streams what it reads through a view")
    out = network.tensors[op.outputs[0]]
    if patched == {True} and g.kind in ("elementwise", "concat"):
        for t in tensors:
            a, b = t.patches, out.patches
            assert a is not None
            if b is None or (a.rows, a.columns, a.height, a.width) != (b.rows, b.columns, b.height, b.width):
                raise Foul(f"{t.name} lies in other patches")
            if g.kind == "elementwise" and a.channels != b.channels:
                raise Foul(f"{t.name} has other channels")
        return sum(_patch(network, t) for t in streamed)
    if patched == {False} and g.kind == "elementwise":
        if out.patches is not None or any(t.bytes % prod(g.output) for t in tensors):
            raise Foul(f"{op.name} has no elements of what it streams")
        if any(t is not out and t.bytes < max(network.tensors[i].bytes for i in op.inputs) for t in tensors):
            raise Foul(f"{op.name} may come back to what is broadcast")
        return sum(t.bytes // prod(g.output) for t in tensors)
    if g.kind not in ("conv", "depthwise", "pool", "pad") or (patched == {False} and g.kind == "pad"):
        raise Foul(f"{op.name} has no windows")
    if any(t not in (op.inputs[0], out.id) for t in streamed):
        raise Foul(f"{op.name} streams what no window reads")
    nchw = g.layout == "NCHW"
    images = g.input[0]
    channels, height, width = (g.input[i] for i in ((1, 2, 3) if nchw else (3, 1, 2)))
    outs, rows = (g.output[i] for i in ((1, 2) if nchw else (3, 1)))
    kernel, stride, dilation = g.kernel or (1, 1), g.stride or (1, 1), g.dilation or (1, 1)
    axis = Axis(height, rows, kernel[0], stride[0], dilation[0], (g.padding or (0,))[0])
    groups = channels if g.kind != "conv" else g.groups
    fan = channels // groups
    need = 0
    for t in tensors:
        element = t.bytes // (t.patches.elements if t.patches else prod(g.output if t is out else g.input))
        if t is out:
            need += _patch(network, t.id) if t.patches else element * (1 if nchw else outs)
        elif t.patches:
            strip = out.patches.height if out.patches else 1
            reads = strips_of(axis, strip, t.patches.height)  # type: ignore[arg-type]
            ring = next(n for n in count(1) if suffices(reads, n))
            across = -(-t.patches.columns // t.patches.width) * t.patches.width
            need += fan * ring * across * t.patches.height * element + -(-weights // groups)
        else:
            if nchw and outs // groups > 1:
                raise Foul(f"{op.name} goes over its input for every output channel")
            spanned = min((kernel[0] - 1) * dilation[0] + 1, height)
            need += spanned * width * element * (fan if nchw else channels)
    assert images
    return need


def _patch(network: Network, t: int) -> int:
    stored = network.tensors[t].patches
    assert stored is not None
    return stored.height * stored.width * (network.tensors[t].bytes // stored.elements)
