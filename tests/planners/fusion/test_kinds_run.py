"""Operators of every kind of geometry, as ONNX writes them, run in fused groups band by band."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

import onchip

POOL = "y = MaxPool<kernel_shape=[3,3], strides=[2,2]>"


def model(body: str, output: str, numbers: dict[str, list[int]]) -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["" : 18]> g (float[1,8,16,16] x) => (float[{output}] y) {{'
    made = onnx.parser.parse_model(f"{text} c = Conv<pads=[1,1,1,1]>(x, w)  {body} }}")
    random = np.random.default_rng(0)
    w = (random.standard_normal((8, 8, 3, 3)) / 8).astype(np.float32)
    arrays = {"w": w, "v": w[:, :3, 0, 0], "low": np.array(-np.inf, np.float32)}
    arrays["k"] = np.array([0.5, -2], np.float32).reshape(1, 2, 1, 1, 1)
    arrays |= {name: np.array(value, np.int64) for name, value in numbers.items()}
    made.graph.initializer.extend(onnx.numpy_helper.from_array(a, name) for name, a in arrays.items())
    return made


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    ("kind", "body", "output", "numbers", "budget"),
    [
        ("pad", f"p = Pad(c, a)  {POOL}(p)", "1,8,8,8", {"a": [0, 0, 1, 0, 0, 0, 0, 1]}, 9000),
        ("pad", f"p = Pad(c, a, low)  {POOL}(p)", "1,8,8,8", {"a": [0, 0, 0, 0, 0, 0, 1, 1]}, 9000),
        ("pad", f"p = Pad(c, a)  {POOL}(p)", "1,8,7,7", {"a": [0, 0, -1, -1, 0, 0, 0, 0]}, 9000),
        ("pad", f"p = Pad(c, a, low, axes)  {POOL}(p)", "1,8,8,8", {"a": [0, 0, 1, 1], "axes": [-2, -1]},
         9000),
        ("concat", f"d = Neg(x)  e = Concat<axis=1>(c, x, d)  {POOL}(e)", "1,24,7,7", {}, 9000),
        ("rowwise", f"l = LRN<size=3, alpha=0.5>(c)  {POOL}(l)", "1,8,7,7", {}, 9000),
        ("rowwise", f"s = Softmax<axis=1>(c)  {POOL}(s)", "1,8,7,7", {}, 9000),
        ("rowwise", f"a = Reshape(c, g)  t = Transpose<perm=[0,2,1,3,4]>(a)  b = Reshape(t, s)  {POOL}(b)",
         "1,8,7,7", {"g": [1, 2, 4, 16, 16], "s": [1, 8, 16, 16]}, 9000),
        ("rowwise", f"a = Reshape(c, g)  t = Transpose<perm=[0,2,1,3]>(a)  b = Reshape(t, s)  {POOL}(b)",
         "1,8,7,7", {"g": [-1, 2, 4, 256], "s": [-1, 8, 16, 16]}, 9000),
        # The function behind it makes what it makes in two groups of channels.
        ("conv", f"a = Reshape(c, g)  m = Mul(a, k)  r = Relu(m)  b = Reshape(r, s)  {POOL}(b)",
         "1,8,7,7", {"g": [1, 2, 4, 16, 16], "s": [1, 8, 16, 16]}, 9000),
        ("rowwise", f"t = Gather<axis=1>(c, i)  {POOL}(t)", "1,3,7,7", {"i": [7, 5, 3]}, 9000),
        ("pool", "y = ReduceMean(c, axes)", "1,8,1,1", {"axes": [2, 3]}, 20_000),
        ("pool", "y = ReduceL2<keepdims=0>(c, axes)", "1,8", {"axes": [-1, -2]}, 20_000),
        ("pool", "m = ReduceMean<keepdims=0>(c, axes)  y = Gemm(m, v)", "1,3", {"axes": [2, 3]}, 20_000),
    ],
)  # fmt: skip
def test_it_runs_in_a_group_as_it_does_alone(
    tmp_path: Path, kind: str, body: str, output: str, numbers: dict[str, list[int]], budget: int, batch: int
) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(model(body, output, numbers).SerializeToString())
    made = onchip.fuse(path, "optimus", budget, batch=batch)
    assert made.plan is not None
    network = made.plan.network
    [tested, *_] = [op for op in network.operators if op.geometry is not None and op.geometry.kind == kind]
    fused = [g for g in made.plan.groups if len(g.operators) > 1 and tested.name in g.operators]
    assert fused
    assert kind == "pool" or fused[0].subgroups > batch
    report = made.plan.run()
    assert report.max_difference < 1e-4


@pytest.mark.parametrize(
    ("body", "channels", "out"),
    [
        (f"e = Concat<axis=1>(c, z)  {POOL}(e)", 3, 11),
        # Whoever reads it first does not say its shape.
        (f"d = Mul(c, z)  e = Concat<axis=1>(c, z, d)  {POOL}(e)", 1, 17),
    ],
)
def test_an_input_that_is_joined_to_others_runs_in_a_group(
    tmp_path: Path, body: str, channels: int, out: int
) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 18]> g (float[1,{channels},16,16] z, float[1,8,16,16] x)
        => (float[1,{out},7,7] y) {{ c = Conv<pads=[1,1,1,1]>(x, w)  {body} }}"""
    made = onnx.parser.parse_model(text)
    w = (np.random.default_rng(0).standard_normal((8, 8, 3, 3)) / 8).astype(np.float32)
    n = np.array([1, 8, 1, 1])
    made.graph.initializer.extend(
        [onnx.numpy_helper.from_array(w, "w"), onnx.numpy_helper.from_array(n, "n")]
    )
    path = tmp_path / "net.onnx"
    path.write_bytes(made.SerializeToString())
    fused = onchip.fuse(path, "optimus", 9000)
    assert fused.plan is not None
    [join] = [op.name for op in fused.plan.network.operators if op.type == "Concat"]
    [group] = [g for g in fused.plan.groups if join in g.operators]
    assert len(group.operators) > 1
    assert group.subgroups > 1
    assert fused.plan.run().max_difference < 1e-4


@pytest.mark.parametrize("budget", [1_200, 3_000, 5_000, 12_000])
def test_matrices_with_a_leading_one_run_in_tiles(budget: int, tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]> matrices (float[1,64,32] x) => (float[1,64,16] y) {
        a = MatMul(x, w1)
        b = Add(a, c1)
        c = Relu(b)
        d = MatMul(c, w2)
        e = Add(d, c2)
        s = Softmax<axis=-1>(e)
        y = MatMul(s, w3)
    }"""
    made = onnx.parser.parse_model(text)
    random = np.random.default_rng(0)
    shapes = {"w1": (32, 48), "c1": (48,), "w2": (48, 24), "c2": (1, 64, 24), "w3": (24, 16)}
    for name, dims in shapes.items():
        values = random.standard_normal(dims).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    onnx.save(made, tmp_path / "matrices.onnx")
    fused = onchip.fuse(tmp_path / "matrices.onnx", "generic", budget, dtype="int16")
    assert fused.executable
    assert fused.plan is not None
    report = fused.plan.run()
    assert any(moved.subgroups > 1 for moved in report.tiled)


def test_matrices_of_three_and_four_dimensions_run(tmp_path: Path) -> None:
    for shape in ("4,16", "2,2,16"):
        text = f'<ir_version: 8, opset_import: ["" : 18]> g (float[{shape},32] x) => (float[{shape},8] y)'
        made = onnx.parser.parse_model(f"{text} {{ y = MatMul(x, w) }}")
        made.graph.initializer.append(onnx.TensorProto(name="w", dims=(32, 8), data_type=1))
        onnx.save(made, tmp_path / "matrices.onnx")
        fused = onchip.fuse(tmp_path / "matrices.onnx", "generic", 3_000, dtype="int16")
        assert fused.plan is not None
        assert fused.executable
        assert fused.plan.run().tiled
