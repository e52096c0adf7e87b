"""Seeded weights: the same whatever the order, of the right kind, and good for deep networks."""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, numpy_helper, parser

from onchip.run import fill_weights
from onchip.run.moments import Moments
from onchip.run.weights import seeded_weights
from run.models import HEADER, model


def test_values_depend_on_seed_and_name_and_not_on_order() -> None:
    one = seeded_weights(model("residual"), 1).values
    shuffled = model("residual")
    initializers = list(shuffled.graph.initializer)
    del shuffled.graph.initializer[:]
    shuffled.graph.initializer.extend(reversed(initializers))
    for name, value in seeded_weights(shuffled, 1).values.items():
        assert np.array_equal(value, one[name])
    for name, value in seeded_weights(model("residual"), 2).values.items():
        assert not np.array_equal(value, one[name])
    assert not np.array_equal(one["w1"], one["w2"])


def test_batch_norm_gets_variances_scales_and_means_it_can_live_with() -> None:
    text = "bn (float[1,512,2,2] x) => (float[1,512,2,2] y) { y = BatchNormalization(x, s, o, m, v) }"
    proto = parser.parse_model(HEADER + text)
    for name in "somv":
        proto.graph.initializer.append(TensorProto(name=name, dims=[512], data_type=TensorProto.FLOAT))
    values = seeded_weights(proto, 0).values
    assert values["v"].min() >= 0.5
    assert values["v"].max() <= 1.5
    assert values["v"].std() > 0.2
    assert abs(values["s"].mean() - 1) < 0.05
    assert abs(values["m"]).max() < 0.2
    assert abs(values["o"]).max() < 0.2


def test_weights_with_data_are_kept() -> None:
    proto = model("residual")
    kept = np.arange(4, dtype=np.float32)
    (index,) = (i for i, t in enumerate(proto.graph.initializer) if t.name == "b2")
    proto.graph.initializer[index].CopyFrom(numpy_helper.from_array(kept, "b2"))
    weights = seeded_weights(proto, 0)
    assert np.array_equal(weights.values["b2"], kept)
    assert "b2" not in weights.seeded


FILLS = """fills (float[1,3,4,4] x) => (float[1,2,4,4] y, float[3] mask)
<int64[4] shape = {2, 3, 1, 1}, int64[1] two = {2}, int64[1] three = {3}, float[3] one = {1, 1, 1}> {
    w = ConstantOfShape<value: tensor = float[1] {0.02}>(shape)
    b = ConstantOfShape<value: tensor = float[1] {0.02}>(two)
    y = Conv<kernel_shape=[1,1]>(x, w, b)
    zeros = ConstantOfShape<value: tensor = float[1] {0.0}>(three)
    mask = Add(zeros, one)
}"""


def test_weights_that_are_one_constant_everywhere_are_replaced_and_real_constants_are_not() -> None:
    proto = parser.parse_model(HEADER + FILLS)
    weights = seeded_weights(proto, 0)
    assert set(weights.replaced) == {"w", "b"}
    assert weights.values["w"].shape == (2, 3, 1, 1)
    assert len(np.unique(weights.values["w"])) == 6


@pytest.mark.parametrize("proto", [model("residual"), model("concat"), parser.parse_model(HEADER + FILLS)])
def test_a_filled_model_is_a_model_that_runs(proto: onnx.ModelProto) -> None:
    filled = fill_weights(proto, 0)
    onnx.checker.check_model(filled)
    session = onnxruntime.InferenceSession(filled.SerializeToString())
    feed = {
        i.name: np.ones([d.dim_value for d in i.type.tensor_type.shape.dim], "f4") for i in filled.graph.input
    }
    outputs = session.run(None, feed)
    assert all(np.isfinite(value).all() for value in outputs)
    assert filled.SerializeToString() == fill_weights(proto, 0).SerializeToString()


def deep(layers: int, body: str, channels: int = 64) -> onnx.ModelProto:
    """A network of `layers` copies of `body`, which computes `n` from `p` with the weights `w` and `u`."""
    lines, weights = ["v0 = Identity(x)"], []
    for i in range(layers):
        line = body
        for name, other in {
            "p": f"v{i}",
            "n": f"v{i + 1}",
            "w": f"w{i}",
            "u": f"u{i}",
            "t": f"t{i}",
            "q": f"q{i}",
        }.items():
            line = line.replace(f"%{name}", other)
        lines.append(line)
        weights += [n for n in (f"w{i}", f"u{i}") if f"({n}" in line or f", {n}" in line]
    shape = f"float[64,{channels}]"
    text = f"deep ({shape} x) => ({shape} y) {{ {' '.join(lines)} y = Identity(v{layers}) }}"
    proto = parser.parse_model(HEADER + text)
    for name in weights:
        weight = TensorProto(name=name, dims=(channels, channels), data_type=TensorProto.FLOAT)
        proto.graph.initializer.append(weight)
    return proto


BODIES = {
    "plain": "%t = MatMul(%p, %w) %n = Relu(%t)",
    "linear": "%n = MatMul(%p, %w)",
    "residual": "%t = MatMul(%p, %w) %q = Relu(%t) %n = Add(%p, %q)",
    "rectified sum": "%t = MatMul(%p, %w) %q = Add(%p, %t) %n = Relu(%q)",
    "transposed": "%t = Transpose<perm=[1,0]>(%w) %n = MatMul(%p, %t)",
}


@pytest.mark.parametrize("body", BODIES)
def test_a_hundred_layers_keep_their_scale_and_their_input(body: str) -> None:
    filled = fill_weights(deep(100, BODIES[body]), 0)
    session = onnxruntime.InferenceSession(filled.SerializeToString())
    rng = np.random.default_rng(0)
    a, b = (session.run(None, {"x": rng.standard_normal((64, 64), np.float32)})[0] for _ in range(2))
    assert np.isfinite(a).all()
    assert 1e-3 < a.std() < 1e3
    assert np.abs(a - b).max() > 1e-3 * np.abs(a).max()


def test_moments_of_a_rectified_normal() -> None:
    rng = np.random.default_rng(0)
    for mean, deviation in ((0.0, 1.0), (0.5, 2.0), (-1.0, 1.0), (3.0, 0.5)):
        sample = np.maximum(rng.normal(mean, deviation, 200_000), 0)
        found = Moments(mean, deviation**2).rectified()
        assert math.isclose(found.mean, sample.mean(), rel_tol=0.02)
        assert math.isclose(found.second, (sample**2).mean(), rel_tol=0.02)


@pytest.mark.parametrize("order", ["Mul(c{i}, s{i})", "Mul(s{i}, c{i})"])
def test_gated_layers_keep_their_magnitude(order: str) -> None:
    """A gate follows what it gates: with one independent of it, 16 layers would come to 14 and more."""
    layers = [
        f"c{i} = MatMul(x{i}, w{i})  s{i} = Sigmoid(c{i})  x{i + 1} = {order.format(i=i)}" for i in range(16)
    ]
    proto = parser.parse_model(
        f"{HEADER} deep (float[64,192] x0) => (float[64,192] x16) {{ {' '.join(layers)} }}"
    )
    for i in range(16):
        proto.graph.initializer.append(
            TensorProto(name=f"w{i}", dims=[192, 192], data_type=TensorProto.FLOAT)
        )
    values, found = seeded_weights(proto, 3).values, np.random.default_rng(1).standard_normal((64, 192))
    for i in range(16):
        found = found @ values[f"w{i}"].astype(float)
        found = found / (1 + np.exp(-found))
    assert 0.3 < np.sqrt((found**2).mean()) < 3


def test_the_largest_of_many_neighbours_is_far_above_the_mean() -> None:
    """A product behind a pool of 25 neighbours still has variance 1."""
    text = "pool (float[1,64,24,24] x) => (float[1,64,20,20] y)"
    proto = parser.parse_model(f"{HEADER}{text} {{ m = MaxPool<kernel_shape=[5,5]>(x)  y = Conv(m, w) }}")
    proto.graph.initializer.append(TensorProto(name="w", dims=[64, 64, 1, 1], data_type=TensorProto.FLOAT))
    w = seeded_weights(proto, 0).values["w"][:, :, 0, 0]
    x = np.random.default_rng(2).standard_normal((64, 24, 24))
    pooled = np.lib.stride_tricks.sliding_window_view(x, (5, 5), axis=(1, 2)).max(axis=(3, 4))
    made = np.tensordot(w, pooled, 1)
    assert 0.7 < np.sqrt((made**2).mean()) < 1.4
