"""Shapes: symbolic dimensions get values, shape arithmetic is folded, weights never are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from build import graph, read, rows, save, weighted
from onnx import TensorProto, helper
from stepwise import differing, loose_nodes

from onchip.base.errors import UsageError


def sizes(model: onnx.ModelProto | str, folder: Path, **options: object) -> dict[str, int]:
    return {t.name: t.bytes for t in read(model, folder, **options).network.tensors}


def test_symbols_get_values(tmp_path: Path) -> None:
    text = "(float[batch,3,H,?] x) => (float[batch,3,H,w] y) { y = Relu(x) }"
    source = read(text, tmp_path, dims="batch=2, H=5,x.3=7", dtype="int8")
    assert [t.bytes for t in source.network.tensors] == [210, 210]
    assert source.executable is not None
    assert source.executable.shape == ((2, 3, 5, 7), (2, 3, 5, 7))
    assert differing(read(text, tmp_path, dims="batch=2, H=5,x.3=7")) == []


def test_stale_shapes_in_the_file_are_not_believed(tmp_path: Path) -> None:
    model = graph("(float[n,4] x) => (float[1,4] y) { a = Softmax(x) y = Relu(a) }")
    model.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [1, 4]))
    assert sizes(model, tmp_path, dims="n=3", granularity="op") == {"x": 48, "a": 48, "y": 48}


def test_a_shape_only_the_file_knows_is_taken(tmp_path: Path) -> None:
    model = graph("(float[8] x) => (int64[1,n] y) { p = NonZero(x) y = Neg(p) }")
    model.graph.value_info.append(helper.make_tensor_value_info("p", TensorProto.INT64, [1, "n"]))
    with pytest.raises(UsageError, match=r"no input of .* has a dimension n"):
        read(model, tmp_path, dims="n=5")
    model.graph.value_info[0].type.tensor_type.shape.dim[1].dim_value = 5
    assert sizes(model, tmp_path, granularity="op") == {"x": 32, "p": 40, "y": 40}


SHAPE_ARITHMETIC = """(float[batch,3,H,W] x) => (float[batch,n] y)
    <int64 zero = {0}, int64 two = {2}, int64 three = {3}, int64[1] first = {0}, int64[1] minus = {-1},
     int64 double = {2}, float[0] empty> {
    r = Relu(x)
    s = Shape(r)  h = Gather(s, two)  w = Gather(s, three)  hh = Mul(h, double)  ww = Mul(w, double)
    h1 = Unsqueeze(hh, first)  w1 = Unsqueeze(ww, first)  b = Gather(s, zero)  b1 = Unsqueeze(b, first)
    c = Slice(s, b0, b2, first)  size = Concat<axis=0>(c, h1, w1)
    z = Resize<mode="nearest">(r, , , size)
    t = Concat<axis=0>(b1, minus)  y = Reshape(z, t) }"""


def test_shape_arithmetic_is_folded_and_runs(tmp_path: Path) -> None:
    model = graph(SHAPE_ARITHMETIC)
    for name, value in (("b0", 0), ("b2", 2)):
        model.graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [1], [value]))
    source = read(model, tmp_path, dims="batch=2,H=4,W=5", granularity="op")
    assert rows(source) == [("Relu", ["x"], ["r"]), ("Resize", ["r"], ["z"])]
    assert {t.name: t.bytes for t in source.network.tensors} == {"x": 480, "r": 480, "z": 1920}
    assert source.network.weight_bytes == 0
    assert differing(source) == []
    assert loose_nodes(source) == []


def test_a_range_and_a_computed_mask_are_constant(tmp_path: Path) -> None:
    text = """(float[4,6] x) => (float[4,6] y) <int64 zero = {0}, int64 one = {1}, int64 i = {1}> {
        s = Shape(x)  n = Gather(s, i)  r = Range(zero, n, one)  f = Cast<to=1>(r)  a = Mul(x, f)
        y = Softmax(a) }"""
    source = read(text, tmp_path)
    assert rows(source) == [("Mul", ["x"], ["a"]), ("Softmax", ["a"], ["y"])]
    assert [op.weight_bytes for op in source.network.operators] == [6 * 8, 0]  # as the int64 it is cast from
    assert differing(source) == []


def test_what_depends_on_inputs_is_not_folded(tmp_path: Path) -> None:
    text = "(float[4] x) => (float[4] y) <float zero = {0}> { a = Mul(x, zero) b = Sub(x, x) y = Add(a, b) }"
    assert len(read(text, tmp_path, granularity="op").network.operators) == 3


def test_random_numbers_are_an_operator(tmp_path: Path) -> None:
    text = "(float[4] x) => (float[4] y) { r = RandomNormal<shape=[4]>() s = Softmax(r) y = Add(x, s) }"
    source = read(text, tmp_path)
    assert rows(source)[0] == ("RandomNormal", [], ["r"])


def test_weights_stay_weights_on_their_way(tmp_path: Path) -> None:
    text = """(float[2,8] x) => (float[2,16] y) <int64[2] t = {8, 16}, float point = {0.5}, int8 z = {0}> {
        a = DequantizeLinear(w, point, z)  b = Transpose(a)  c = Reshape(b, t)  y = MatMul(x, c) }"""
    model = graph(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((16, 8), np.int8), "w"))
    for granularity in ("op", "fused"):
        source = read(model, tmp_path, granularity=granularity)
        assert rows(source) == [("MatMul", ["x"], ["y"])]
        assert source.network.weight_bytes == 128  # bytes as stored, not as dequantised
        assert differing(source) == []


def test_a_part_of_a_parameter_keeps_its_own_size(tmp_path: Path) -> None:
    text = """(float[2,4] x) => (float[2,4] y) <int64[2] sizes = {4, 8}> {
        a, b = Split<axis=1>(w, sizes)  y = MatMul(x, a) }"""
    assert read(weighted(graph(text), w=(4, 12)), tmp_path).network.weight_bytes == 64


def structure_only(rows_: int) -> onnx.ModelProto:
    model = graph(f"(float[1,{rows_}] x) => (float[1,{rows_}] y) {{ t = Transpose(w) y = MatMul(x, t) }}")
    model.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[rows_, rows_])
    return model


def test_weights_without_data_are_weights(tmp_path: Path) -> None:
    source = read(structure_only(1 << 18), tmp_path)
    assert source.network.weight_bytes == 4 << 36
    assert source.executable is not None
    assert not source.executable.model.graph.initializer[0].raw_data


def test_filled_weights_are_never_computed(tmp_path: Path) -> None:
    text = """(float[1,100000] x) => (float[1,100000] y) <int64[2] n = {100000, 100000}> {
        w = ConstantOfShape<value = float[1] {0.5}>(n)  t = Transpose(w)  y = MatMul(x, t) }"""
    source = read(text, tmp_path)
    assert source.network.weight_bytes == 40_000_000_000


MEASURE = """
import resource, sys
from onchip.readers import ReadOptions, load
import onchip.readers.onnx_reader, onnx.shape_inference, onnx.checker
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
source = load(sys.argv[1], ReadOptions())
print(source.network.weight_bytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_a_large_file_is_not_copied_around(tmp_path: Path) -> None:
    side = 5_000
    model = structure_only(side)
    model.graph.initializer[0].raw_data = bytes(4 * side * side)
    path = save(model, tmp_path)
    ran = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
    )
    weight_bytes, grown = map(int, ran.stdout.split())
    assert weight_bytes == 4 * side * side
    assert grown * 1024 < 2.4 * weight_bytes  # the file's bytes and what protobuf makes of them, nothing more
