"""Sums of floats that are rounded to integers: tiles add up as the whole does, so that no last bit differs.

Results have 16 bits and scales so small that a sum in another order would round to another integer now and
then: of a thousand elements a few.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import onchip
from onchip.base.errors import Infeasible
from onchip.plans import Leaf, Nest
from onchip.readers import ReadOptions, load
from onchip.run import run
from run.nested import Alone

STEPS = """<float s = {0.05}, uint8 z = {128}, float ws = {0.02}, int8 wz = {0},
    float t = {0.0005}, uint16 m = {32768}>"""
PRODUCT = f"""(uint8[24,300] x) => (uint16[24,40] y) {STEPS} {{
    d = DequantizeLinear(x, s, z)  k = DequantizeLinear(w, ws, wz)  a = MatMul(d, k)
    y = QuantizeLinear(a, t, m) }}"""
GEMM = f"""(uint8[24,300] x) => (uint16[24,40] y) {STEPS} {{
    d = DequantizeLinear(x, s, z)  k = DequantizeLinear(w, ws, wz)  a = Gemm<transB=1>(d, k, b)
    y = QuantizeLinear(a, t, m) }}"""
PAIR = f"""(uint8[1,16,12,12] x) => (uint16[1,24,12,12] y) {STEPS} {{
    d = DequantizeLinear(x, s, z)  k = DequantizeLinear(w, ws, wz)
    a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(d, k, b)  y = QuantizeLinear(a, t, m) }}"""
BATCHES = f"""(uint8[2,4,20,150] x, uint8[2,4,150,24] v) => (uint16[2,4,20,24] y) {STEPS} {{
    d = DequantizeLinear(x, s, z)  e = DequantizeLinear(v, s, z)  a = MatMul(d, e)
    y = QuantizeLinear(a, t, m) }}"""

MODELS = {
    "product": (PRODUCT, (300, 40), 0),
    "gemm": (GEMM, (40, 300), 40),
    "convolution": (PAIR, (24, 16, 3, 3), 24),
    "batches": (BATCHES, (), 0),
}


def written(name: str, folder: Path) -> Path:
    text, kernel, biases = MODELS[name]
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\ng {text}')
    random = np.random.default_rng(0)
    if kernel:
        value = random.integers(-127, 128, kernel).astype(np.int8)
        model.graph.initializer.append(numpy_helper.from_array(value, "w"))
    if biases:
        value = random.standard_normal(biases).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(value, "b"))
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_a_tile_is_rounded_as_the_whole(tmp_path: Path, name: str) -> None:
    path = written(name, tmp_path)
    source = load(path)
    [op] = source.network.operators
    most = sum(t.bytes for t in source.network.tensors) + op.weight_bytes
    tiled = 0
    for share in (3, 5, 9, 17, 40):
        try:
            plan = onchip.plan(path, fuse=True, budget=most // share)
        except Infeasible:
            continue
        tiled += len(plan.groups)
        assert run(plan, source).bit_exact
    assert tiled


def test_sums_that_a_nest_takes_apart_wait_for_their_last_part(tmp_path: Path) -> None:
    """The search cuts the 300 features where they do not fit; integers are the same all the same."""
    path = written("product", tmp_path)
    source = load(path)
    cut = 0
    for budget in (400, 600, 900, 1400):
        try:
            plan = onchip.plan(path, fuse=True, budget=budget)
        except Infeasible:
            continue
        assert run(plan, source).bit_exact
        cut += len(plan.groups)
    assert cut


REST = """k = DequantizeLinear(w, ws, wz)  b = DequantizeLinear(c, ws)
    a = Gemm<transB=1>(r, k, b)  y = QuantizeLinear(a, t, m) }"""
ALONE = {
    # Turns end inside a dimension of what is multiplied, so that no node runs on boxes.
    "dimensions joined": (
        f"""(uint8[1,4,1,75] x) => (uint16[1,40] y) {STEPS} {{
        p = MaxPool<kernel_shape=[1,1]>(x)  d = DequantizeLinear(p, s, z)
        rows = Constant<value_ints=[1,300]>()  r = Reshape(d, rows)  {REST}""",
        (40, 300),
    ),
    "a part of the features": (
        f"""(uint8[2,500] x) => (uint16[2,40] y) {STEPS} {{
        first = Constant<value_ints=[150]>()  end = Constant<value_ints=[450]>()
        axis = Constant<value_ints=[1]>()  p = Slice(x, first, end, axis)
        r = DequantizeLinear(p, s, z)  {REST}""",
        (40, 300),
    ),
    "one result": (
        f"(uint8[1,300] x) => (uint16[1,1] y) {STEPS} {{ r = DequantizeLinear(x, s, z)  {REST}",
        (1, 300),
    ),
}


@pytest.mark.parametrize("name", ALONE)
def test_parts_of_a_sum_wait_whatever_it_is_over(tmp_path: Path, name: str) -> None:
    text, shape = ALONE[name]
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\ng {text}')
    random = np.random.default_rng(0)
    for weight, sides, kind in (("w", shape, np.int8), ("c", shape[:1], np.int32)):
        value = random.integers(-127, 128, sides).astype(kind)
        model.graph.initializer.append(numpy_helper.from_array(value, weight))
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    net = Alone(load(path, ReadOptions(granularity="fused")))
    [product] = [op.name for op in net.network.operators if "Gemm" in op.type]
    [cut] = net.axes(product).operators
    [summed] = cut.sums
    net.lawful(Nest((Leaf(product, ((summed, 100), *([(0, 1)] if shape[0] > 1 else []))),)), product)
    assert net.comparison is not None
    assert net.comparison.bit_exact
