"""Small random networks for campaigns that try to refute claims: odd geometry is common in them.

`random_sizes` draws tensors of a few bytes and says nothing of what operators do; `random_maps` draws
operators over maps, with padding of up to three on any side, dilation, strides above kernels, groups, maps of
one row, several images, broadcasts, cut-off padding, flattened maps, workspaces, operators that say nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from random import Random

from onchip.network import Constant, Geometry, Network, OperatorSpec, Reach, Side, TensorKind

__all__ = ["MapMaker", "random_chain", "random_maps", "random_sizes"]

Shape = tuple[int, int, int]
"""Channels, rows, columns of one image."""


def random_sizes(rng: Random, most: int = 6, sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 8)) -> Network:
    """One to `most` operators over tensors of a few bytes, with views, workspaces and several outputs."""
    bytes_: dict[str, int] = {}
    kinds: dict[str, TensorKind] = {}
    views: list[tuple[str, str, int]] = []
    operators: list[OperatorSpec] = []
    roots: list[str] = []

    def tensor(name: str, size: int, kind: TensorKind) -> str:
        bytes_[name], kinds[name] = size, kind
        roots.append(name)
        return name

    for i in range(rng.choice((1, 1, 2))):
        tensor(f"x{i}", rng.choice(sizes), "input")
    for i in range(rng.choice((1, *range(2, most + 1), most, most))):
        reads = rng.sample(list(bytes_), min(len(bytes_), rng.choice((1, 1, 1, 1, 2, 2, 3))))
        if rng.random() < 0.5 and i:
            reads = list(dict.fromkeys([f"y{i - 1}", *reads]))[:3]
        geometry, size = None, rng.choice(sizes)
        whole = [t for t in reads if t in roots]
        if whole and rng.random() < 0.45:  # element-wise over the largest of its operands
            size = max(bytes_[t] for t in reads)
            geometry = Geometry("elementwise", input=(size,), output=(size,))
        writes = [tensor(f"y{i}", size, "activation")]
        if geometry is None and rng.random() < 0.2:
            writes += [tensor(f"z{i}", rng.choice(sizes), "activation")]
        work, weights = rng.choice((0, 0, 0, 1, 3)), rng.choice((0, 0, 2, 5))
        operators.append(OperatorSpec(f"f{i}", "Op", reads, writes, weights, work, geometry))
        if rng.random() < 0.2 and bytes_[writes[-1]] > 1:
            of = writes[-1]
            part = rng.randint(1, bytes_[of] - 1)
            views.append((f"v{i}", of, rng.randint(0, bytes_[of] - part)))
            bytes_[f"v{i}"], kinds[f"v{i}"] = part, "activation"
    return _built(rng, "sizes", bytes_, kinds, operators, views)


def _built(
    rng: Random,
    name: str,
    bytes_: dict[str, int],
    kinds: dict[str, TensorKind],
    operators: list[OperatorSpec],
    views: list[tuple[str, str, int]],
) -> Network:
    """The network whose outputs are what nobody reads, but for a few, and some of the rest."""
    read = {t for op in operators for t in op.inputs}
    ends = [t for t in bytes_ if t not in read and kinds[t] == "activation"]
    outputs = [t for t in ends if rng.random() < 0.85]
    outputs += [t for t in bytes_ if t in read and rng.random() < 0.08]
    if not outputs:
        outputs = [operators[-1].outputs[0]]
    tensors = [(t, size, kinds[t]) for t, size in bytes_.items()]
    return Network.build(name, tensors, operators, outputs, views=views)


class MapMaker:
    """Draws operators over maps, one after the other; `done` gives the network."""

    def __init__(self, rng: Random, *, images: int, layout: str, element: int, start: Shape) -> None:
        self.rng, self.images, self.layout, self.element = rng, images, layout, element
        self.maps: dict[str, Shape] = {"x0": start}
        self.kinds: dict[str, TensorKind] = {"x0": "input"}
        self.bytes = {"x0": images * prod(start) * element}
        self.operators: list[OperatorSpec] = []
        self.views: list[tuple[str, str, int]] = []

    def shape(self, c: int, h: int, w: int) -> tuple[int, int, int, int]:
        """A map's shape in the layout."""
        return (self.images, c, h, w) if self.layout == "NCHW" else (self.images, h, w, c)

    def size(self, made: Shape) -> int:
        """Its bytes."""
        return self.images * prod(made) * self.element

    def add(
        self,
        kind: str,
        reads: list[str],
        made: Shape,
        geometry: Geometry | None,
        *,
        weights: int = 0,
        workspace: int = 0,
        reach: Reach | None = None,
        size: int | None = None,
    ) -> str:
        """An operator of one output; returns the output's name."""
        i = len(self.operators)
        name = f"y{i}"
        self.maps[name], self.kinds[name] = made, "activation"
        self.bytes[name] = self.size(made) if size is None else size
        self.operators.append(
            OperatorSpec(f"{kind}{i}", kind, reads, [name], weights, workspace, geometry, reach=reach)
        )
        return name

    def window(self, x: str, kind: str) -> str | None:
        """A convolution or pool with any padding, stride and dilation that leaves an output."""
        rng, (c, h, w) = self.rng, self.maps[x]
        odd = rng.random() < 0.4
        sides, kernel, stride, dilation, padding = [], [], [], [], [[0, 0], [0, 0]]
        for axis, size in enumerate((h, w)):
            k = rng.choice((1, 1, 2, 3, 3, 5) if odd else (1, 2, 3, 3))
            d = rng.choice((1, 1, 2)) if odd else 1
            s = rng.choice((1, 1, 2, 3)) if odd else rng.choice((1, 1, 2))
            span = (k - 1) * d + 1
            low = rng.randint(0, min(3, span - 1)) if odd else min(k // 2, rng.choice((0, 9)))
            high = rng.randint(0, min(3, span - 1)) if odd and rng.random() < 0.5 else low
            if size + low + high < span:
                return None
            kernel.append(k)
            stride.append(s)
            dilation.append(d)
            padding[axis] = [low, high]
            sides.append((size + low + high - span) // s + 1)
        (top, bottom), (left, right) = padding
        groups, out = 1, c
        if kind == "depthwise":
            groups, out = c, c * rng.choice((1, 1, 1, 2))
        elif kind == "conv":
            out = rng.choice((1, 2, 3, 4, 6))
            groups = rng.choice([g for g in (1, 1, 1, 2, 3) if c % g == 0 and out % g == 0])
        made = (out, sides[0], sides[1])
        geometry = Geometry(
            kind,
            self.shape(c, h, w),
            self.shape(*made),
            tuple(kernel),
            tuple(stride),
            (top, left, bottom, right),
            tuple(dilation),
            groups,
            self.layout,  # type: ignore[arg-type]
        )
        weights = 0
        if kind != "pool":
            weights = out * (c // groups if kind == "conv" else 1) * kernel[0] * kernel[1] * self.element
            weights += rng.choice((0, 0, out))
        return self.add(kind, [x], made, geometry, weights=weights, workspace=self.workspace())

    def workspace(self) -> int:
        """Mostly none."""
        return self.rng.choice((2, 6, 16)) if self.rng.random() < 0.05 else 0

    def plain(self, kind: str, made: Shape, of: Shape, **more: object) -> Geometry:
        """A geometry without windows."""
        return Geometry(kind, self.shape(*of), self.shape(*made), layout=self.layout, **more)  # type: ignore[arg-type]

    def elementwise(self, x: str) -> str | None:
        """One, two or three operands; some are repeated over channels, rows or columns."""
        rng, made = self.rng, self.maps[x]
        alike = [
            t
            for t, m in self.maps.items()
            if t != x and all(mine in (1, size) for mine, size in zip(m, made, strict=True))
        ]
        reads = [x, *rng.sample(alike, min(len(alike), rng.choice((0, 1, 1, 2))))]
        return self.add("elementwise", reads, made, self.plain("elementwise", made, made))

    def concat(self, x: str) -> str | None:
        c, h, w = self.maps[x]
        alike = [t for t, m in self.maps.items() if t != x and m[1:] == (h, w)]
        if not alike:
            return None
        reads = [x, *self.rng.sample(alike, min(len(alike), self.rng.choice((1, 1, 2))))]
        made = (sum(self.maps[t][0] for t in reads), h, w)
        return self.add("concat", reads, made, self.plain("concat", made, (c, h, w)))

    def pad(self, x: str) -> str | None:
        c, h, w = self.maps[x]
        top, left, bottom, right = (self.rng.choice((-1, 0, 0, 1, 2)) for _ in range(4))
        made = (c, h + top + bottom, w + left + right)
        if min(made) < 1 or min(top, 0) + min(bottom, 0) <= -h or min(left, 0) + min(right, 0) <= -w:
            return None
        return self.add(
            "pad", [x], made, self.plain("pad", made, (c, h, w), padding=(top, left, bottom, right))
        )

    def mean(self, x: str) -> str:
        c, h, w = self.maps[x]
        return self.add("pool", [x], (c, 1, 1), self.plain("pool", (c, 1, 1), (c, h, w), kernel=(h, w)))

    def matrix(self, x: str) -> str:
        """A matrix over the whole map, flattened on the way."""
        features, out = prod(self.maps[x]), self.rng.choice((2, 3, 5))
        geometry = Geometry("fully_connected", (self.images, features), (self.images, out))
        weights = features * out * self.element
        return self.add("fully_connected", [x], (out, 1, 1), geometry, weights=weights)

    def rowwise(self, x: str) -> str:
        return self.add("rowwise", [x], self.maps[x], self.plain("rowwise", self.maps[x], self.maps[x]))

    def opaque(self, x: str) -> str:
        """Says nothing of how it reads, or in boxes: of every image, or every channel of it."""
        rng, made = self.rng, self.maps[x]
        reads = [x]
        if rng.random() < 0.3:
            reads += [t for t in rng.sample(list(self.maps), 1) if t != x]
        weights, reach = rng.choice((0, 0, 4)), None
        if rng.random() < 0.5:
            n, (c, h, w) = self.images, made
            out = (n * c, h * w * self.element)
            sides: list[tuple[Side, ...]] = []
            for t in reads:
                if t == x:
                    sides.append((Side(n * c, 0), Side(h * w * self.element)))
                else:
                    sides.append((Side(self.bytes[t]),))
            constants = (Constant("w", weights, (Side(weights),)),) if weights else ()
            reach = Reach(out, tuple(sides), constants)
        workspace = 0 if reach is not None else self.rng.choice((0, 0, 3, 9))
        return self.add("opaque", reads, made, None, weights=weights, workspace=workspace, reach=reach)

    def product(self, x: str) -> str:
        """A matrix over rows of features, in boxes, whose sum is an axis or not."""
        rng, elements = self.rng, prod(self.maps[x]) * self.images
        k = rng.choice([n for n in (2, 3, 4, 6) if elements % n == 0] or [1])
        rows, columns, e = elements // k, rng.choice((2, 3)), self.element
        split = rng.random() < 0.5
        inner = Side(k, 2) if split else Side(k)
        # An element of several bytes is a side of its own for none: bytes divide by the sides' product.
        reach = Reach(
            (rows, columns),
            ((Side(rows, 0), inner),),
            (Constant("w", k * columns * e, (inner, Side(columns, 1))),),
            (k,) if split else (),
        )
        size = rows * columns * e
        made = (1, 1, size // e) if self.images == 1 else (columns, 1, rows // self.images or 1)
        if self.size(made) != size:
            made = (1, 1, 1)
        name = self.add("product", [x], made, None, weights=k * columns * e, reach=reach, size=size)
        if self.size(made) != size:
            del self.maps[name]  # nobody can read it as a map
        return name

    def cut(self, x: str) -> str | None:
        """A view: images of a batch, or channels of one image."""
        c, h, w = self.maps[x]
        if self.layout != "NCHW" or self.images != 1 or any(v[0] == x for v in self.views):
            return None
        count = self.rng.randint(1, c)
        first = self.rng.randint(0, c - count)
        name = f"v{len(self.views)}"
        self.maps[name], self.kinds[name] = (count, h, w), "activation"
        self.bytes[name] = self.size((count, h, w))
        self.views.append((name, x, first * h * w * self.element))
        return name

    def second_output(self, x: str) -> str:
        """An operator of two outputs: row-wise ones share out the channels of a map."""
        c, h, w = self.maps[x]
        i = len(self.operators)
        parts = (1, c - 1) if c > 1 else (1, 1)
        whole = (sum(parts), h, w)
        names = [f"y{i}", f"z{i}"]
        for name, part in zip(names, parts, strict=True):
            self.maps[name], self.kinds[name] = (part, h, w), "activation"
            self.bytes[name] = self.size((part, h, w))
        geometry = self.plain("rowwise", whole, (c, h, w)) if self.rng.random() < 0.7 else None
        self.operators.append(OperatorSpec(f"split{i}", "split", [x], names, 0, 0, geometry))
        return names[1]

    def done(self) -> Network:
        used = {t for op in self.operators for t in op.inputs}
        views = [v for v in self.views if v[0] in used]
        gone = {v[0] for v in self.views} - {v[0] for v in views}
        bytes_ = {t: n for t, n in self.bytes.items() if t not in gone}
        return _built(self.rng, "maps", bytes_, self.kinds, self.operators, views)


KINDS = ["conv"] * 6 + ["depthwise"] * 2 + ["pool"] * 3 + ["elementwise"] * 4
KINDS += ["concat", "concat", "pad", "pad", "mean", "matrix", "rowwise", "opaque", "product", "cut", "split"]


def random_maps(rng: Random, most: int = 4, *, plain: bool = False) -> Network:
    """One to `most` operators over maps. `plain`: all operators are of kinds that run in bands."""
    while True:
        images = rng.choice((1, 1, 1, 2, 3))
        start = (rng.choice((1, 2, 3, 4)), rng.choice((1, 2, 4, 5, 6)), rng.choice((1, 2, 3, 4)))
        layout = rng.choice(("NCHW", "NCHW", "NHWC"))
        maker = MapMaker(rng, images=images, layout=layout, element=rng.choice((1, 1, 2)), start=start)
        if rng.random() < 0.15:
            maker.maps["x1"], maker.kinds["x1"] = start, "input"
            maker.bytes["x1"] = maker.size(start)
        count = rng.randint(1, most)
        for _ in range(6 * count):
            if len(maker.operators) == count:
                break
            names = list(maker.maps)
            x = rng.choice(names[-2:] if rng.random() < 0.7 else names)
            kind = rng.choice(KINDS[:17] if plain else KINDS)
            make: dict[str, Callable[[str], str | None]] = {
                "elementwise": maker.elementwise,
                "concat": maker.concat,
                "pad": maker.pad,
                "mean": maker.mean,
                "matrix": maker.matrix,
                "rowwise": maker.rowwise,
                "opaque": maker.opaque,
                "product": maker.product,
                "cut": maker.cut,
                "split": maker.second_output,
            }
            if kind in make:
                make[kind](x)
            else:
                maker.window(x, kind)
        if maker.operators:
            used = {t for op in maker.operators for t in op.inputs}
            if "x1" in maker.maps and not used & {"x1", *(v for v, of, _ in maker.views if of == "x1")}:
                for name in ("x1", *(v for v, of, _ in maker.views if of == "x1")):
                    del maker.bytes[name]
                maker.views = [v for v in maker.views if v[1] != "x1"]
            if not any("x0" in op.inputs for op in maker.operators):
                continue
            return maker.done()


def random_chain(rng: Random, most: int = 4) -> Network:
    """A chain of one to `most` layers over NHWC maps of one image and one-byte elements."""
    while True:
        start = (rng.choice((1, 2, 3)), rng.choice((1, 3, 4, 5, 6)), rng.choice((1, 2, 3, 4, 5)))
        maker = MapMaker(rng, images=1, layout="NHWC", element=1, start=start)
        x, count = "x0", rng.randint(1, most)
        for _ in range(5 * count):
            if len(maker.operators) == count:
                break
            kind = rng.choice(
                ("conv", "conv", "conv", "depthwise", "depthwise", "pool", "pool", "mean", "unary")
            )
            if kind == "mean":
                x = maker.mean(x)
            elif kind == "unary":
                x = maker.add(
                    "elementwise",
                    [x],
                    maker.maps[x],
                    maker.plain("elementwise", maker.maps[x], maker.maps[x]),
                )
            else:
                x = maker.window(x, kind) or x
        if maker.operators:
            tensors = [(t, size, maker.kinds[t]) for t, size in maker.bytes.items()]
            specs = [
                OperatorSpec(s.name, s.type, s.inputs, s.outputs, s.weight_bytes, 0, s.geometry)
                for s in maker.operators
            ]
            return Network.build("chain", tensors, specs, [x])
