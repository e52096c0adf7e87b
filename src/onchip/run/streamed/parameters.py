"""A group's weights: resident in its scratch, or copied through one weight tile, slice by slice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from onchip.base.errors import InputError
from onchip.run.streamed.chain import Chain, Parameter

__all__ = ["Fetched", "Parameters"]

Array = np.ndarray[Any, Any]


class Parameters:
    """One operator's weights in DRAM: a matrix or kernels, and `rest`, its other values for each channel.

    Sizes are the plan's; `width` are those of an element of the kernels.
    """

    def __init__(self, chain: Chain, channels: int, scale: int) -> None:
        self.chain, self.channels, self.total = chain, channels, chain.op.weight_bytes
        self.kernels = None if chain.weight is None else np.ascontiguousarray(chain.weight)
        bias = () if chain.bias is None else (chain.bias,)
        # One element that an element-wise node reads is an immediate, part of the instruction.
        tail = [p for p in chain.parameters if p.value.size > 1]
        found = {p.name: p for p in (*bias, *tail) if p.by_channel}
        self.vectors: dict[str, Parameter] = found
        self.values, self.stored_as = _distinct({name: p.value.reshape(-1) for name, p in found.items()})
        self.width = 0
        if self.kernels is not None:
            self.width = self.total // self.kernels.size
        self.rest = self.total - self.width * (0 if self.kernels is None else self.kernels.size)
        real = sum(v.itemsize for v in self.values.values()) * channels
        room = self.total * scale - (0 if self.kernels is None else self.kernels.nbytes)
        self.beside = real > room >= 0
        """True if values for each channel are wider than planned, as dequantised ones are: they lie beside
        the scratch, and are counted only."""
        if room < 0 or (self.kernels is not None and self.kernels.itemsize > self.width * scale):
            raise InputError(
                "cannot be run in tiles: it has more weights than the plan counts",
                item=f"operator {chain.op.name}",
            )

    @property
    def inputs(self) -> int:
        """The input channels along the kernels."""
        return 1 if self.kernels is None else self.kernels.shape[1]

    def share(self, outs: tuple[int, int]) -> int:
        """Return the planned bytes of the rest for some output channels."""
        return self.rest * outs[1] // self.channels - self.rest * outs[0] // self.channels

    def slices(
        self, outs: tuple[int, int], ins: tuple[int, int], steps: tuple[int, int]
    ) -> Iterator[tuple[tuple[int, int], tuple[int, int], int]]:
        """Yield slices of at most `steps` output and input channels, and the planned bytes of each."""
        for o in range(*outs, steps[0]):
            out = (o, min(o + steps[0], outs[1]))
            for i in range(*ins, steps[1]):
                into = (i, min(i + steps[1], ins[1]))
                size = self.share(out) if i == 0 else 0
                if self.kernels is not None:
                    size += self.width * self.kernels[slice(*out), slice(*into)].size
                yield out, into, size

    def largest(self, steps: tuple[int, int]) -> int:
        """Return the planned bytes of the largest slice."""
        slices = self.slices((0, self.channels), (0, self.inputs), steps)
        return max((size for _, _, size in slices), default=0)


def _distinct(values: dict[str, Array]) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the values without those that equal another one, and by name that of the one that is kept.

    Exporters write a constant once that several nodes read under names of their own, and it is fetched once.
    """
    kept: dict[str, Array] = {}
    by: dict[tuple[str, bytes], str] = {}
    found = {}
    for name, value in values.items():
        found[name] = by.setdefault((value.dtype.str, value.tobytes()), name)
        kept.setdefault(found[name], value)
    return kept, found


class Fetched:
    """The weights of one operator as they come on chip.

    The kernels compute with the bytes that lay in the scratch: a resident block, or those through the tile.
    """

    def __init__(self, parameters: Parameters, steps: tuple[int, int]) -> None:
        self.source, self.steps = parameters, steps
        self.kernels: Array | None = None
        self.vectors: dict[str, Array] = {}
        self.moved = 0
        self.resident = False
        self._tile: Array | None = None
        self._views: dict[tuple[int, ...], Array] = {}

    def through(self, tile: Array) -> None:
        """Take the tile's bytes."""
        self._tile = tile
        if self.source.kernels is not None:
            self.kernels = np.empty_like(self.source.kernels)
        self.vectors = {name: np.empty_like(value) for name, value in self.source.values.items()}

    def fetch(self, outs: tuple[int, int], ins: tuple[int, int] | None = None) -> None:
        """Copy the weights of some channels through the tile, slice by slice."""
        source, tile = self.source, self._tile
        if self.resident or tile is None or not source.total:
            return
        for out, into, size in source.slices(outs, ins or (0, source.inputs), self.steps):
            at = 0
            if source.kernels is not None and self.kernels is not None:
                part = source.kernels[out[0] : out[1], into[0] : into[1]]
                place = self._views.get(part.shape)
                if place is None:
                    place = tile[: part.nbytes].view(part.dtype).reshape(part.shape)
                    self._views[part.shape] = place
                place[...] = part
                self.kernels[out[0] : out[1], into[0] : into[1]] = place
                at = part.nbytes
            if into[0] == 0:
                for name in source.values:
                    at = self._vector(name, out, tile, at)
            self.moved += size

    def _vector(self, name: str, outs: tuple[int, int], tile: Array, at: int) -> int:
        """Copy a vector of the rest through the tile: behind the kernels, or after them where it is full."""
        value, first = self.source.values[name], outs[0]
        if self.source.beside:
            self.vectors[name][outs[0] : outs[1]] = value[outs[0] : outs[1]]
            return at
        while first < outs[1]:
            count = min((len(tile) - at) // value.itemsize, outs[1] - first)
            there = tile[at : at + count * value.itemsize].view(value.dtype)
            there[...] = value[first : first + count]
            self.vectors[name][first : first + count] = there
            first, at = first + count, at + there.nbytes
            at = 0 if first < outs[1] else at
        return at

    def vector(self, p: Parameter | None, outs: tuple[int, int]) -> Array | None:
        """Return a parameter's values for some channels, in the shape that its node expects."""
        kept = None if p is None else self.source.stored_as.get(p.name)
        if p is None or kept not in self.vectors:
            return None if p is None else p.value
        part = self.vectors[kept][outs[0] : outs[1]]
        return part.reshape([-1 if axis == "c" else 1 for axis in p.axes])

    def channelled(self, outs: tuple[int, int]) -> dict[str, Array]:
        """Return the tail's parameters for some channels."""
        found = {}
        for p in self.source.chain.parameters:
            value = self.vector(p, outs) if p.by_channel else None
            if value is not None:
                found[p.name] = np.ascontiguousarray(value)
        return found
