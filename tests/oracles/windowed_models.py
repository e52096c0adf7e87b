"""Small random models of maps: convolutions of all kinds, pools, resizes, concats and sums."""

from __future__ import annotations

from random import Random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, shape_inference

__all__ = ["windowed_model"]

KINDS = (
    "conv", "conv", "conv", "point", "depthwise", "groups", "pool", "pool", "element", "sum", "concat",
    "transposed", "resize",
)  # fmt: skip
MOST = 320
"""Elements of a map that is not made larger."""


class Maps:
    """The nodes so far, and maps as name, channels, rows and columns."""

    def __init__(self, random: Random) -> None:
        self.random, self.draw = random, np.random.default_rng(random.randrange(1 << 30))
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        shape = (random.choice((1, 2, 3, 4, 6)), random.randint(3, 11), random.choice((1, 2, *range(3, 20))))
        self.maps = [("x", *shape)]

    def add(self, kind: str, inputs: list[str], shape: tuple[int, int, int], **settings: object) -> None:
        made = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [made], name=made, **settings))
        self.maps.append((made, *shape))

    def weight(self, *shape: int) -> str:
        values = self.draw.standard_normal(shape) / max(1, np.prod(shape[1:])) ** 0.5
        return self.constant(values.astype(np.float32))

    def constant(self, value: np.ndarray) -> str:  # type: ignore[type-arg]
        self.weights.append(numpy_helper.from_array(value, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def windows(self, kind: str) -> tuple[int, ...]:
        """Kernel rows and columns, strides, dilation, and pads at the begin and end of both."""
        random = self.random
        if kind == "point":
            return 1, 1, 1, 1, 1, 0, 0, 0, 0
        kernel = random.choice((1, 2, 3, 3, 3, 5))
        across = random.choice((kernel, kernel, kernel, 1, 3))
        by, dilation = random.choice((1, 1, 1, 2)), random.choice((1, 1, 1, 2))
        around = [(k - 1) * dilation // 2 for k in (kernel, across)]
        if random.random() < 0.25:
            around = [random.randint(0, k - 1) for k in (kernel, across)]
        behind = around if random.random() < 0.8 else [max(0, n - 1) for n in around]
        return kernel, across, by, random.choice((by, by, 1)), dilation, *around, *behind

    def conv(self, kind: str, name: str, c: int, h: int, w: int) -> None:
        random = self.random
        kh, kw, sh, sw, d, top, left, bottom, right = self.windows(kind)
        rows, columns = (
            (h + top + bottom - d * (kh - 1) - 1) // sh,
            (w + left + right - d * (kw - 1) - 1) // sw,
        )
        groups = c if kind == "depthwise" else 2 if kind == "groups" and c % 2 == 0 else 1
        made = c if kind == "depthwise" else random.choice((1, 2, 4, 6, 8, 17)) * (2 if groups == 2 else 1)
        if rows < 0 or columns < 0:
            return
        inputs = [name, self.weight(made, c // groups, kh, kw)]
        inputs += [self.weight(made)] if random.random() < 0.7 else []
        self.add(
            "Conv", inputs, (made, rows + 1, columns + 1), kernel_shape=[kh, kw], strides=[sh, sw],
            dilations=[d, d], pads=[top, left, bottom, right], group=groups,
        )  # fmt: skip
        if random.random() < 0.4:
            self.element()

    def element(self) -> None:
        name, *shape = self.maps[-1]
        self.add(self.random.choice(("Relu", "Sigmoid")), [name], tuple(shape))  # type: ignore[arg-type]

    def pool(self, name: str, c: int, h: int, w: int) -> None:
        size, by = self.random.choice((2, 3)), self.random.choice((1, 1, 2))
        around = self.random.choice((0, size // 2))
        rows, columns = (h + 2 * around - size) // by + 1, (w + 2 * around - size) // by + 1
        if rows > 0 and columns > 0:
            kind = self.random.choice(("MaxPool", "AveragePool"))
            settings = {"kernel_shape": [size] * 2, "strides": [by] * 2, "pads": [around] * 4}
            self.add(kind, [name], (c, rows, columns), **settings)

    def grow(self) -> None:
        random = self.random
        name, c, h, w = self.maps[-1] if random.random() < 0.8 else random.choice(self.maps)
        alike = [one for one in self.maps if one[2:] == (h, w)]
        match random.choice(KINDS):
            case "conv" | "point" | "depthwise" | "groups" as kind:
                self.conv(kind, name, c, h, w)
            case "pool":
                self.pool(name, c, h, w)
            case "element":
                self.element()
            case "sum":
                other = random.choice([one for one in alike if one[1] == c])
                self.add("Add", random.sample([name, other[0]], 2), (c, h, w))
            case "concat":
                other = random.choice(alike)
                names = random.sample([name, other[0]], 2)
                self.add("Concat", names, (c + other[1], h, w), axis=1)
            case "transposed" if c * h * w < MOST:
                size, made = random.choice((2, 3, 4)), random.choice((1, 2, 4))
                around = random.choice((0, 1)) if size > 2 else 0
                rows, columns = (2 * n - 2 + size - 2 * around for n in (h, w))
                if rows > 0 and columns > 0:
                    settings = {"kernel_shape": [size] * 2, "strides": [2, 2], "pads": [around] * 4}
                    weight = self.weight(c, made, size, size)
                    self.add("ConvTranspose", [name, weight], (made, rows, columns), **settings)
            case "resize" if c * h * w < MOST:
                scales = self.constant(np.array([1, 1, 2, 2], np.float32))
                settings = {"mode": "nearest", "nearest_mode": "floor"}
                how = "asymmetric"
                self.add(
                    "Resize", [name, "", scales], (c, 2 * h, 2 * w), coordinate_transformation_mode=how,
                    **settings,
                )  # fmt: skip


def windowed_model(random: Random, most: int = 5) -> onnx.ModelProto:
    """Return a model of about 1 to `most` operators, each of which is read or an output."""
    maps = Maps(random)
    for _ in range(random.randint(1, most)):
        maps.grow()
    while not maps.nodes:
        maps.grow()
    read = {name for node in maps.nodes for name in node.input}
    outputs = [name for name, *_ in maps.maps if name not in read]
    _, *shape = maps.maps[0]
    graph = helper.make_graph(
        maps.nodes,
        "windows",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, *shape])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        maps.weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return shape_inference.infer_shapes(model, strict_mode=True)
