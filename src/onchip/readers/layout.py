"""The places of a value's elements inside the tensor that holds them: an exact algebra of affine layouts.

Reshape, transpose, slice and split move no data by themselves; they define the order in which to read it. A
value's layout is a mixed-radix address: each of its dimensions is a list of atoms (size, stride), outermost
first, and the element at some indices lies at `offset` plus the strides of the digits of those indices in the
atoms. This is more general than numpy's strides: `transpose(0, 2, 1, 3)` followed by merging the last two
dimensions, as at the end of every attention block, still has a layout here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

__all__ = ["Layout"]

Atom = tuple[int, int]
"""(size, stride in elements)"""


def _merged(atoms: Sequence[Atom]) -> tuple[Atom, ...]:
    """Return the same digits with as few atoms as possible."""
    result: list[Atom] = []
    for size, stride in atoms:
        if size == 1:
            continue
        if result and result[-1][1] == size * stride:
            result[-1] = (result[-1][0] * size, stride)
        else:
            result.append((size, stride))
    return tuple(result)


@dataclass(frozen=True, slots=True)
class Layout:
    """`dims[i]` are the atoms of dimension i; `offset` is in elements. No dimension has zero elements."""

    offset: int
    dims: tuple[tuple[Atom, ...], ...]

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Layout:
        """Return the layout of a tensor in its own memory: row-major, from offset 0."""
        dims, stride = [], 1
        for size in reversed(shape):
            dims.append(_merged([(size, stride)]))
            stride *= size
        return cls(0, tuple(reversed(dims)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements in each dimension."""
        return tuple(math.prod(n for n, _ in atoms) for atoms in self.dims)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(n for n, _ in chain.from_iterable(self.dims))

    @property
    def contiguous(self) -> bool:
        """True if the elements lie side by side, in order, from `offset` on."""
        atoms = _merged(list(chain.from_iterable(self.dims)))
        return not atoms or (len(atoms) == 1 and atoms[0][1] == 1)

    def reshape(self, shape: Sequence[int]) -> Layout | None:
        """Return the same elements in the same order under another shape; None if it has no layout.

        Raises `ValueError` when the number of elements differs.
        """
        if math.prod(shape) != self.size:
            raise ValueError(f"{self.size} elements cannot take the shape {list(shape)}")
        rest = list(reversed(_merged(list(chain.from_iterable(self.dims)))))  # outermost last
        dims: list[tuple[Atom, ...]] = []
        for need in shape:
            atoms: list[Atom] = []
            while need > 1:
                size, stride = rest.pop()
                if need % size == 0:
                    atoms.append((size, stride))
                    need //= size
                elif size % need == 0:
                    atoms.append((need, stride * (size // need)))
                    rest.append((size // need, stride))
                    need = 1
                else:
                    return None
            dims.append(_merged(atoms))
        return Layout(self.offset, tuple(dims))

    def transpose(self, permutation: Sequence[int]) -> Layout:
        """Return the layout whose dimension i is dimension `permutation[i]`."""
        return Layout(self.offset, tuple(self.dims[i] for i in permutation))

    def slice(self, axis: int, start: int, count: int, step: int = 1) -> Layout | None:
        """Return `count` indices of one dimension, `step` apart, from `start`; None without a layout."""
        cut = _cut(self.dims[axis], start, count, step)
        if cut is None:
            return None
        offset, atoms = cut
        return Layout(self.offset + offset, (*self.dims[:axis], atoms, *self.dims[axis + 1 :]))


def _cut(atoms: tuple[Atom, ...], start: int, count: int, step: int) -> tuple[int, tuple[Atom, ...]] | None:
    """Return offset and atoms of a range of one dimension; None if it has none."""
    if not atoms:
        return 0, ()
    (_, stride), inner = atoms[0], atoms[1:]
    width = math.prod(n for n, _ in inner)
    if count == 1:
        step = 1
    if start % width == 0 and step % width == 0:  # whole digits, or every step-th of them, with inner digit 0
        if width == 1:
            return start * stride, _merged([(count, step * stride)])
        return (start // width) * stride, _merged([(count, step // width * stride)])
    if step == 1 and start % width == 0 and count % width == 0:
        return (start // width) * stride, _merged([(count // width, stride), *inner])
    last = start + (count - 1) * step
    if start // width == last // width:  # within one digit of the outer atom
        deeper = _cut(inner, start % width, count, step)
        if deeper is not None:
            return (start // width) * stride + deeper[0], deeper[1]
    return None
