"""Which operators have a geometry, and that an output row needs exactly the input rows that it says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from build import graph, read, weighted
from stepwise import part, session

from onchip import zoo
from onchip.network import Geometry
from onchip.readers import Source, load

MAP = "(float[1,6,7,5] x) => (float[{}] y)"


def only(source: Source) -> Geometry | None:
    """The geometry of the network's one operator."""
    [operator] = source.network.operators
    return operator.geometry


def rows_needed(g: Geometry, row: int) -> set[int]:
    """The input rows that an output row is made from."""
    taps, stride, dilation = (g.kernel or (1,))[0], (g.stride or (1,))[0], (g.dilation or (1,))[0]
    first = row * stride - (g.padding or (0,))[0]
    return {first + tap * dilation for tap in range(taps)} & set(range(g.input[2]))


@pytest.mark.parametrize(
    ("kind", "output", "body", "settings"),
    [
        ("concat", "1,12,7,5", "a = Neg(x)  y = Concat<axis=1>(x, a)", {}),
        ("concat", "1,12,7,5", "a = Neg(x)  y = Concat<axis=-3>(a, x)", {}),
        ("pad", "1,6,10,6", "y = Pad(x, p)", {"p": [0, 0, 1, 1, 0, 0, 2, 0]}),
        ("pad", "1,6,6,4", "y = Pad(x, p)", {"p": [0, 0, -1, -1, 0, 0, 0, 0]}),
        ("pad", "1,6,8,5", "y = Pad(x, p, , axes)", {"p": [1, 0], "axes": [-2]}),
        ("pool", "1,6,1,1", "y = ReduceMean(x, axes)", {"axes": [-1, 2]}),
        ("pool", "1,6", "y = ReduceMax<keepdims=0>(x, axes)", {"axes": [2, 3]}),
        ("pool", "1,6,3,3", "y = MaxPool<kernel_shape=[3,3], strides=[2,2], pads=[0,1,0,1]>(x)", {}),
        ("rowwise", "1,6,7,5", "y = Softmax<axis=1>(x)", {}),
        ("rowwise", "1,6,7,5", "y = LRN<size=3, alpha=0.5>(x)", {}),
        (
            "rowwise", "1,6,7,5",
            "a = Reshape(x, g) t = Transpose<perm=[0,2,1,3,4]>(a) b = Reshape(t, s) y = Identity(b)",
            {"g": [1, 2, 3, 7, 5], "s": [1, 6, 7, 5]},
        ),
    ],
)  # fmt: skip
def test_an_output_row_needs_the_rows_that_the_geometry_says(
    tmp_path: Path, kind: str, output: str, body: str, settings: dict[str, list[int]]
) -> None:
    text = f"{MAP.format(output)} {{ {body} }}"
    model = graph(text)
    for name, value in settings.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, np.int64), name))
    source = read(model, tmp_path, granularity="op")
    executable = source.executable
    assert executable is not None
    operator = source.network.operators[-1]
    g = operator.geometry
    assert g is not None
    assert g.kind == kind
    names = [[executable.value[t] for t in ids] for ids in (operator.inputs, operator.outputs)]
    alone = session(part(executable, executable.nodes[operator.id], *names))
    random = np.random.default_rng(0)
    shapes = [executable.shape[t] for t in operator.inputs]
    feeds = {n: random.random(s, np.float32) for n, s in zip(names[0], shapes, strict=True)}
    [plain] = alone.run(None, feeds)
    assert plain.size == np.prod(g.output)
    for name in names[0]:
        for row in range(g.input[2]):
            other = {key: value.copy() for key, value in feeds.items()}
            other[name][:, :, row] += 1 + random.random(other[name][:, :, row].shape, np.float32)
            [changed] = alone.run(None, other)
            differing = (changed != plain).reshape(g.output).any(axis=(0, 1, 3))
            assert set(np.flatnonzero(differing)) == {
                out for out in range(g.output[2]) if row in rows_needed(g, out)
            }


@pytest.mark.parametrize(
    ("cut", "order", "kinds"),
    [
        ((1, 2, 4, 8, 6), "0,2,1,3,4", ["conv", "rowwise"]),  # channels: the rows are those of the map
        ((4, 2, 48), "1,0,2", [None, "rowwise"]),  # channels, and the pixels in line
        ((4, 2, 8, 6), "1,0,2,3", [None, "rowwise"]),  # channels, some as if they were images
        ((1, 8, 2, 4, 6), "0,1,3,2,4", [None, None]),  # rows
        ((1, 8, 8, 2, 3), "0,1,2,4,3", [None, None]),  # columns
    ],
)
def test_a_map_that_is_made_in_another_shape_keeps_its_geometry_if_its_rows_are_the_same(
    tmp_path: Path, cut: tuple[int, ...], order: str, kinds: list[str | None]
) -> None:
    """A convolution whose function stands behind a reshape, and a copy between two of them."""
    text = f"""(float[1,8,8,6] x) => (float[1,8,4,3] y, float[1,8,4,3] z)
        <int64[{len(cut)}] cut = {{{str(cut)[1:-1]}}}, int64[4] map = {{1, 8, 8, 6}}> {{
        c = Conv(x, w)  a = Reshape(c, cut)  r = Relu(a)  b = Reshape(r, map)
        y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(b)
        d = Reshape(x, cut)  t = Transpose<perm=[{order}]>(d)  e = Reshape(t, map)
        z = MaxPool<kernel_shape=[2,2], strides=[2,2]>(e) }}"""
    source = read(weighted(graph(text), w=(8, 8, 1, 1)), tmp_path)
    made = {op.type: op for op in source.network.operators}
    assert [op.geometry and op.geometry.kind for op in (made["Conv+Relu"], made["Transpose"])] == kinds
    assert made["Conv+Relu"].reach is not None


@pytest.mark.parametrize(
    ("output", "body", "opset"),
    [
        ("1,12,7,5", "y = Concat<axis=1>(x, x)", 18),  # one tensor, two places: its bytes do not say which
        ("1,6,14,5", "a = Neg(x)  y = Concat<axis=2>(x, a)", 18),
        ("1,6,7,5", "y = Softmax<axis=-1>(x)", 18),
        ("1,6,7,5", "y = Softmax<axis=1>(x)", 11),  # over all that follows the axis, there
        ("1,7,6,5", "y = Transpose<perm=[0,2,1,3]>(x)", 18),
        ("1,6,1,5", "y = ReduceMean<axes=[2]>(x)", 13),
        ("1,6,9,5", 'y = Pad<mode="reflect", pads=[0,0,1,0,0,0,1,0]>(x)', 10),
        ("1,8,7,5", "y = Pad<pads=[0,1,0,0,0,1,0,0]>(x)", 10),
        ("2,6,7,5", "y = Pad<pads=[1,0,0,0,0,0,0,0]>(x)", 10),
    ],
)
def test_of_what_the_kinds_do_not_say_only_the_shapes_are_known(
    tmp_path: Path, output: str, body: str, opset: int
) -> None:
    source = read(f"{MAP.format(output)} {{ {body} }}", tmp_path, opset=opset, granularity="op")
    g = source.network.operators[-1].geometry
    assert g == Geometry("other", (1, 6, 7, 5), tuple(map(int, output.split(","))))
    assert not g.promises


@pytest.mark.parametrize(
    ("body", "geometry"),
    [
        (
            "y = Conv<pads=[1,1,1,1], strides=[2,2]>(half, w)",
            Geometry("gathered conv", (1, 3, 7, 5), (1, 4, 4, 3), (3, 3), (2, 2), (1,) * 4, (1, 1)),
        ),
        (
            "y = Conv<group=3>(half, v)",
            Geometry("gathered depthwise", (1, 3, 7, 5), (1, 3, 5, 3), (3, 3), (1, 1), (0,) * 4, (1, 1), 3),
        ),
        (
            "c = Conv(half, z)  y = Concat<axis=1>(c, half)",
            Geometry("gathered concat", (1, 3, 7, 5), (1, 6, 7, 5)),
        ),
        (
            "t = Transpose<perm=[0,1,3,2]>(x)  y = Conv(t, u)",
            Geometry("gathered conv", (1, 6, 5, 7), (1, 6, 5, 7), (1, 1), (1, 1), (0,) * 4, (1, 1)),
        ),
    ],
)
def test_what_reads_no_whole_tensor_says_what_it_sees(tmp_path: Path, body: str, geometry: Geometry) -> None:
    """`half` is every other channel of x: it is fetched from where it lies by what can."""
    text = f"""{MAP.format("a,b,c,d")}
        <int64[5] g = {{1,3,2,7,5}}, int64[4] h = {{1,3,7,5}}, int64[1] i = {{0}}, int64[1] j = {{1}},
         int64[1] k = {{2}}> {{
        s = Reshape(x, g)  q = Slice(s, i, j, k)  half = Reshape(q, h)  {body} }}"""
    model = weighted(graph(text), w=(4, 3, 3, 3), v=(3, 1, 3, 3), u=(6, 6, 1, 1), z=(3, 3, 1, 1))
    source = read(model, tmp_path, granularity="op")
    assert source.network.operators[-1].geometry == geometry
    assert source.network.tensors[-1].bytes == 4 * np.prod(geometry.output)


def test_channels_cut_out_of_several_images_are_copied_row_by_row(tmp_path: Path) -> None:
    text = "(float[2,6,7,5] x) => (float[2,3,7,5] y) { a, b = Split<axis=1, num_outputs=2>(x) y = Erf(b) }"
    [split, _] = read(text, tmp_path, granularity="op").network.operators
    assert split.geometry == Geometry("rowwise", (2, 6, 7, 5), (2, 3, 7, 5))
    text = """(float[2,6,8,5] x) => (float[2,6,4,5] y) {
        a, b = Split<axis=2, num_outputs=2>(x) y = Erf(b) }"""
    [split, _] = read(text, tmp_path, granularity="op").network.operators
    assert split.geometry == Geometry("other", (2, 6, 8, 5), (2, 6, 4, 5))


def test_features_are_normalised_row_by_row(tmp_path: Path) -> None:
    assert only(read("(float[4,9] x) => (float[4,9] y) { y = Softmax(x) }", tmp_path)) == Geometry(
        "rowwise", (4, 9), (4, 9)
    )


def test_merged_operators_keep_the_geometry_of_a_concat(tmp_path: Path) -> None:
    text = """(float[1,6,7,5] x, float[1,2,7,5] z) => (float[1,8,7,5] y) {
        a = Concat<axis=1>(x, z)  b = BatchNormalization(a, s, s, s, s)  y = Relu(b) }"""
    source = read(weighted(graph(text), s=(8,)), tmp_path)
    assert only(source) == Geometry("concat", (1, 6, 7, 5), (1, 8, 7, 5))


OPAQUE = {
    "amoebanet_d": {"Conv": 4},
    "darts": {"Conv": 3},
    "deeplabv3_resnet50": {"Resize": 2},
    "fcn_resnet18": {"Resize": 1},
    "fcn_resnet50": {"Resize": 1},
    "lraspp_mobilenet_v3_large": {"Resize": 2},
    "r2plus1d_18": {
        "Conv+BatchNormalization+Relu": 26, "Conv+BatchNormalization": 11, "GlobalAveragePool": 1
    },
    "s3d": {
        "Conv+BatchNormalization+Relu": 77, "MaxPool": 13, "Concat": 9, "AveragePool": 1, "Conv": 1,
        "ReduceMean": 1,
    },
    "shufflenet_v2_x1_0": {"Conv+BatchNormalization+Relu": 16, "Concat": 13, "Conv+BatchNormalization": 2},
    "transformer": {"Attention": 18, "Gemm": 18, "LayerNormalization": 32},
    "vit_b_16": {"Concat+Add": 1, "LayerNormalization": 25, "Attention": 12, "Gemm": 1},
}  # fmt: skip
"""Volumes (r2plus1d_18, s3d), attention, resizing, and what reads a cut or shuffled tensor where it lies."""


@pytest.mark.thorough
@pytest.mark.parametrize("name", zoo.names())
def test_operators_of_built_in_networks_that_promise_nothing(name: str) -> None:
    operators = load(f"zoo:{name}").network.operators
    opaque = Counter(op.type for op in operators if op.geometry is None or not op.geometry.promises)
    assert opaque == OPAQUE.get(name, {})
