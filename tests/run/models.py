"""Small executable models, one for each thing that an executor can get wrong."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import TensorProto, helper, parser

from onchip.readers import ReadOptions, load
from onchip.readers.source import Source

HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'

MODELS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "residual": (
        """residual (float[1,4,8,8] x) => (float[1,4,8,8] y) {
            a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1)
            b = BatchNormalization(a, s, o, m, v)
            c = Relu(b)
            d = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(c, w2, b2)
            e = Add(d, x)
            f = Conv<kernel_shape=[1,1]>(e, w3)
            g = Relu(f)
            y = Add(g, e)
        }""",
        {"w1": (4, 4, 3, 3), "w2": (4, 4, 3, 3), "w3": (4, 4, 1, 1), "b2": (4,)}
        | dict.fromkeys(("s", "o", "m", "v"), (4,)),
    ),
    "concat": (
        """concat (float[1,3,6,6] x) => (float[1,5] y) {
            a = Conv<kernel_shape=[1,1]>(x, w1)
            b = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w2)
            p = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(x)
            c = Concat<axis=1>(a, b, p, x)
            d = Conv<kernel_shape=[2,2], strides=[2,2]>(c, w3)
            e = GlobalAveragePool(d)
            f = Flatten(e)
            h = Gemm<transB=1>(f, w4, b4)
            y = Softmax(h)
        }""",
        {"w1": (4, 3, 1, 1), "w2": (6, 3, 3, 3), "w3": (8, 16, 2, 2), "w4": (5, 8), "b4": (5,)},
    ),
    "views": (
        """views (float[8,6] x) => (float[8,6] y, float[4,6] z)
        <int64[1] zero = {0}, int64[1] four = {4}, int64[1] eight = {8}, int64[2] shape = {6, 8},
         int64[2] back = {8, 6}> {
            a = MatMul(x, w)
            b = Tanh(a)
            low = Slice(b, zero, four, zero)
            high = Slice(b, four, eight, zero)
            c = MatMul(low, w)
            d = MatMul(high, w)
            e = Add(c, low)
            f = Concat<axis=0>(d, e)
            g = Reshape(f, shape)
            h = Relu(g)
            i = Reshape(h, back)
            y = Mul(i, b)
            s1, s2 = Split<axis=0>(y)
            z = Sub(s1, s2)
        }""",
        {"w": (6, 6)},
    ),
    "outputs": (
        """outputs (float[2,12] x) => (float[2,12] x2, float[2,4] kept, float[2,12] inside) {
            inside = Relu(x)
            v, i = TopK<axis=1>(inside, k)
            kept = Abs(v)
            j = Neg(inside)
            x2 = MatMul(j, w)
        }""",
        {"w": (12, 12)},
    ),
    "attention": (
        """attention (float[1,6,8] x) => (float[1,6,8] y)
        <float[1] scale = {0.3535}> {
            n = LayerNormalization(x, g1, b1)
            q = MatMul(n, wq)
            k = MatMul(n, wk)
            v = MatMul(n, wv)
            kt = Transpose<perm=[0,2,1]>(k)
            s = MatMul(q, kt)
            t = Mul(s, scale)
            p = Softmax(t)
            o = MatMul(p, v)
            r = MatMul(o, wo)
            y = Add(r, x)
        }""",
        {"g1": (8,), "b1": (8,)} | dict.fromkeys(("wq", "wk", "wv", "wo"), (8, 8)),
    ),
}


TYPED = {
    "half": """half (float16[1,4,8,8] x) => (float16[1,4,8,8] y)
        {
            a = Relu(x)
            b = Mul(a, x)
            c = Add(b, a)
            d = MatMul(c, c)
            y = Sigmoid(d)
        }""",
    "double": """double (double[3,5] x) => (double[3,5] y) {
            a = Tanh(x)
            b = Mul(a, x)
            y = Sub(b, a)
        }""",
    "integers": """integers (int64[2,3] x, bool[2,3] m) => (int32[2,3] y, bool[2,3] z) {
            a = Add(x, x)
            b = Where(m, a, x)
            n = Not(m)
            c = Cast<to=6>(b)
            y = Neg(c)
            z = And(n, m)
        }""",
    "quantised": """quantised (uint8[1,3,8,8] x) => (uint8[1,4,6,6] y)
        <float s = {0.02}, uint8 z = {128}, float sw = {0.01}, int8 zw = {0}, float so = {0.1}> {
            a = QLinearConv<kernel_shape=[3,3]>(x, s, z, w, sw, zw, so, z)
            b = DequantizeLinear(a, so, z)
            c = Relu(b)
            d = QuantizeLinear(c, so, z)
            y = MaxPool<kernel_shape=[1,1]>(d)
        }""",
}
"""Models at other element types than float32."""


def typed(name: str) -> onnx.ModelProto:
    """One of `TYPED`."""
    proto = parser.parse_model(HEADER + TYPED[name])
    if name == "quantised":
        weight = TensorProto(name="w", dims=(4, 3, 3, 3), data_type=TensorProto.INT8)
        proto.graph.initializer.append(weight)
    return proto


def model(name: str) -> onnx.ModelProto:
    """One of `MODELS` with its weights as initializers without data."""
    text, weights = MODELS[name]
    proto = parser.parse_model(HEADER + text)
    for weight, shape in weights.items():
        proto.graph.initializer.append(TensorProto(name=weight, dims=shape, data_type=TensorProto.FLOAT))
    if name == "outputs":
        proto.graph.initializer.append(helper.make_tensor("k", TensorProto.INT64, [1], [4]))
    return proto


def source(name: str, folder: Path, options: ReadOptions | None = None) -> Source:
    """One of `MODELS`, written to a file and read."""
    return read(model(name), folder / f"{name}.onnx", options)


def read(proto: onnx.ModelProto, path: Path, options: ReadOptions | None = None) -> Source:
    """A model written to `path` and read."""
    path.write_bytes(proto.SerializeToString())
    return load(path, options)
