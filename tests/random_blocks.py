"""Random small networks out of the blocks of today's networks, as ONNX models with random weights."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import numpy as np
import onnx
from onnx import helper, numpy_helper

__all__ = ["block_network"]

Shape = tuple[int, ...]


class Blocks:
    """Nodes and weights of a model in the making; a value is its name, `shape` has its shape."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.nodes, self.shape = rng, list[onnx.NodeProto](), dict[str, Shape]()
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[str] = []
        self.values = np.random.default_rng(rng.getrandbits(32))

    def input(self, shape: Shape) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs.append(name)
        self.shape[name] = shape
        return name

    def node(self, kind: str, reads: list[str], shape: Shape, **attributes: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, reads, [name], name, **attributes))
        self.shape[name] = shape
        return name

    def weight(self, *shape: int) -> str:
        return self.constant((self.values.standard_normal(shape) / 4).astype(np.float32))

    def constant(self, value: np.ndarray) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        self.shape[name] = tuple(np.shape(value))
        return name

    def ints(self, *values: int) -> str:
        return self.constant(np.asarray(values, dtype=np.int64))

    # -- values of [images, tokens, features] ----------------------------------------------------------------

    def dense(self, x: str, out: int) -> str:
        *outer, deep = self.shape[x]
        made = self.node("MatMul", [x, self.weight(deep, out)], (*outer, out))
        return self.node("Add", [made, self.weight(out)], (*outer, out)) if self.rng.random() < 0.5 else made

    def same(self, kind: str, *reads: str, **attributes: object) -> str:
        return self.node(kind, list(reads), self.shape[reads[0]], **attributes)

    def active(self, x: str) -> str:
        way = self.rng.choice(("Relu", "Gelu", "gelu in parts", "silu", "Tanh"))
        if way == "gelu in parts":
            half = self.same("Mul", x, self.constant(np.float32(0.7071)))
            erf = self.same("Erf", half)
            one = self.same("Add", erf, self.constant(np.float32(1)))
            return self.same("Mul", self.same("Mul", x, one), self.constant(np.float32(0.5)))
        if way == "silu":
            return self.same("Mul", x, self.same("Sigmoid", x))
        return self.same(way, x)

    def norm(self, x: str) -> str:
        deep, way = self.shape[x][-1], self.rng.choice(("layer", "rms", "layer in parts", "none"))
        if way == "none":
            return x
        if way == "layer":
            return self.same("LayerNormalization", x, self.weight(deep), self.weight(deep), axis=-1)
        outer = (*self.shape[x][:-1], 1)
        last = self.ints(-1)
        if way == "layer in parts":
            x = self.same("Sub", x, self.node("ReduceMean", [x, last], outer, keepdims=1))
        square = self.same("Mul", x, x)
        mean = self.node("ReduceMean", [square, last], outer, keepdims=1)
        root = self.node("Sqrt", [self.same("Add", mean, self.constant(np.float32(1e-3)))], outer)
        return self.same("Mul", self.same("Div", x, root), self.weight(deep))

    def heads(self, x: str, heads: int, flip: bool = False) -> str:
        n, tokens, deep = self.shape[x]
        apart = self.node(
            "Reshape", [x, self.ints(n, tokens, heads, deep // heads)], (n, tokens, heads, deep // heads)
        )
        if flip:
            return self.node("Transpose", [apart], (n, heads, deep // heads, tokens), perm=[0, 2, 3, 1])
        return self.node("Transpose", [apart], (n, heads, tokens, deep // heads), perm=[0, 2, 1, 3])

    def attention(self, x: str) -> str:
        n, tokens, deep = self.shape[x]
        heads = self.rng.choice([h for h in (1, 2, 3, 4) if deep % h == 0])
        keys = self.input((n, self.rng.choice((3, 5, 8)), deep)) if self.rng.random() < 0.2 else x
        width = deep // heads
        groups = (
            self.rng.choice([g for g in (1, 2, 4) if heads % g == 0]) if self.rng.random() < 0.3 else heads
        )
        if keys == x and groups == heads and self.rng.random() < 0.4:
            packed = self.dense(x, 3 * deep)
            names = [f"{packed}.{i}" for i in range(3)]
            self.nodes.append(helper.make_node("Split", [packed, self.ints(deep, deep, deep)], names, axis=2))
            self.shape.update(dict.fromkeys(names, (n, tokens, deep)))
            q, k, v = names
        else:
            q, k, v = self.dense(x, deep), self.dense(keys, groups * width), self.dense(keys, groups * width)
        columns = self.shape[k][1]
        q, k, v = self.heads(q, heads), self.heads(k, groups, flip=True), self.heads(v, groups)
        if groups != heads:
            k, v = (self.repeated(one, heads) for one in (k, v))
        scores = self.node("MatMul", [q, k], (n, heads, tokens, columns))
        if self.rng.random() < 0.7:
            scores = self.same("Mul", scores, self.constant(np.float32(0.3)))
        if self.rng.random() < 0.5:
            mask = self.rng.choice(
                ((tokens, columns), (1, 1, tokens, columns), (1, heads, tokens, columns), (n, 1, 1, columns))
            )
            scores = self.same(
                "Add", scores, self.weight(*mask) if self.rng.random() < 0.5 else self.input(mask)
            )
        shares = self.same("Softmax", scores, axis=-1)
        out = self.node("MatMul", [shares, v], (n, heads, tokens, width))
        back = self.node("Transpose", [out], (n, tokens, heads, width), perm=[0, 2, 1, 3])
        joined = self.node("Reshape", [back, self.ints(n, tokens, deep)], (n, tokens, deep))
        return self.dense(joined, deep)

    def repeated(self, x: str, heads: int) -> str:
        n, groups, a, b = self.shape[x]
        apart = self.node("Unsqueeze", [x, self.ints(2)], (n, groups, 1, a, b))
        wide = (n, groups, heads // groups, a, b)
        spread = self.node("Expand", [apart, self.ints(*wide)], wide)
        return self.node("Reshape", [spread, self.ints(n, heads, a, b)], (n, heads, a, b))

    def hidden(self, x: str) -> str:
        deep, wide = self.shape[x][-1], self.rng.choice((6, 16, 20, 48))
        made = self.active(self.dense(x, wide))
        if self.rng.random() < 0.3:
            made = self.same("Mul", made, self.dense(x, wide))
        return self.dense(made, deep)

    def residual(self, x: str, branch: Callable[[str], str]) -> str:
        way = self.rng.choice(("before", "behind", "none"))
        made = branch(self.norm(x) if way == "before" else x)
        total = self.same("Add", made, x)
        return self.norm(total) if way == "behind" else total

    # -- maps of [images, channels, rows, columns] -----------------------------------------------------------

    def conv(self, x: str) -> str:
        n, c, h, w = self.shape[x]
        k, stride = self.rng.choice((1, 1, 3, 3, 5)), self.rng.choice((1, 1, 1, 2))
        pad = self.rng.choice((0, k // 2)) if min(h, w) >= k + stride else k // 2
        groups = self.rng.choice([g for g in (1, 1, 2, c) if c % g == 0])
        out = c if groups == c else self.rng.choice((2, 4, 8))
        out = -(-out // groups) * groups
        rows, columns = (((side + 2 * pad - k) // stride + 1) for side in (h, w))
        reads = [x, self.weight(out, c // groups, k, k)] + [self.weight(out)] * (self.rng.random() < 0.5)
        return self.node("Conv", reads, (n, out, rows, columns), kernel_shape=[k, k], strides=[stride] * 2,
                         pads=[pad] * 4, group=groups)  # fmt: skip

    def on_maps(self, x: str) -> str:
        n, c, h, w = self.shape[x]
        way = self.rng.choice(
            ("conv", "conv", "conv", "pool", "resize", "upconv", "concat", "group norm", "excite")
        )
        if way == "pool" and min(h, w) >= 4:
            kind = self.rng.choice(("MaxPool", "AveragePool"))
            return self.node(kind, [x], (n, c, h // 2, w // 2), kernel_shape=[2, 2], strides=[2, 2])
        if way == "resize" and h * w < 200:
            sizes = self.constant(np.asarray([1, 1, 2, 2], dtype=np.float32))
            mode = self.rng.choice(("nearest", "linear"))
            return self.node("Resize", [x, "", sizes], (n, c, 2 * h, 2 * w), mode=mode)
        if way == "upconv" and h * w < 200:
            return self.node(
                "ConvTranspose", [x, self.weight(c, 4, 2, 2)], (n, 4, 2 * h, 2 * w), strides=[2, 2]
            )
        if way == "concat":
            other = self.active(x)
            return self.node("Concat", [x, other], (n, 2 * c, h, w), axis=1)
        if way == "group norm":
            return self.same("InstanceNormalization", x, self.weight(c), self.weight(c))
        if way == "excite":
            mean = self.node("GlobalAveragePool", [x], (n, c, 1, 1))
            gate = self.node("Conv", [mean, self.weight(c, c, 1, 1)], (n, c, 1, 1))
            return self.same("Mul", x, self.node("Sigmoid", [gate], (n, c, 1, 1)))
        made = self.conv(x)
        made = self.active(made) if self.rng.random() < 0.6 else made
        return (
            self.same("Add", made, x)
            if self.shape[made] == self.shape[x] and self.rng.random() < 0.5
            else made
        )

    def as_tokens(self, x: str) -> str:
        n, c, h, w = self.shape[x]
        flat = self.node("Reshape", [x, self.ints(n, c, h * w)], (n, c, h * w))
        return self.node("Transpose", [flat], (n, h * w, c), perm=[0, 2, 1])

    def model(self, outputs: list[str]) -> onnx.ModelProto:
        def told(name: str) -> onnx.ValueInfoProto:
            return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, self.shape[name])

        graph = helper.make_graph(
            self.nodes, "blocks", [*map(told, self.inputs)], [*map(told, outputs)], self.weights
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def block_network(seed: int) -> onnx.ModelProto:
    """Return a network of one to four blocks."""
    made = Blocks(Random(f"blocks {seed}"))
    rng, n = made.rng, made.rng.choice((1, 1, 1, 2))
    maps = rng.random() < 0.5
    if maps:
        x = made.input((n, rng.choice((2, 3, 4)), *(rng.choice((6, 8, 9, 12)) for _ in range(2))))
    else:
        x = made.input((n, rng.choice((1, 4, 6, 9)), rng.choice((8, 12, 16))))
    outputs = []
    for _ in range(rng.randint(1, 4)):
        if len(made.shape[x]) == 4 and rng.random() < 0.2 and np.prod(made.shape[x][1:]) < 600:
            x = made.as_tokens(x)
        if len(made.shape[x]) == 4:
            x = made.on_maps(x)
        else:
            x = made.residual(x, rng.choice((made.attention, made.hidden)))
        if rng.random() < 0.1 and x not in outputs:
            outputs.append(x)
    return made.model([*outputs, x] if x not in outputs else outputs)
