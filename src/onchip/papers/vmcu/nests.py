"""The loop nests of layers: matrix product, windows over maps, and the fused inverted bottleneck."""

from __future__ import annotations

from math import prod

from onchip.network import Geometry
from onchip.papers.vmcu.affine import Access, Domain, Form, LoopNest, Operand

__all__ = ["bottleneck_ends", "matrix_product", "window_nest"]


def matrix_product(m: int, n: int, k: int) -> LoopNest:
    """Return Out[m, n] += In[m, k] * Weight[k, n], stored when k is complete (vMCU Fig. 3); in segments."""
    domain = Domain.box(m, n, k)
    read = Operand(domain, Access(((1, 0, 0), (0, 0, 1)), (0, 0)), (k, 1))
    write = Operand(_last(domain, (2,), (m, n, k)), Access(((1, 0, 0), (0, 1, 0)), (0, 0)), (n, 1))
    return LoopNest(domain, read, write)


def window_nest(g: Geometry, segment: int = 1) -> LoopNest:
    """Return a convolution, depthwise layer or pool in NHWC: rows, columns, groups, outputs, window, inputs.

    Channels are counted in segments, which must divide those of a group (of the map where a layer takes each
    channel alone). Padding is no read. Raises `ValueError` for another kind and for other segments.
    """
    match g.kind:
        case "fully_connected":
            rows, k = prod(g.input[:-1]), g.input[-1]
            return matrix_product(rows, _segments(g.output[-1], segment), _segments(k, segment))
        case "conv":
            groups = g.groups
        case "depthwise" | "pool" if g.input[3] == g.output[3]:
            groups = _segments(g.input[3], segment)
        case _:
            raise ValueError(f"{g.kind} is no window whose loops are affine")
    _, height, width, channels = g.input
    _, rows, columns, outputs = g.output
    if g.kind == "conv":
        ins, outs = _segments(channels // groups, segment), _segments(outputs // groups, segment)
    else:
        ins = outs = 1
    (down, right), (dy, dx) = g.stride or (1, 1), g.dilation or (1, 1)
    top, left = (g.padding or (0, 0))[:2]
    sizes = (rows, columns, groups, outs, *g.kernel, ins)
    domain = Domain.box(*sizes)
    y, x = (down, 0, 0, 0, dy, 0, 0), (0, right, 0, 0, 0, dx, 0)
    inside = _within(y, -top, height) + _within(x, -left, width)
    read = Operand(
        domain.where(*inside),
        Access((y, x, (0, 0, ins, 0, 0, 0, 1)), (-top, -left, 0)),
        (width * groups * ins, groups * ins, 1),
    )
    write = Operand(
        _last(domain, (4, 5, 6), sizes),
        Access(((1, 0, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0, 0), (0, 0, outs, 1, 0, 0, 0)), (0, 0, 0)),
        (columns * groups * outs, groups * outs, 1),
    )
    return LoopNest(domain, read, write)


def bottleneck_ends(
    size: int, channels: int, outputs: int, kernel: int, stride: int = 1, segment: int = 1
) -> tuple[Operand, Operand]:
    """Return the read of A and the write of E in the paper's fused inverted bottleneck (5.2) on a square map.

    They share the loops over output rows and columns: every turn reads the `kernel` x `kernel` window of A
    and writes one pixel of E; padding keeps the map's size. Lengths are in segments.
    """
    made, before = -(-size // stride), kernel // 2
    ins, outs = _segments(channels, segment), _segments(outputs, segment)
    window = Domain.box(made, made, kernel, kernel, ins)
    y, x = (stride, 0, 1, 0, 0), (0, stride, 0, 1, 0)
    reads = window.where(*_within(y, -before, size), *_within(x, -before, size))
    read = Operand(reads, Access((y, x, (0, 0, 0, 0, 1)), (-before, -before, 0)), (size * ins, ins, 1))
    pixel = Domain.box(made, made, outs)
    write = Operand(pixel, Access(((1, 0, 0), (0, 1, 0), (0, 0, 1)), (0, 0, 0)), (made * outs, outs, 1))
    # The maps between, B to D, are in the workspace: only the ends meet in the pool.
    return read, write


def _segments(channels: int, segment: int) -> int:
    count, rest = divmod(channels, segment)
    if rest:
        raise ValueError(f"segments of {segment} do not divide {channels} channels")
    return count


def _last(domain: Domain, loops: tuple[int, ...], sizes: tuple[int, ...]) -> Domain:
    """Return the instances at which these loops make their last turn."""
    units = (tuple(-int(e == d) for e in range(len(sizes))) for d in loops)
    return domain.where(*((unit, sizes[d] - 2) for unit, d in zip(units, loops, strict=True)))


def _within(index: tuple[int, ...], offset: int, size: int) -> tuple[Form, Form]:
    """Return 0 <= index + offset < size."""
    return (tuple(-x for x in index), -offset - 1), (index, offset - size)
