"""Quantised networks: in QDQ form and with quantised operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from build import graph, read, rows
from onnx import numpy_helper
from stepwise import differing, loose_nodes

from onchip.readers.ranges import with_ranges_apart

QDQ = """(float[1,3,8,8] x) => (float[1,2,8,8] y)
    <float s = {0.05}, uint8 z = {128}, float ws = {0.02}, int8 wz = {0}, int32 bz = {0}> {
    xq = QuantizeLinear(x, s, z)  xd = DequantizeLinear(xq, s, z)
    wd = DequantizeLinear(w, ws, wz)  bd = DequantizeLinear(b, ws)
    a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(xd, wd, bd)  r = Relu(a)
    rq = QuantizeLinear(r, s, z)  rd = DequantizeLinear(rq, s, z)
    p = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>(rd)
    q = Add(rd, p)  qq = QuantizeLinear(q, s, z)  y = DequantizeLinear(qq, s, z) }"""


def qdq() -> onnx.ModelProto:
    model = graph(QDQ)
    random = np.random.default_rng(0)
    model.graph.initializer.append(
        numpy_helper.from_array(random.integers(-100, 100, (2, 3, 3, 3)).astype(np.int8), "w")
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array([3, -5], np.int32), "b"))
    return model


def test_fused_tensors_stay_quantised(tmp_path: Path) -> None:
    """Quantising merges into the producer, dequantising into the readers: tensors are 8 bits wide."""
    source = read(qdq(), tmp_path, float_boundary=True)
    assert rows(source) == [
        ("QuantizeLinear", ["x"], ["xq"]),
        ("DequantizeLinear+Conv+Relu+QuantizeLinear", ["xq"], ["rq"]),
        ("DequantizeLinear+MaxPool", ["rq"], ["p"]),
        ("DequantizeLinear+Add+QuantizeLinear", ["rq", "p"], ["qq"]),
        ("DequantizeLinear", ["qq"], ["y"]),
    ]
    assert {t.name: t.bytes for t in source.network.tensors} == {
        "x": 768, "xq": 192, "rq": 128, "p": 512, "qq": 128, "y": 512
    }  # fmt: skip
    assert source.network.operators[1].weight_bytes == 54 + 2 * 4
    assert differing(source) == []
    assert loose_nodes(source) == []


def test_op_keeps_every_conversion(tmp_path: Path) -> None:
    source = read(qdq(), tmp_path, granularity="op")
    types = [row[0] for row in rows(source)]
    assert types == [
        "QuantizeLinear", "DequantizeLinear", "Conv", "Relu", "QuantizeLinear", "DequantizeLinear", "MaxPool",
        "Add", "QuantizeLinear", "DequantizeLinear",
    ]  # fmt: skip
    assert differing(source) == []


@pytest.mark.parametrize("granularity", ["op", "fused"])
def test_quantised_operators(tmp_path: Path, granularity: str) -> None:
    model = graph("""(uint8[1,3,8,8] x) => (uint8[1,4] y)
        <float s = {0.05}, uint8 z = {128}, float ws = {0.02}, int8 wz = {0}, int64[2] t = {1, 128}> {
        a = QLinearConv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, s, z, w, ws, wz, s, z)
        f = Reshape(a, t)  y = QLinearMatMul(f, s, z, m, ws, wz, s, z) }""")
    model.graph.initializer.append(numpy_helper.from_array(np.ones((2, 3, 3, 3), np.int8), "w"))
    model.graph.initializer.append(numpy_helper.from_array(np.ones((128, 4), np.int8), "m"))
    source = read(model, tmp_path, granularity=granularity)
    assert rows(source) == [("QLinearConv", ["x"], ["a"]), ("QLinearMatMul", ["a"], ["y"])]
    assert [t.bytes for t in source.network.tensors] == [192, 128, 4]
    assert [op.weight_bytes for op in source.network.operators] == [54, 512]
    assert source.network.element == "uint8"
    assert source.network.operators[0].geometry is not None
    assert differing(source) == []


def test_integer_convolution_and_dynamic_quantisation(tmp_path: Path) -> None:
    model = graph("""(float[1,3,8,8] x) => (float[1,2,8,8] y) {
        q, s, z = DynamicQuantizeLinear(x)  a = ConvInteger<kernel_shape=[3,3], pads=[1,1,1,1]>(q, w, z)
        f = Cast<to=1>(a)  y = Mul(f, s) }""")
    model.graph.initializer.append(numpy_helper.from_array(np.ones((2, 3, 3, 3), np.uint8), "w"))
    source = read(model, tmp_path)
    assert rows(source) == [
        ("ReduceMin+Min", ["x"], ["q_low"]),
        ("ReduceMax+Max", ["x"], ["q_high"]),
        ("Sub+Div+Max", ["q_high", "q_low"], ["s"]),
        ("Div+Sub+Clip+Round+Cast", ["q_low", "s"], ["z"]),
        ("QuantizeLinear", ["x", "s", "z"], ["q"]),
        ("ConvInteger+Cast", ["q", "z"], ["f"]),
        ("Mul", ["f", "s"], ["y"]),
    ]
    assert differing(source) == []
    whole = read(model, tmp_path, granularity="op")
    assert rows(whole)[0] == ("DynamicQuantizeLinear", ["x"], ["q", "s", "z"])


@pytest.mark.parametrize("kept", [0.0, 1e-3, -1.0, 1.0])
def test_the_parts_of_a_dynamic_quantisation_make_its_elements(kept: float) -> None:
    """They do where all elements are 0, too, or have one sign."""
    text = """(float[3,4] x) => (uint8[3,4] q, float s, uint8 z, float[3,4] y) {
        q, s, z = DynamicQuantizeLinear(x)  y = DequantizeLinear(q, s, z) }"""
    content = graph(text).SerializeToString()
    apart = with_ranges_apart(content)
    assert apart != content
    x = np.random.default_rng(0).random((3, 4)).astype(np.float32) * np.float32(kept)
    whole, parts = (onnxruntime.InferenceSession(file).run(None, {"x": x}) for file in (content, apart))
    for position in (0, 2, 3):
        np.testing.assert_array_equal(whole[position], parts[position])
    assert parts[1] == whole[1] or (kept == 0 and parts[1] > 0)


def test_a_dynamic_quantisation_without_parts_stays_whole(tmp_path: Path) -> None:
    """Operator set 10 has no `Clip` by operands."""
    text = """(float[3,4] x) => (float[3,2] y) <float i = {0.02}> {
        y = com.microsoft.DynamicQuantizeMatMul(x, u, i) }"""
    model = onnx.parser.parse_model(
        f'<ir_version: 5, opset_import: ["" : 10, "com.microsoft" : 1]>\ng {text}'
    )
    model.graph.initializer.append(numpy_helper.from_array(np.ones((4, 2), np.int8), "u"))
    source = read(model, tmp_path)
    assert rows(source) == [("DynamicQuantizeMatMul", ["x"], ["y"])]
    assert differing(source) == []


def test_names_of_parts_are_new(tmp_path: Path) -> None:
    text = """(float[3,4] x) => (float[3,4] y) { q_min = Relu(x)  number_0 = Neg(x)  r = Add(q_min, number_0)
        q, s, z = DynamicQuantizeLinear(r)  q_scale = DequantizeLinear(q, s, z)  y = Add(q_scale, x) }"""
    assert differing(read(graph(text), tmp_path)) == []


def test_packed_four_bit_weights_and_views(tmp_path: Path) -> None:
    model = graph(
        """(float[2,6] x) => (float[2,8] y) <float s = {0.5}> {
        d = DequantizeLinear(w, s)  y = MatMul(x, d) }""",
        opset=21,
        ir=10,
    )
    model.graph.initializer.append(onnx.helper.make_tensor("w", onnx.TensorProto.INT4, [6, 8], [1] * 48))
    source = read(model, tmp_path)
    assert source.network.weight_bytes == 24
    assert differing(source) == []
