"""Small networks with random weights, and what onnxruntime's quantiser makes of them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

CNN = """(float[1,3,16,16] x) => (float[1,10] y) <int64[2] t = {1, 16}> {
    a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1, b1)  r = Relu(a)
    d = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=8>(r, w2)
    p = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(d)
    e = Conv<kernel_shape=[1,1]>(p, w3)  s = Add(e, r)  c = Concat<axis=1>(s, p)
    f = AveragePool<kernel_shape=[2,2], strides=[2,2]>(c)
    g = GlobalAveragePool(f)  h = Reshape(g, t)  l = Gemm<transB=1>(h, w4, b4)  y = Softmax(l) }"""

CNN_WEIGHTS = {
    "w1": (8, 3, 3, 3), "b1": (8,), "w2": (8, 1, 3, 3), "w3": (8, 8, 1, 1), "w4": (10, 16), "b4": (10,)
}  # fmt: skip


ENCODER = """(float[1,16,32] x) => (float[1,16,32] y)
    <int64[4] h = {1, 16, 4, 8}, int64[3] r = {1, 16, 32}, float c = {0.35}> {
    n = LayerNormalization(x, g1, b1)  q = MatMul(n, wq)  k = MatMul(n, wk)  v = MatMul(n, wv)
    qh = Reshape(q, h)  kh = Reshape(k, h)  vh = Reshape(v, h)
    qt = Transpose<perm=[0,2,1,3]>(qh)  kt = Transpose<perm=[0,2,3,1]>(kh)  vt = Transpose<perm=[0,2,1,3]>(vh)
    s = MatMul(qt, kt)  m = Mul(s, c)  p = Softmax(m)  o = MatMul(p, vt)
    ot = Transpose<perm=[0,2,1,3]>(o)  t = Reshape(ot, r)  u = MatMul(t, wo)  e = Add(u, x)
    z = LayerNormalization(e, g2, b2)  f = MatMul(z, w1)  a = Gelu(f)  d = MatMul(a, w2)  y = Add(d, e) }"""

ENCODER_WEIGHTS = {
    **dict.fromkeys(("g1", "b1", "g2", "b2"), (32,)), **dict.fromkeys(("wq", "wk", "wv", "wo"), (32, 32)),
    "w1": (32, 64), "w2": (64, 32),
}  # fmt: skip


def with_weights(text: str, opset: int = 18, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    """A model from the body of an ONNX text, with normal random initializers of these shapes."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\ng {text}')
    random = np.random.default_rng(0)
    for name, shape in shapes.items():
        value = (random.standard_normal(shape) / 3).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return model


def float_cnn() -> onnx.ModelProto:
    """Convolutions of all sorts, pools, a sum, a concat, a product and a softmax."""
    return with_weights(CNN, **CNN_WEIGHTS)


def quantised(model: onnx.ModelProto, folder: Path, *, operators: bool = False, **options: Any) -> Path:
    """The file of a model that onnxruntime quantised statically, in QDQ form or as quantised `operators`."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    given = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input}

    class Inputs(quantization.CalibrationDataReader):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self.left: Iterator[int] = iter(range(2))

        def get_next(self) -> dict[str, Any] | None:
            seed = next(self.left, None)
            if seed is None:
                return None
            random = np.random.default_rng(seed)
            return {name: random.standard_normal(shape).astype(np.float32) for name, shape in given.items()}

    source, target = folder / "float.onnx", folder / f"quantised{int(operators)}.onnx"
    source.write_bytes(model.SerializeToString())
    form = quantization.QuantFormat.QOperator if operators else quantization.QuantFormat.QDQ
    logging.disable(logging.WARNING)
    try:
        quantization.quantize_static(source, target, Inputs(), quant_format=form, **options)
    finally:
        logging.disable(logging.NOTSET)
    return target


def between_conversions(path: Path) -> Path:
    """The file without the conversions of its input x and its output y: both are integers then."""
    model = onnx.load(path)
    [first] = [n for n in model.graph.node if n.op_type == "QuantizeLinear" and n.input[0] == "x"]
    [last] = [n for n in model.graph.node if n.output[0] == "y"]
    model.graph.node.remove(first)
    model.graph.node.remove(last)
    for side, name in ((model.graph.input[0], first.output[0]), (model.graph.output[0], last.input[0])):
        side.name, side.type.tensor_type.elem_type = name, onnx.TensorProto.INT8
    made = path.with_name("inner.onnx")
    made.write_bytes(model.SerializeToString())
    return made
