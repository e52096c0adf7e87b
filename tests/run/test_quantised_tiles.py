"""Quantised networks in tiles: every integer as in onnxruntime, however the plan cuts them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import onchip
from onchip.plans import Blocks, Nest, Tiling
from onchip.readers import load
from onchip.run import run
from quantised_models import ENCODER, ENCODER_WEIGHTS, between_conversions, float_cnn, quantised, with_weights


@pytest.mark.parametrize("budget", [550, 1000, 1500, 2200, 4000])
@pytest.mark.parametrize("operators", [False, True])
def test_a_convolutional_network(tmp_path: Path, budget: int, operators: bool) -> None:
    """From blocks of single operators to bands of most of the network, in slices of channels and not."""
    path = quantised(float_cnn(), tmp_path, operators=operators, per_channel=True)
    plan = onchip.plan(path, fuse=True, budget=budget, nests=False)
    wanted = Blocks if budget == 550 else Tiling
    assert any(isinstance(group.tiling, wanted) for group in plan.groups)
    report = run(plan, load(path))
    assert report.bit_exact
    assert report.operators == len(plan.network.operators)


@pytest.mark.parametrize("budget", [550, 1000, 2200])
@pytest.mark.parametrize("operators", [False, True])
def test_a_convolutional_network_in_nests(tmp_path: Path, budget: int, operators: bool) -> None:
    """Windows slide in nests of integers as in those of floats."""
    path = quantised(float_cnn(), tmp_path, operators=operators, per_channel=True)
    plan = onchip.plan(path, fuse=True, budget=budget)
    assert any(isinstance(group.tiling, Nest) for group in plan.groups)
    assert run(plan, load(path)).bit_exact


@pytest.mark.parametrize("budget", [1000, 1500, 2500])
def test_an_encoder(tmp_path: Path, budget: int) -> None:
    """It moves what its twin moves; attention and norms run in parts, too."""
    path = between_conversions(quantised(with_weights(ENCODER, 20, **ENCODER_WEIGHTS), tmp_path))
    plan = onchip.plan(path, fuse=True, budget=budget)
    twin = onchip.plan(tmp_path / "float.onnx", fuse=True, budget=budget, dtype="int8")
    assert plan.groups
    assert plan.result.traffic_bytes <= twin.result.traffic_bytes * 1.02
    assert run(plan, load(path)).bit_exact


def exact_in_nests(model: onnx.ModelProto, folder: Path, budget: int) -> None:
    """Plan a model in nests and run it: every operator, bit for bit."""
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    plan = onchip.plan(path, fuse=True, budget=budget)
    assert any(isinstance(group.tiling, Nest) for group in plan.groups)
    report = run(plan, load(path))
    assert report.bit_exact
    assert report.operators == len(plan.network.operators)


DYNAMIC = """(float[16,24] x) => (float[16,24] y) {
    q, s, z = DynamicQuantizeLinear(x)  a = MatMulInteger(q, u, z)  f = Cast<to = 1>(a)  h = Mul(f, s)
    r = Relu(h)  p, t, o = DynamicQuantizeLinear(r)  b = MatMulInteger(p, v, o)  g = Cast<to = 1>(b)
    k = Mul(g, t)  y = Add(k, x) }"""


@pytest.mark.parametrize("budget", [300, 600, 2000, 3000])
@pytest.mark.parametrize("vendor", [False, True])
def test_a_network_that_is_quantised_as_it_runs(tmp_path: Path, budget: int, vendor: bool) -> None:
    """The range of all elements goes along with what makes them, in rooms for a part of them."""
    random = np.random.default_rng(0)
    text = DYNAMIC
    if vendor:
        text = """(float[16,24] x) => (float[16,24] y) <float i = {0.02}> {
            h = com.microsoft.DynamicQuantizeMatMul(x, u, i)  r = Relu(h)
            k = com.microsoft.DynamicQuantizeMatMul(r, v, i)  y = Add(k, x) }"""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\ng {text}'
    )
    for name, shape in {"u": (24, 40), "v": (40, 24)}.items():
        value = random.integers(-90, 90, shape).astype(np.int8)
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    exact_in_nests(model, tmp_path, budget)


MAPS = """(float[1,3,10,10] x) => (float[1,3,10,10] y) {
    q, s, z = DynamicQuantizeLinear(x)  a = ConvInteger<kernel_shape = [3,3], pads = [1,1,1,1]>(q, u, z)
    f = Cast<to = 1>(a)  h = Mul(f, s)  r = Relu(h)  p, t, o = DynamicQuantizeLinear(r)
    b = ConvInteger<kernel_shape = [3,3], pads = [1,1,1,1]>(p, v, o)  g = Cast<to = 1>(b)
    k = Mul(g, t)  y = Add(k, x) }"""


@pytest.mark.parametrize("budget", [700, 1500, 4000])
def test_maps_that_are_quantised_as_they_run(tmp_path: Path, budget: int) -> None:
    """A map times one computed number goes in parts as any other function of its elements."""
    random = np.random.default_rng(0)
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\ng {MAPS}')
    for name, shape in {"u": (8, 3, 3, 3), "v": (3, 8, 3, 3)}.items():
        value = random.integers(0, 255, shape).astype(np.uint8)
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    exact_in_nests(model, tmp_path, budget)


NARROW = "com.microsoft.MatMulNBits<K = 48, N = 10, bits = 4, block_size = 16"


@pytest.mark.parametrize("product", [f"{NARROW}>(x, q, f, , , a)", f"{NARROW}, accuracy_level = 4>(x, q, f)"])
def test_a_product_with_narrow_weights(tmp_path: Path, product: str) -> None:
    """With an addend, its features come in slices; at level 4 onnxruntime rounds what it reads to 8 bits."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\n'
        f"g (float[4,48] x) => (float[4,10] y) {{ h = {product}  y = Relu(h) }}"
    )
    random = np.random.default_rng(0)
    for name, value in {
        "q": random.integers(0, 256, (10, 3, 8)).astype(np.uint8),
        "f": random.random(30).astype(np.float32),
        "a": random.random(10).astype(np.float32),
    }.items():
        if name in model.graph.node[0].input:
            model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    path = tmp_path / "net.onnx"
    path.write_bytes(model.SerializeToString())
    plan = onchip.plan(path, fuse=True, budget=300)
    assert any(isinstance(group.tiling, Nest) for group in plan.groups)
    assert run(plan, load(path)).operators == len(plan.network.operators)


def test_a_matrix_of_one_row_is_no_vector_besides(tmp_path: Path) -> None:
    """It has as many elements as the result has channels, as a bias would; it is fetched once."""
    text = """(uint8[64,1] x) => (float[64,3] y) <float s = {0.05}, uint8 z = {128}> {
        d = DequantizeLinear(x, s, z)  a = MatMul(d, w)  y = Relu(a) }"""
    path = tmp_path / "net.onnx"
    path.write_bytes(with_weights(text, w=(1, 3)).SerializeToString())
    plan = onchip.plan(path, fuse=True, budget=200)
    assert any(group.tiling is not None for group in plan.groups)
    assert run(plan, load(path)).bit_exact
