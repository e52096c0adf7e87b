"""A model of one image read at batch N gives, for every image, what it gives for that image alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from build import graph, read, save, weighted
from stepwise import session

import onchip
from onchip.base.errors import ModelError, UsageError
from onchip.readers import ReadOptions, Source, load
from onchip.run import fill_weights

Array = np.ndarray[Any, Any]


def outputs(source: Source, feeds: dict[str, Array]) -> list[Array]:
    """The whole network in onnxruntime, weights from a seed where it has none."""
    assert source.executable is not None
    model = onnx.ModelProto()
    model.CopyFrom(source.executable.model)
    return [np.asarray(a) for a in session(fill_weights(model, seed=3)).run(None, feeds)]


def assert_images_stay_apart(one: Source, many: Source, images: int) -> None:
    """Each image's outputs are those of the network of one image."""
    assert one.executable is not None
    assert many.executable is not None
    random = np.random.default_rng(5)
    shapes = dict(zip(many.executable.value, many.executable.shape, strict=True))
    names = [many.executable.value[t.id] for t in many.network.tensors if t.kind == "input"]
    feeds = {name: random.standard_normal(shapes[name], np.float32) for name in names}
    together = outputs(many, feeds)
    for i in range(images):
        alone = outputs(one, {name: value[i : i + 1] for name, value in feeds.items()})
        for a, t in zip(alone, together, strict=True):
            assert t.shape == (images * a.shape[0], *a.shape[1:])
            part = t[i * a.shape[0] : (i + 1) * a.shape[0]]
            np.testing.assert_allclose(part, a, rtol=1e-4, atol=1e-5)


def assert_same_but_larger(one: Source, many: Source, images: int) -> None:
    """The same operators and weights, tensors of as many images."""
    assert [op.name for op in one.network.operators] == [op.name for op in many.network.operators]
    assert one.network.weight_bytes == many.network.weight_bytes
    sizes = [(t.name, t.bytes * images) for t in one.network.tensors]
    assert sizes == [(t.name, t.bytes) for t in many.network.tensors]
    assert [op.geometry is None for op in one.network.operators] == [
        op.geometry is None for op in many.network.operators
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "squeezenet1_0@64x64",
        "mobilenet_v2@64x64",
        "shufflenet_v2_x1_0@64x64",  # reshapes with the batch in their targets
        pytest.param("resnet18", marks=pytest.mark.slow),
        pytest.param("googlenet@64x64", marks=pytest.mark.slow),
        pytest.param("lraspp_mobilenet_v3_large@64x64", marks=pytest.mark.slow),
    ],
)
def test_images_of_a_built_in_network_stay_apart(name: str) -> None:
    one, many = load(f"zoo:{name}"), load(f"zoo:{name}", ReadOptions(batch=3))
    assert_same_but_larger(one, many, 3)
    assert_images_stay_apart(one, many, 3)


@pytest.mark.parametrize(
    ("body", "output", "settings"),
    [
        ("f = Reshape(x, s)  y = Gemm(f, w)", "1,5", {"s": [1, -1]}),
        ("f = Reshape(x, s)  y = Gemm(f, w)", "1,5", {"s": [0, -1]}),
        ("f = Reshape(x, s)  y = Gemm(f, w)", "1,5", {"s": [-1, 48]}),
        ("f = Flatten(x)  y = Gemm(f, w)", "1,5", {}),
        # Channels as rows of a matrix: images are blocks of them.
        ("f = Reshape(x, s)  g = Gemm(f, v)  y = Reshape(g, t)", "1,15", {"s": [3, 16], "t": [1, 15]}),
        # The images move and come back.
        ("a = Transpose<perm=[1,2,3,0]>(x)  b = Softmax<axis=0>(a)  y = Transpose<perm=[3,0,1,2]>(b)",
         "1,3,4,4", {}),
        # They move, and axes behind them change their shape.
        ("a = Transpose<perm=[1,0,2,3]>(x)  b = Reshape(a, s)  c = Erf(b)  y = Transpose<perm=[1,0,2]>(c)",
         "1,3,16", {"s": [0, 0, -1]}),
        ("a = Expand(x, s)  y = ReduceMean<axes=[1]>(a)", "1,1,4,4", {"s": [1, 3, 4, 4]}),
        ('y = Resize<mode="nearest">(x, , , s)', "1,3,8,8", {"s": [1, 3, 8, 8]}),
        ("a = Relu(x)  t = Shape(a)  y = Reshape(a, t)", "1,3,4,4", {}),
        ("y = Concat<axis=1>(x, x)", "1,6,4,4", {}),
    ],
)  # fmt: skip
def test_images_stay_apart(tmp_path: Path, body: str, output: str, settings: dict[str, list[int]]) -> None:
    model = weighted(
        graph(f"(float[1,3,4,4] x) => (float[{output}] y) {{ {body} }}", opset=17), w=(48, 5), v=(16, 5)
    )
    for name, value in settings.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, np.int64), name))
    one, many = (load(save(model, tmp_path), ReadOptions(batch=n)) for n in (None, 3))
    assert_images_stay_apart(one, many, 3)


@pytest.mark.parametrize(
    ("body", "output", "named"),
    [
        ("a = Transpose<perm=[1,0,2,3]>(x)  b = Reshape(a, s)  y = Erf(b)", "3,16", r"node b \(Reshape\)"),
        ("y = Softmax<axis=0>(x)", "1,3,4,4", r"node y \(Softmax\)"),
        ("a = Neg(x) y = Concat<axis=0>(a, x)", "2,3,4,4", r"node y \(Concat\)"),
        ("y = ReduceSum<keepdims=0>(x, zero)", "3,4,4", r"node y \(ReduceSum\)"),
        ("y = Add(x, two)", "2,3,4,4", r"node y \(Add\)"),
        ("a = Reshape(x, s)  b = Transpose<perm=[1,0]>(a)  y = MatMul(a, b)", "3,3", r"node y \(MatMul\)"),
        ("a = Reshape(x, s)  y = Gemm<transA=1>(a, w)", "16,2", r"node y \(Gemm\)"),
        ("a = Slice(x, zero, one, zero)  y = Erf(a)", "1,3,4,4", r"node a \(Slice\)"),
        ("y = CumSum(x, zero0)", "1,3,4,4", r"node y \(CumSum\)"),
        ("y, m, v = BatchNormalization<training_mode=1>(x, c, c, c, c)", "1,3,4,4", "BatchNormalization"),
        ("y = LayerNormalization<axis=0>(x, x)", "1,3,4,4", r"node y \(LayerNormalization\)"),
    ],
)
def test_what_is_not_known_to_keep_images_apart_is_refused(
    tmp_path: Path, body: str, output: str, named: str
) -> None:
    text = f"""(float[1,3,4,4] x) => (float[{output}] y)
        <int64[2] s = {{3, 16}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64 zero0 = {{0}}>
        {{ {body} }}"""
    model = weighted(graph(text), two=(2, 3, 4, 4), w=(3, 2), c=(3,))
    assert read(model, tmp_path).network.operators
    with pytest.raises(ModelError, match=f"{named}.*the model cannot be read at batch 3"):
        read(model, tmp_path, batch=3)
    with pytest.raises(ModelError, match=f"{named}.*the model cannot be read at batch 2"):
        read(model, tmp_path, batch=2)


def test_a_free_first_axis_is_the_batch(tmp_path: Path) -> None:
    text = "(float[n,3] x, float[?,3] z) => (float[n,3] y) { a = Relu(x)  y = Mul(a, z) }"
    assert [t.bytes for t in read(text, tmp_path, batch=2).network.tensors] == [24] * 4
    assert [t.bytes for t in read(text, tmp_path, batch=2, dims="n=2").network.tensors] == [24] * 4
    with pytest.raises(UsageError, match=r"dims: n is the batch, which is 2"):
        read(text, tmp_path, batch=2, dims="n=3")


def test_a_model_of_several_images_has_its_batch(tmp_path: Path) -> None:
    text = "(float[2,3] x) => (float[2,3] y) { y = Relu(x) }"
    with pytest.raises(ModelError, match="input x: its first axis is 2"):
        read(text, tmp_path, batch=4)
    with pytest.raises(ModelError, match="no input has an axis"):
        read("(float x) => (float y) { y = Relu(x) }", tmp_path, batch=4)


@pytest.mark.parametrize("batch", [0, -1, 1 << 40, "2", 1.5, True])
def test_no_number_of_images(batch: object) -> None:
    with pytest.raises(UsageError, match="batch"):
        load("zoo:squeezenet1_0", ReadOptions(batch=batch))  # type: ignore[arg-type]


def test_files_that_state_their_sizes_have_their_batch(tmp_path: Path) -> None:
    for name in ("net.json", "net.tflite"):
        (tmp_path / name).write_bytes(b"{}")
        with pytest.raises(ModelError, match="follow from the batch it was made for"):
            load(tmp_path / name, ReadOptions(batch=2))


@pytest.mark.parametrize(
    "name",
    [
        "squeezenet1_0@64x64",
        pytest.param("resnet18@64x64", marks=pytest.mark.slow),
        pytest.param("mobilenet_v2@64x64", marks=pytest.mark.slow),
    ],
)
def test_a_plan_of_a_batch_runs_from_its_file_alone(tmp_path: Path, name: str) -> None:
    made = onchip.plan(f"zoo:{name}", budget="1MiB", batch=2, strategy="greedy")
    assert made.options["batch"] == 2
    for file in ("plan.json", "plan.txt"):
        made.save(tmp_path / file)
        assert onchip.read(tmp_path / file).run().bit_exact
