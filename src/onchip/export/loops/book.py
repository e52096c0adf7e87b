"""The book of a plan's steps: arrays in DRAM, places on chip, addresses, and names that are used once."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from onchip.base.errors import UsageError
from onchip.export.loops.steps import Array, Place
from onchip.network import Network
from onchip.network.axes import Buffer
from onchip.plans import Plan
from onchip.run.onnx_engine import OnnxEngine

__all__ = ["Book"]

ALIGNED = 64
"""Arrays in DRAM begin at multiples of this."""


@dataclass
class Book:
    """The arrays and places so far. `address` is where each whole tensor lies now, `over` those that were
    reserved over another one or around their parts."""

    plan: Plan
    engine: OnnxEngine
    arrays: dict[str, Array] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    address: dict[int, int] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)
    values: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """The values of arrays that are constants."""
    inside: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Tensors that lie in DRAM in another one, from an offset in bytes on."""
    known: dict[tuple[str, str], str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    end: int = 0

    @property
    def network(self) -> Network:
        """The network of the plan."""
        return self.plan.network

    def next(self, what: str) -> int:
        """Return the next number of a kind of name."""
        self.counts[what] = self.counts.get(what, -1) + 1
        return self.counts[what]

    def kind(self, t: int) -> np.dtype[Any]:
        """Return the type of a tensor's elements."""
        return np.dtype(self.engine.slots.dtype[t])

    def fits(self, kind: np.dtype[Any], element: int, name: str) -> None:
        """Refuse elements of a tensor that the plan takes for wider or narrower ones than the model has."""
        if kind.itemsize != element:
            raise UsageError(
                f"has elements of {kind.itemsize} bytes and is planned with {element}: plan with"
                " --dtype file",
                item=f"tensor {name}",
            )

    def tensor(self, t: int) -> str:
        """Return the array of a whole tensor."""
        count = prod(self.engine.slots.shape[t])
        tensor = self.network.tensors[t]
        self.fits(self.kind(t), tensor.bytes // max(count, 1), tensor.name)
        return self._array("tensor", tensor.name, self.kind(t).itemsize, count, inside=self.inside.get(t))

    def constant(self, name: str, element: int = 0) -> str:
        """Return the array of a constant of the model, its elements `element` bytes apart.

        A plan may count other constants of an operator with it, so that there are more bytes than values.
        """
        value = self.engine.parts.constants[name]
        width = value.dtype.itemsize
        element = element or width
        if element < width:
            self.fits(value.dtype, element, name)
        array = self._array("constant", f"{name}@{element}", element, value.size)
        if array not in self.values:
            apart = np.zeros((value.size, element), np.uint8)
            apart[:, :width] = np.ascontiguousarray(value).reshape(-1, 1).view(np.uint8).reshape(-1, width)
            self.values[array] = apart
        return array

    def made(self, operator: str, name: str, value: np.ndarray[Any, Any]) -> str:
        """Return the array of a constant that nodes of an operator make of constants."""
        array = self._array("constant", f"{operator}: {name}", value.dtype.itemsize, value.size)
        self.values[array] = value
        return array

    def counted(self, buffer: Buffer) -> str:
        """Return the array of constants that a plan counts together, of which no value is known."""
        return self._array("counted", buffer.name, buffer.element, prod(buffer.whole))

    def packed(self, name: str, size: int) -> Array:
        """Return the array of a constant's parts, which lie in another order than in the model."""
        return self.arrays[self._array("constant", name, 1, size)]

    def sums_of(self, buffer: Buffer, partial: int) -> str:
        """Return the array of sums of a tensor that are not complete."""
        return self._array("sums", buffer.name, partial, prod(buffer.whole))

    def _array(
        self, kind: str, name: str, element: int, count: int, inside: tuple[int, int] | None = None
    ) -> str:
        if (kind, name) in self.known:
            return self.known[kind, name]
        identity = f"d{len(self.arrays)}"
        self.known[kind, name] = identity
        if inside is not None:
            whole, offset = inside
            made = Array(identity, name, kind, element, count, 0)
            self.arrays[identity] = made
            self.arrays[identity] = replace(made, offset=self.arrays[self.tensor(whole)].offset + offset)
            return identity
        self.arrays[identity] = Array(identity, name, kind, element, count, self.end)
        self.end += -(-element * count // ALIGNED) * ALIGNED
        return identity
