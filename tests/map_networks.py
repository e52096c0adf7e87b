"""Random small networks of maps: convolutions, pools, sums, concats and the like, several paths and outputs.

Everything is known by construction: the shapes are stated beside the network, not read off its geometry.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from onchip.network import Geometry, Network, OperatorSpec, TensorKind

__all__ = ["MapNetwork", "random_map_network", "random_stretch"]

Shape = tuple[int, int, int]
"""Channels, rows, columns of one image."""


@dataclass(frozen=True)
class MapNetwork:
    """A network of `images` images with the shape and the bytes of an element of every tensor."""

    network: Network
    images: int
    shapes: dict[str, Shape]
    element: dict[str, int]


def random_stretch(rng: Random, network: Network, most: int = 6) -> tuple[str, ...]:
    """A stretch of a random topological order: names of operators that make a convex group."""
    left, order = list(network.operators), []
    made = {t for t, p in enumerate(network.producer) if p is None}
    while left:
        op = rng.choice([op for op in left if all(network.root[t] in made for t in op.inputs)])
        left.remove(op)
        made |= set(op.outputs)
        order.append(op.name)
    size = min(len(order), rng.randint(1, most))
    start = rng.randint(0, len(order) - size)
    return tuple(order[start : start + size])


def random_map_network(
    rng: Random, max_operators: int = 5, *, most_rows: int = 9, opaque: float = 0.05
) -> MapNetwork:
    """A random network of at most that many operators on maps of at most `most_rows` rows."""
    return _Builder(rng, most_rows, opaque).build(rng.randint(1, max_operators))


class _Builder:
    def __init__(self, rng: Random, most_rows: int, opaque: float) -> None:
        self.rng, self.most_rows, self.opaque = rng, most_rows, opaque
        self.images = rng.choice((1, 1, 2, 3))
        self.layout = rng.choice(("NCHW", "NCHW", "NHWC"))
        self.width = rng.choice((1, 1, 2, 4))
        self.leaving = rng.choice((0.0, 0.1, 0.4))  # how often what is read is an output too
        self.recent = rng.choice((0.2, 0.7))
        # Of some networks most maps have one shape, so that sums and concats find operands.
        self.alike = rng.choice((0.0, 0.5, 0.8))
        self.shapes: dict[str, Shape] = {}
        self.tensors: list[tuple[str, int, TensorKind]] = []
        self.operators: list[OperatorSpec] = []

    def build(self, count: int) -> MapNetwork:
        rng = self.rng
        for _ in range(rng.choice((1, 1, 2))):
            self.add((rng.randint(1, 4), rng.randint(2, self.most_rows), rng.choice((1, 2, 3))), "input")
        self.conv()  # graph inputs get their shapes from their first readers
        while len(self.operators) < count:
            kinds = [
                self.conv,
                self.conv,
                self.same,
                self.depthwise,
                self.pool,
                self.relu,
                self.add_,
                self.add_,
            ]
            kinds += [
                self.concat,
                self.pad,
                self.everywhere,
                self.dense,
                self.scale,
                self.normal,
                self.beside,
            ]
            if rng.random() < self.alike:
                kinds = [self.same, self.relu, self.add_, self.add_, self.concat, self.small_pool]
            rng.choice(kinds)()
        read = {t for op in self.operators for t in op.inputs}
        names = [name for name, _, kind in self.tensors if kind != "input"]
        outputs = [t for t in names if t not in read or rng.random() < self.leaving]
        used = read | set(outputs)
        tensors = [row for row in self.tensors if row[0] in used or row[2] != "input"]
        network = Network.build("maps", tensors, self.operators, outputs)
        return MapNetwork(network, self.images, self.shapes, dict.fromkeys(self.shapes, self.width))

    # -- parts -------------------------------------------------------------------------------------------

    def add(self, shape: Shape, kind: TensorKind = "activation") -> str:
        name = f"{'x' if kind == 'input' else 't'}{len(self.tensors)}"
        self.shapes[name] = shape
        self.tensors.append((name, self.images * shape[0] * shape[1] * shape[2] * self.width, kind))
        return name

    def full(self, shape: Shape) -> tuple[int, ...]:
        c, h, w = shape
        return (self.images, c, h, w) if self.layout == "NCHW" else (self.images, h, w, c)

    def some(self) -> str:
        """A tensor to read: a recent one, mostly."""
        names = list(self.shapes)
        return self.rng.choice(names[-3:] if self.rng.random() < self.recent else names)

    def write(
        self, type_: str, reads: list[str], shape: Shape, geometry: Geometry | None, weights: int = 0
    ) -> None:
        made = self.add(shape)
        if self.rng.random() < self.opaque:
            geometry = None
        name = f"{type_}{len(self.operators)}"
        self.operators.append(OperatorSpec(name, type_, reads, [made], weights, 0, geometry))

    def windowed(
        self, kind: str, x: str, channels: int, kernel: tuple[int, int], stride: tuple[int, int],
        padding: tuple[int, int, int, int], dilation: tuple[int, int] = (1, 1), groups: int = 1,
        weights: int = 0,
    ) -> None:  # fmt: skip
        sides = self.shapes[x][1:]
        made = []
        for axis in (0, 1):
            span = (kernel[axis] - 1) * dilation[axis] + 1
            size = sides[axis] + padding[axis] + padding[axis + 2] - span
            if size < 0:
                return
            # Now and then a pool counts the last window too that is not whole.
            more = kind == "pool" and size % stride[axis] and self.rng.random() < 0.3
            made.append(size // stride[axis] + 1 + bool(more))
        shape = (channels, made[0], made[1])
        geometry = Geometry(
            kind, self.full(self.shapes[x]), self.full(shape), kernel, stride, padding, dilation, groups,
            "NHWC" if self.layout == "NHWC" else "NCHW",
        )  # fmt: skip
        self.write(kind, [x], shape, geometry, weights)

    def weights(self, outputs: int, inputs: int, taps: int) -> int:
        elements = outputs * inputs * taps
        return self.rng.choice((0, elements, elements * 2, elements * 2 + outputs * 4, elements + 1, 1))

    # -- operators ---------------------------------------------------------------------------------------

    def random_window(self) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int, int, int]]:
        rng = self.rng
        taps, stride = rng.choice((1, 2, 3, 3, 4)), rng.choice((1, 1, 2, 2, 3))
        wide = rng.choice((1, 1, 3))
        top, bottom = rng.choice((0, 1, 1, 2)), rng.choice((0, 1, 1, 3))
        return (taps, wide), (stride, 1), (top, wide // 2, bottom, wide // 2)

    def conv(self) -> None:
        x, rng = self.some(), self.rng
        c = self.shapes[x][0]
        groups = rng.choice([g for g in range(1, c + 1) if c % g == 0]) if rng.random() < 0.3 else 1
        kernel, stride, padding = self.random_window()
        channels = groups * rng.randint(1, 4)
        weights = self.weights(channels, c // groups, kernel[0] * kernel[1])
        dilation = (rng.choice((1, 1, 1, 2)), 1)
        self.windowed("conv", x, channels, kernel, stride, padding, dilation, groups, weights)

    def same(self) -> None:
        """A convolution that keeps the shape of its map, so that a sum finds its operands."""
        x, taps = self.some(), self.rng.choice((1, 3, 3))
        c = self.shapes[x][0]
        weights = self.weights(c, c, taps)
        self.windowed("conv", x, c, (taps, 1), (1, 1), (taps // 2, 0, taps // 2, 0), weights=weights)

    def depthwise(self) -> None:
        x = self.some()
        c = self.shapes[x][0]
        if c > 1:
            kernel, stride, padding = self.random_window()
            made = c * self.rng.choice((1, 1, 1, 2))
            weights = self.weights(made, 1, kernel[0] * kernel[1])
            self.windowed("depthwise", x, made, kernel, stride, padding, groups=c, weights=weights)

    def pool(self) -> None:
        x = self.some()
        self.windowed("pool", x, self.shapes[x][0], *self.random_window())

    def everywhere(self) -> None:
        x = self.some()
        c, h, w = self.shapes[x]
        self.windowed("pool", x, c, (h, w), (1, 1), (0, 0, 0, 0))

    def small_pool(self) -> None:
        x = self.some()
        self.windowed("pool", x, self.shapes[x][0], (3, 1), (1, 1), (1, 0, 1, 0))

    def beside(self) -> None:
        """Another way to a map that is there, whatever stride leads to its rows."""
        x, y = self.some(), self.some()
        (_, h, w), (c, rows, columns) = self.shapes[x], self.shapes[y]
        found = [(k, s) for k in range(1, h + 1) for s in (1, 2, 3) if (h - k) // s + 1 == rows]
        if w == columns and found:
            taps, stride = self.rng.choice(found)
            self.windowed("conv", x, c, (taps, 1), (stride, 1), (0, 0, 0, 0))

    def pointwise(self, reads: list[str], shape: Shape, weights: int = 0) -> None:
        full, layout = self.full(shape), "NHWC" if self.layout == "NHWC" else "NCHW"
        self.write("add", reads, shape, Geometry("elementwise", full, full, layout=layout), weights)  # type: ignore[arg-type]

    def relu(self) -> None:
        x = self.some()
        self.pointwise([x], self.shapes[x], self.rng.choice((0, 0, self.shapes[x][0])))

    def add_(self) -> None:
        x = self.some()
        others = [t for t, shape in self.shapes.items() if shape == self.shapes[x] and t != x]
        self.rng.shuffle(others)
        reads = [x, *others[: self.rng.choice((1, 1, 2))]]
        self.rng.shuffle(reads)
        self.pointwise(reads, self.shapes[x])

    def scale(self) -> None:
        """A map times a number for each of its channels."""
        small = [t for t, (c, h, w) in self.shapes.items() if h == w == 1 and not t.startswith("x")]
        for s in small:
            large = [
                t for t, shape in self.shapes.items() if shape[0] == self.shapes[s][0] and t not in small
            ]
            if large:
                x = self.rng.choice(large)
                self.pointwise([x, s], self.shapes[x])
                return

    def concat(self) -> None:
        first = self.some()
        _, h, w = self.shapes[first]
        others = [t for t, shape in self.shapes.items() if shape[1:] == (h, w) and t != first]
        self.rng.shuffle(others)
        reads = [first, *others[: self.rng.choice((1, 1, 2))]]
        shape = (sum(self.shapes[t][0] for t in reads), h, w)
        layout = "NHWC" if self.layout == "NHWC" else "NCHW"
        geometry = Geometry("concat", self.full(self.shapes[first]), self.full(shape), layout=layout)  # type: ignore[arg-type]
        self.write("concat", reads, shape, geometry)

    def pad(self) -> None:
        x, rng = self.some(), self.rng
        c, h, w = self.shapes[x]
        top, bottom = rng.choice((0, 1, 2, 3, -1)), rng.choice((0, 1, 2, -1))
        left, right = rng.choice((0, 1)), rng.choice((0, 1))
        shape = (c, h + top + bottom, w + left + right)
        if shape[1] < 1:
            return
        layout = "NHWC" if self.layout == "NHWC" else "NCHW"
        sides = self.full(self.shapes[x]), self.full(shape)
        geometry = Geometry("pad", *sides, padding=(top, left, bottom, right), layout=layout)  # type: ignore[arg-type]
        self.write("pad", [x], shape, geometry)

    def normal(self) -> None:
        """A softmax over the channels."""
        x = self.some()
        full, layout = self.full(self.shapes[x]), "NHWC" if self.layout == "NHWC" else "NCHW"
        self.write("softmax", [x], self.shapes[x], Geometry("rowwise", full, full, layout=layout))  # type: ignore[arg-type]

    def dense(self) -> None:
        x, made = self.some(), self.rng.randint(1, 4)
        c, h, w = self.shapes[x]
        if x.startswith("x"):
            return  # a graph input that a matrix alone reads is a vector, whatever it was meant to be
        geometry = Geometry("fully_connected", (self.images, c * h * w), (self.images, made))
        self.write("dense", [x], (made, 1, 1), geometry, self.weights(made, c * h * w, 1))
