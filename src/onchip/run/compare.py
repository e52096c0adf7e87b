"""The reference values, and the comparison of executed bytes with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn
from zlib import crc32

import numpy as np

from onchip.base.errors import Mismatch

if TYPE_CHECKING:
    from onchip.run.streamed.maps import Map, Region

__all__ = ["Comparison", "relative_difference"]

Array = np.ndarray[Any, Any]

TILED_TOLERANCE = 1e-4
"""Largest difference of a tensor made in parts, over the tensor's largest magnitude."""


_PIECE = 1 << 16
"""The elements that are compared at once, so that they stay in a cache."""

ROUNDING = 1e-7
"""Rounding error of sums that cancel out in another order, over the network's largest magnitude (float32)."""


class Comparison:
    """Compares tensors with the reference, and keeps count.

    Without a tolerance every byte must be equal. With one, elements may differ by `tolerance` times the
    largest magnitude of the reference tensor. Tensors that were made in parts, or from such, are
    `approximate`: their floating-point sums have another order. They may differ by 1e-4 of that magnitude, or
    by a rounding error of the network's largest. A view has the bytes of its root (`roots`, by tensor; each
    its own if not given) and is approximate if its root is.
    """

    def __init__(
        self,
        reference: Mapping[int, Array],
        names: Mapping[int, str],
        tolerance: float | None,
        source: str = "unoptimised onnxruntime",
        *,
        roots: Sequence[int] | None = None,
    ) -> None:
        self.reference, self.names, self.tolerance, self.source = reference, names, tolerance, source
        self.roots = roots
        self.comparisons = 0
        self.compared: set[int] = set()
        self._approximate: set[int] = set()  # roots
        self._maps: dict[int, Array] = {}
        self._magnitudes: dict[int, float] = {}
        self.bit_exact = True
        self.max_difference = self.relative_difference = 0.0

    def same(self, tensor: int, found: Array, when: str) -> None:
        """Compare one tensor's value; raises `Mismatch` with `when`, the reader or writer and its place."""
        self._same(tensor, found, self.reference[tensor], when)

    def follow(self, operands: Iterable[int], results: Iterable[int]) -> None:
        """Mark the results of approximate operands as approximate."""
        if self.approximate(operands):
            self.make_approximate(*results)

    def approximate(self, tensors: Iterable[int]) -> bool:
        """Return whether one of these tensors was made in parts, or from such."""
        return not self._approximate.isdisjoint(map(self._root, tensors))

    def make_approximate(self, *tensors: int) -> None:
        """Mark these tensors as approximate: their sums have another order from now on."""
        self._approximate.update(map(self._root, tensors))

    def _root(self, tensor: int) -> int:
        return tensor if self.roots is None else self.roots[tensor]

    def part(self, tensor: int, found: Map, value: Array, region: Region, when: str, exact: bool) -> None:
        """Compare a part of one tensor, as a map; without `exact` the tensor is approximate from now on."""
        if not exact:
            self.make_approximate(tensor)
        where = f"rows {region.rows[0]} to {region.rows[1]}, {when}"
        if tensor not in self._maps:
            if found.size != self.reference[tensor].size:
                self._refuse_shapes(tensor, found.shape, self.reference[tensor].shape, where)
            self._maps[tensor] = found.whole(self.reference[tensor])
        expected = self._maps[tensor][region.slices]
        if value.shape != expected.shape:
            self._refuse_shapes(tensor, value.shape, expected.shape, where)
        self._same(tensor, value, expected, where)

    def _same(self, tensor: int, found: Array, expected: Array, when: str) -> None:
        self.comparisons += 1
        self.compared.add(tensor)
        if found.nbytes != expected.nbytes:
            self._refuse_shapes(tensor, found.shape, expected.shape, when)
        if np.array_equal(_bytes(found), _bytes(expected)):
            return
        difference = largest_difference(found, expected)
        self.bit_exact = False
        magnitude = max(self._magnitude_of(tensor), 1e-30)
        self.max_difference = max(self.max_difference, difference)
        self.relative_difference = max(self.relative_difference, difference / magnitude)
        tolerance = self.tolerance
        approximate = self.approximate((tensor,))
        if tolerance is None and approximate:
            tolerance = TILED_TOLERANCE
        if tolerance is not None and difference <= tolerance * magnitude:
            return
        if approximate and difference <= ROUNDING * self._largest():
            return
        differing = _differing(found, expected)
        raise Mismatch(
            f"tensor {self.names[tensor]}, {when}: {differing:,} of {found.size:,} elements differ from"
            f" {self.source}, by at most {difference:.6g}"
        )

    def _refuse_shapes(
        self, tensor: int, found: tuple[int, ...], expected: tuple[int, ...], when: str
    ) -> NoReturn:
        raise Mismatch(
            f"tensor {self.names[tensor]}, {when}: it has the shape {_times(found)},"
            f" and {_times(expected)} in {self.source}: does the plan's geometry contradict the model?"
        )

    def _magnitude_of(self, tensor: int) -> float:
        if tensor not in self._magnitudes:
            self._magnitudes[tensor] = _magnitude(self.reference[tensor])
        return self._magnitudes[tensor]

    def _largest(self) -> float:
        return max(map(self._magnitude_of, self.reference), default=0.0)

    def digests(self) -> dict[str, str]:
        """Return the CRC-32 of every tensor compared, by name: enough to see which ones an input changes."""
        return {self.names[t]: f"{crc32(_bytes(self.reference[t]).data):08x}" for t in sorted(self.compared)}


def largest_difference(found: Array, expected: Array) -> float:
    """Return the largest absolute difference of two equal shapes; infinite where only one is a number."""
    a, b = found.reshape(-1), expected.reshape(-1)
    pieces = range(0, a.size, _PIECE)
    return max((_largest_difference(a[i : i + _PIECE], b[i : i + _PIECE]) for i in pieces), default=0.0)


def _largest_difference(found: Array, expected: Array) -> float:
    a, b = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (found, expected))
    with np.errstate(invalid="ignore"):
        difference = np.abs(a - b)
    if not np.isnan(most := difference.max()):
        return float(most)
    difference[(a == b) | (np.isnan(a) & np.isnan(b))] = 0.0
    difference[np.isnan(difference)] = np.inf
    return float(difference.max())


def relative_difference(found: Array, expected: Array) -> float:
    """Return the largest difference over the largest magnitude expected."""
    return largest_difference(found, expected) / max(_magnitude(expected), 1e-30)


def _magnitude(values: Array) -> float:
    sizes = np.abs(values if values.dtype.kind in "fc" else values.astype(np.float64))
    if not sizes.size or np.isfinite(most := sizes.max()):
        return float(most) if sizes.size else 0.0
    finite = sizes[np.isfinite(sizes)]
    return float(finite.max()) if finite.size else 0.0


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "()"


def _bytes(values: Array) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def _differing(found: Array, expected: Array) -> int:
    size = found.dtype.itemsize
    differs = (_bytes(found) != _bytes(expected)).reshape(-1, size)
    return int(differs.any(axis=1).sum())
