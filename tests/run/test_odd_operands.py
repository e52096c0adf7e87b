"""Operators in bands whose nodes are no plain chain: matrices added, weights behind what shuffles a map."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import TensorProto, parser

import onchip
from run.models import HEADER

ROWS = "(float[32,24] x) => (float[32,24] y)"
MAP = "(float[1,16,16,16] x) => (float[1,16,16,16] y)"
Dims = tuple[int, ...]

MODELS: dict[str, tuple[str, dict[str, Dims]]] = {
    "a product that adds a matrix": (
        f"adds {ROWS} {{ h = Gemm(x, w1, b1)  g = Relu(h)  y = Gemm<beta=0.5>(g, w2, b2) }}",
        {"w1": (24, 96), "w2": (96, 24), "b1": (32, 96), "b2": (32, 1)},
    ),
    "a product of four dimensions": (
        "four (float[1,16,16,24] x) => (float[1,16,16,24] y)"
        " { h = MatMul(x, w1)  g = Relu(h)  z = MatMul(g, w2)  y = Add(z, x) }",
        {"w1": (24, 96), "w2": (96, 24)},
    ),
    "a product behind a cast to what it is": (
        f"cast {ROWS} {{ h = MatMul(x, w1)  c = Cast<to=1>(h)  g = Relu(c)  d = Cast<to=1>(g)"
        " z = MatMul(d, w2)  y = Add(z, x) }",
        {"w1": (24, 96), "w2": (96, 24)},
    ),
    "a product behind a cast": (
        f"cast {ROWS} {{ h = MatMul(x, w1)  c = Cast<to=11>(h)  g = Relu(c)  d = Cast<to=1>(g)"
        " z = MatMul(d, w2)  y = Add(z, x) }",
        {"w1": (24, 96), "w2": (96, 24)},
    ),
    "kernels behind shuffled channels": (
        f"""shuffled {MAP} <int64[5] apart = {{1,2,8,16,16}}, int64[4] back = {{1,16,16,16}}> {{
            h = Conv<kernel_shape=[1,1]>(x, w1)
            r = Reshape(h, apart)  t = Transpose<perm=[0,2,1,3,4]>(r)  u = Reshape(t, back)
            z = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=16>(u, w2)
            y = Conv<kernel_shape=[1,1]>(z, w3)
        }}""",
        {"w1": (16, 16, 1, 1), "w2": (16, 1, 3, 3), "w3": (16, 16, 1, 1)},
    ),
    "a sum with one of several rows": (
        """picks (float[1,7,96] x) => (float[1,7,96] y) <int64 first = {0}> {
            h = MatMul(x, w1)  p = Gather<axis=2>(x, first)  q = Reshape(p, column)
            m = Mul(h, q)  s = Add(m, q)  y = MatMul(s, w2)
        }""",
        {"w1": (96, 96), "w2": (96, 96)},
    ),
}


def plans(name: str, folder: Path) -> list[onchip.Plan]:
    """The plans of a model, in bands, at budgets of which each is legal."""
    text, weights = MODELS[name]
    text = text.replace("<int64 first = {0}>", "<int64 first = {0}, int64[3] column = {1,7,1}>")
    proto = parser.parse_model(HEADER + text)
    for weight, dims in weights.items():
        proto.graph.initializer.append(TensorProto(name=weight, dims=dims, data_type=TensorProto.FLOAT))
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    found = []
    for budget in (300, 600, 1_500, 3_000, 9_000):
        try:
            found.append(onchip.plan(path, budget=budget, dtype="int8", fuse=True, nests=False))
        except onchip.OnchipError:
            continue
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_they_run_in_bands(name: str, tmp_path: Path) -> None:
    made = [plan for plan in plans(name, tmp_path) if plan.groups]
    assert made
    for plan in made:
        report = plan.run()
        assert report.tiled
        assert report.relative_difference < 1e-5
