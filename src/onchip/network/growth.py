"""Tensors that grow: an output that is an input with new rows behind it, as a cache of keys and values.

A buffer for such a tensor has room for more rows than it has. Its blocks, one for each index along the axes
before the one that grows, lie one after the other; in each the rows that are there come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from onchip.network.network import Network
from onchip.network.operators import Side

__all__ = ["Growth", "Rows", "growth_of", "rows_of"]


@dataclass(frozen=True, slots=True)
class Rows:
    """A tensor as `blocks` blocks of `rows` rows of `row_bytes` bytes."""

    blocks: int
    rows: int
    row_bytes: int

    def room(self, rows: int) -> int:
        """Return the bytes of a buffer whose blocks have room for this many rows."""
        return self.blocks * rows * self.row_bytes


@dataclass(frozen=True, slots=True)
class Growth:
    """Operator `operator` writes its first operand, and behind its rows along `axis` those of `new`."""

    operator: int
    axis: int
    new: tuple[int, ...]


def rows_of(network: Network, tensor: int, axis: int) -> Rows | str:
    """Return a tensor as rows along an axis of its shape; or in words why it has none."""
    t = network.tensors[tensor]
    if not 0 <= axis < len(t.shape):
        return f"{t.name} states no shape with an axis {axis}"
    if t.patches is not None:
        return f"{t.name} lies in patches"
    blocks, rows = prod(t.shape[:axis]), t.shape[axis]
    row_bytes, rest = divmod(t.bytes, blocks * rows)
    return (
        f"the rows of {t.name} are no whole bytes" if rest or not row_bytes else Rows(blocks, rows, row_bytes)
    )


def growth_of(network: Network, first: int, last: int) -> Growth | str:
    """Return how tensor `last` grows out of tensor `first`; or in words why it does not.

    The operator is a plain `Concat` with `first` as its first operand, and the shapes differ in one axis. Its
    reach tells that it reads the operand as it lies, and not transposed.
    """
    one, other = network.tensors[first], network.tensors[last]
    maker = network.producer[last]
    if maker is None:
        return f"no operator makes {other.name}"
    op = network.operators[maker]
    plain = op.type == "Concat" and not op.weight_bytes and op.outputs == (last,)
    if not plain or len(op.inputs) < 2 or op.inputs[0] != first:
        return f"{other.name} is not {one.name} with new rows behind it: no Concat makes it so"
    if len(one.shape) != len(other.shape) or not one.shape:
        return f"the shapes of {one.name} and {other.name} are not known"
    differ = [k for k, (a, b) in enumerate(zip(one.shape, other.shape, strict=True)) if a != b]
    if len(differ) != 1 or one.shape[differ[0]] > other.shape[differ[0]]:
        return f"{other.name} does not have the shape of {one.name} with more rows"
    if op.reach is None or op.reach.reads[0] != _as_it_lies(one.shape, other.shape):
        return f"{op.name} does not read {one.name} as it lies"
    [axis] = differ
    before, after = rows_of(network, first, axis), rows_of(network, last, axis)
    for found in (before, after):
        if isinstance(found, str):
            return found
    assert isinstance(before, Rows)
    assert isinstance(after, Rows)
    if (before.blocks, before.row_bytes) != (after.blocks, after.row_bytes):
        return f"the rows of {one.name} and {other.name} differ in size"
    return Growth(maker, axis, tuple(t for t in op.inputs if t != first))


def _as_it_lies(shape: tuple[int, ...], made: tuple[int, ...]) -> tuple[Side, ...]:
    """Return how an operand is read of which every element goes to its own index in a map of shape `made`."""
    axes = iter(range(len(made)))
    axis = [next(axes) if n > 1 else -1 for n in made]
    return tuple(Side(n, axis[k]) for k, n in enumerate(shape) if n > 1)
