"""The sides of a tensor of which an operator reads a view: half of the channels, one of three projections.

A view is a range of bytes of its root. Where it takes whole indices of the root's outermost side, what an
operator needs of the view is a part of the root, by the same axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from onchip.network.network import Network
from onchip.network.operators import Side

__all__ = ["Seen", "sides_in_root"]

Seen = tuple[tuple[Side, tuple[int, int] | None], ...]
"""The sides of a root as an operator reads it, and (first, count) of the view along the side that it cuts."""


def sides_in_root(
    network: Network, tensor: int, sides: Sequence[Side], extents: Sequence[int], *, parts: bool
) -> Seen:
    """Return the sides of a view's root as an operator reads them that reads the view along `sides`.

    `extents` are the sizes of the operator's axes. The outermost side of more than one index becomes a part
    of the root's. With `parts` the root is divided into parts of the view's size: they are a side of their
    own, of which the operator reads one index. Where the view does not begin and end with an index of its
    outermost side, the root has but one side, of which the operator needs the view.
    """
    view, root = network.tensors[tensor], network.tensors[network.root[tensor]]
    if view.bytes == root.bytes:
        return tuple((side, None) for side in sides)
    count = prod(side.size for side in sides)
    at = next((i for i, side in enumerate(sides) if side.size > 1), len(sides))
    outer = sides[at] if at < len(sides) else Side(1)
    inner = tuple(sides[at + 1 :])
    unit = view.bytes // outer.size
    first, left = divmod(network.offset[tensor], unit)
    size, rest = divmod(root.bytes, unit)
    if left or rest:
        element = view.bytes // count
        begin = network.offset[tensor] // element
        return ((Side(root.bytes // element, before=-begin, span=count), (begin, count)),)
    behind = tuple((side, None) for side in inner)
    if parts:
        one = first // outer.size
        return ((Side(size // outer.size, before=-one), (one, 1)), (outer, None), *behind)
    return ((_moved(outer, size, first, extents), (first, outer.size)), *behind)


def _moved(side: Side, size: int, first: int, extents: Sequence[int]) -> Side:
    """Return a view's side as one of its root's, of `size` indices; the view begins at `first`."""
    last = 0 if side.axis < 0 else extents[side.axis] - 1
    low, high = ((o * side.stride - side.before) // side.per for o in (0, last))
    if 0 <= low <= high and high + side.span <= side.size:
        return Side(size, side.axis, side.stride, side.before - first * side.per, side.span, side.per)
    # Windows that go beyond the view must not see what lies beside it in the root: all of the view is needed.
    return Side(size, before=-first, span=side.size)
