"""Maps: the shapes of a network's tensors as [images, channels, rows, columns], whatever their layout.

A tensor's map is its producer's output. The map of a graph input is the shape that its readers state. If no
geometry states it, it is the tensor's own shape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal

from onchip.network.network import Network
from onchip.network.operators import ELEMENT_BYTES, Operator

__all__ = ["Map", "Maps"]


@dataclass(frozen=True, slots=True)
class Map:
    """The shape of a tensor, and the bytes of one of its elements."""

    images: int
    channels: int
    rows: int
    columns: int
    element: int

    @property
    def plane(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, self.columns

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, rows and columns."""
        return self.channels, self.rows, self.columns

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of one channel."""
        return self.columns * self.element


class Maps:
    """The maps of a network's tensors, derived on request."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._known: dict[int, Map | None] = {}
        self._own = set[int]()  # tensors whose maps are their own shapes

    @cached_property
    def batch(self) -> int | None:
        """Images in the network: the first size of most four-dimensional shapes; None without such shapes."""
        seen = Counter(
            shape[0]
            for op in self.network.operators
            if op.geometry is not None and op.geometry.promises
            for shape in (op.geometry.input, op.geometry.output)
            if len(shape) == 4
        )
        return max(seen, key=lambda n: (seen[n], n), default=None)

    @cached_property
    def layout(self) -> Literal["NCHW", "NHWC"]:
        """The order of the dimensions of four-dimensional tensors, by most geometries."""
        seen = Counter(op.geometry.layout for op in self.network.operators if op.geometry is not None)
        return max(seen, key=lambda layout: (seen[layout], layout), default="NCHW")

    def stated(self, tensor: int) -> tuple[Map, str] | None:
        """Return the map that a tensor's shape states, and its dimensions: `nchw`, `nhwc`, `nc` or `hc`.

        A dimension of size 1 in front of a matrix is left out. Return None for other ranks.
        """
        return self._states(tensor, self.network.tensors[tensor].shape)

    def dimensions(self, tensor: int) -> tuple[tuple[str, int], ...]:
        """Return the axes of a tensor's map (n, c, h, w) in the order of memory, with their sizes.

        They are those that its shape states, else those of the geometry that states its map. The tensor has
        a map.
        """
        found = self.of(tensor)
        assert found is not None
        own = self.stated(tensor)
        if own is not None and own[0] == found:
            order = own[1]
        elif self.batch is None:
            order = "hc"
        else:
            maker = self.network.producer[tensor]
            ops = [op for op in self.network.operators if tensor in op.inputs]
            makers = ops if maker is None else [self.network.operators[maker]]
            stated = (op.geometry.layout for op in makers if op.geometry is not None)
            order = next(stated, self.layout).lower()
        sizes = {"n": found.images, "c": found.channels, "h": found.rows, "w": found.columns}
        return tuple((axis, sizes[axis]) for axis in order)

    def agrees(self, tensor: int, rank: int) -> bool:
        """Return whether the map of an operand is also its map among tensors of `rank` dimensions.

        Operators match dimensions from the last one on. So rows and features of a matrix may lie along other
        axes of a map than its own shape says. A map that a geometry states is not in doubt.
        """
        found, shape = self.of(tensor), self.network.tensors[tensor].shape
        if tensor not in self._own:
            return True
        while len(shape) > rank and shape[0] == 1:
            shape = shape[1:]
        stated = self._states(tensor, (1,) * (rank - len(shape)) + shape)
        return stated is not None and stated[0] == found

    def _states(self, tensor: int, shape: tuple[int, ...]) -> tuple[Map, str] | None:
        row = self.network.tensors[tensor]
        width = row.bytes // max(1, prod(shape))
        if row.patches is not None or width not in ELEMENT_BYTES or width * prod(shape) != row.bytes:
            return None
        if len(shape) == 3 and shape[0] == 1 and self.batch in (None, 1):
            return Map(1, shape[2], shape[1], 1, width), "hc"
        sides = self._shape(shape, self.layout)
        if sides is None:
            return None
        order = self.layout.lower() if len(shape) == 4 else "hc" if self.batch is None else "nc"
        return Map(*sides, width), order

    def of(self, tensor: int) -> Map | None:
        """Return the map of a root tensor, None if nothing states it."""
        if tensor not in self._known:
            self._known[tensor] = self._find(tensor)
        return self._known[tensor]

    def _find(self, tensor: int) -> Map | None:
        found = self._by_geometry(tensor)
        if found is not None:
            return found
        self._own.add(tensor)
        own = self.stated(tensor)
        return own and own[0]

    def _by_geometry(self, tensor: int) -> Map | None:
        network = self.network
        producer = network.producer[tensor]
        if producer is not None:
            return self._written(network.operators[producer], tensor)
        # A reader may flatten it: take the widest map that readers state, the first of equals.
        readers = (op for op in map(network.operators.__getitem__, network.order) if tensor in op.inputs)
        stated = (found for op in readers if (found := self._read(op, tensor)) is not None)
        return max(stated, key=lambda found: found.rows * found.columns, default=None)

    def _written(self, op: Operator, tensor: int) -> Map | None:
        g = op.geometry
        if g is None:
            return None
        if len(op.outputs) == 1:
            return self._map(g.output, g.layout, tensor)
        # Several outputs divide the channels of the stated shape, of elements as wide as the input's:
        # then their bytes together are those of its elements.
        whole, first = self._shape(g.output, g.layout), self._element(g.input, g.layout, op.inputs[:1])
        if g.kind != "rowwise" or whole is None or first is None:
            return None
        if sum(map(self._bytes, op.outputs)) != prod(whole) * first:
            return None
        return self._channels(tensor, whole, first)

    def _read(self, op: Operator, tensor: int) -> Map | None:
        g = op.geometry
        if g is None or not g.promises:
            return None
        if g.kind == "elementwise":
            # A smaller operand may be broadcast, and then nothing states its shape.
            largest = max(self.network.tensors[t].bytes for t in (*op.inputs, *op.outputs))
            return self._map(g.output, g.layout, tensor) if self._bytes(tensor) == largest else None
        if g.kind == "concat" and tensor != op.inputs[0]:
            whole, element = self._shape(g.output, g.layout), self._element(g.output, g.layout, op.outputs)
            return None if whole is None or element is None else self._channels(tensor, whole, element)
        return self._map(g.input, g.layout, tensor) if tensor == op.inputs[0] else None

    def _bytes(self, tensor: int) -> int:
        return self.network.tensors[tensor].bytes

    def _channels(self, tensor: int, whole: tuple[int, int, int, int], element: int) -> Map | None:
        """Return the map of a tensor that has some channels of a whole one."""
        images, _, rows, columns = whole
        channels, rest = divmod(self._bytes(tensor), images * rows * columns * element)
        return Map(images, channels, rows, columns, element) if channels and not rest else None

    def _map(self, shape: Sequence[int], layout: str, tensor: int) -> Map | None:
        sides, element = self._shape(shape, layout), self._element(shape, layout, (tensor,))
        return None if sides is None or element is None else Map(*sides, element)

    def _element(self, shape: Sequence[int], layout: str, tensors: Sequence[int]) -> int | None:
        """Return the bytes of an element of the only one of `tensors`, which has that shape; else None."""
        sides = self._shape(shape, layout)
        if sides is None or len(tensors) != 1:
            return None
        width, rest = divmod(self._bytes(tensors[0]), prod(sides))
        return width if not rest and width in ELEMENT_BYTES else None

    def _shape(self, shape: Sequence[int], layout: str) -> tuple[int, int, int, int] | None:
        """Return (images, channels, rows, columns); a matrix is (images or rows of one, features)."""
        if any(type(n) is not int or n < 1 for n in shape):
            return None
        if len(shape) == 4 and shape[0] == self.batch:
            n, c, h, w = shape if layout == "NCHW" else (shape[0], shape[3], shape[1], shape[2])
            return n, c, h, w
        if len(shape) == 2 and self.batch is None:
            return 1, shape[1], shape[0], 1
        if len(shape) == 2 and shape[0] == self.batch:
            return shape[0], shape[1], 1, 1
        return None
