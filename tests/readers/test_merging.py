"""`op` keeps the file's nodes, `fused` merges element-wise functions of one tensor into what makes it."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from build import graph, read, rows, weighted
from onnx import helper
from stepwise import differing

from onchip.check import may_overwrite
from onchip.network import Geometry
from onchip.readers import ReadOptions, load

CONV = "a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w, b)"
BN = "BatchNormalization(a, s, s, s, s)"


def conv(body: str, outputs: str = "float[1,4,8,8] y") -> onnx.ModelProto:
    model = graph(f"(float[1,3,8,8] x) => ({outputs}) {{ {CONV} {body} }}", opset=20)
    return weighted(model, w=(4, 3, 3, 3), b=(4,), s=(4,))


def test_op_keeps_every_node(tmp_path: Path) -> None:
    source = read(conv(f"n = {BN} y = Relu(n)"), tmp_path, granularity="op")
    assert rows(source) == [
        ("Conv", ["x"], ["a"]), ("BatchNormalization", ["a"], ["n"]), ("Relu", ["n"], ["y"])
    ]  # fmt: skip
    assert [op.weight_bytes for op in source.network.operators] == [4 * (108 + 4), 4 * 4, 0]
    assert differing(source) == []


def test_fused_merges_into_the_producer_and_counts_every_parameter(tmp_path: Path) -> None:
    source = read(conv(f"n = {BN} y = Relu(n)"), tmp_path)
    assert rows(source) == [("Conv+BatchNormalization+Relu", ["x"], ["y"])]
    assert source.network.weight_bytes == 4 * (108 + 4 + 4)  # s is one parameter, read four times
    assert source.network.operators[0].name == "a"
    assert differing(source) == []


def test_a_tensor_with_two_readers_stays(tmp_path: Path) -> None:
    source = read(conv("r = Relu(a) y = Add(r, a)"), tmp_path)
    # Relu reads only what Add reads as well, so both are one element-wise function of `a`, and that merges.
    assert rows(source) == [("Conv+Relu+Add", ["x"], ["y"])]
    source = read(conv("r = Relu(a) p = Softmax(a) y = Add(r, p)"), tmp_path)
    assert [row[0] for row in rows(source)] == ["Conv", "Relu", "Softmax", "Add"]


def test_a_network_output_stays(tmp_path: Path) -> None:
    source = read(conv("y = Relu(a)", "float[1,4,8,8] a, float[1,4,8,8] y"), tmp_path)
    assert rows(source) == [("Conv", ["x"], ["a"]), ("Relu", ["a"], ["y"])]
    aliased = "r = Identity(a) y = Relu(a)"
    source = read(conv(aliased, "float[1,4,8,8] r, float[1,4,8,8] y"), tmp_path)
    assert rows(source) == [("Conv", ["x"], ["a"]), ("Relu", ["a"], ["y"])]


def test_an_element_wise_operator_of_two_tensors_stays_and_takes_others_in(tmp_path: Path) -> None:
    source = read(conv("c = Relu(a) d = Softmax(c) e = Add(c, d) y = Tanh(e)"), tmp_path)
    assert rows(source) == [
        ("Conv+Relu", ["x"], ["c"]), ("Softmax", ["c"], ["d"]), ("Add+Tanh", ["c", "d"], ["y"])
    ]  # fmt: skip


def test_a_producer_with_two_outputs_is_left_alone(tmp_path: Path) -> None:
    text = """(float[4,8] x) => (float[4,2] y, int64[4,2] i) <int64[1] k = {2}> {
        v, i = TopK(x, k) y = Relu(v) }"""
    assert [row[0] for row in rows(read(text, tmp_path))] == ["TopK", "Relu"]


def test_broadcasting_to_a_larger_tensor_does_not_merge(tmp_path: Path) -> None:
    model = weighted(graph("(float[4,1] x) => (float[4,4] y) { a = Softmax(x) y = Add(a, w) }"), w=(4, 4))
    assert [row[0] for row in rows(read(model, tmp_path))] == ["Softmax", "Add"]


def test_an_element_wise_operator_of_a_part_does_not_merge(tmp_path: Path) -> None:
    text = """(float[4,8] x) => (float[2,8] y) {
        a = Softmax(x) b, c = Split<axis=0, num_outputs=2>(a) y = Relu(b) }"""
    assert rows(read(text, tmp_path)) == [("Softmax", ["x"], ["a"]), ("Relu", ["b"], ["y"])]


@pytest.mark.parametrize(
    ("body", "type_"),
    [
        ("i = Sigmoid(a) y = Mul(a, i)", "Conv+Sigmoid+Mul"),
        ("i = HardSigmoid(a) y = Mul(i, a)", "Conv+HardSigmoid+Mul"),
        ("y = HardSwish(a)", "Conv+HardSwish"),
        ("y = Gelu(a)", "Conv+Gelu"),
        ("p = Softplus(a) t = Tanh(p) y = Mul(a, t)", "Conv+Softplus+Tanh+Mul"),
        ("d = Div(a, r) e = Erf(d) f = Add(e, one) g = Mul(a, f) y = Mul(g, h)", "Conv+Div+Erf+Add+Mul+Mul"),
        ("d = Add(a, one) e = Clip(d, one, r) f = Mul(a, e) y = Div(f, r)", "Conv+Add+Clip+Mul+Div"),
    ],
)
def test_functions_written_in_several_nodes_are_one(tmp_path: Path, body: str, type_: str) -> None:
    model = conv(body)
    for name, value in (("r", 1.4142), ("one", 1.0), ("h", 0.5)):
        model.graph.initializer.append(helper.make_tensor(name, 1, [], [value]))
    source = read(model, tmp_path)
    assert rows(source) == [(type_, ["x"], ["y"])]
    assert source.network.weight_bytes == 4 * (108 + 4)  # scalars are immediates
    assert differing(source) == []
    assert len(read(model, tmp_path, granularity="op").network.operators) == len(model.graph.node)


def test_a_layer_norm_in_pieces_is_one_function_of_rows(tmp_path: Path) -> None:
    text = """(float[2,8] x) => (float[2,8] y) <int64[1] last = {-1}, float two = {2}, float eps = {0.001}> {
        m = ReduceMean(x, last)  d = Sub(x, m)  q = Pow(d, two)  v = ReduceMean(q, last)
        e = Add(v, eps)  s = Sqrt(e)  n = Div(d, s)  g = Mul(n, w)  y = Add(g, w) }"""
    source = read(weighted(graph(text), w=(8,)), tmp_path)
    assert rows(source) == [("ReduceMean+Sub+Pow+ReduceMean+Add+Sqrt+Div+Mul+Add", ["x"], ["y"])]
    [norm] = source.network.operators
    assert norm.weight_bytes == 8 * 4  # read twice, fetched once
    assert norm.reach is not None
    assert [(side.axis, side.span) for side in norm.reach.reads[0]] == [(0, 1), (-1, 8)]
    assert differing(source) == []


def test_batch_norm_in_training_mode_does_not_merge(tmp_path: Path) -> None:
    model = conv("n, m, v = BatchNormalization<training_mode=1>(a, s, s, s, s) y = Relu(n)")
    assert [row[0] for row in rows(read(model, tmp_path))] == ["Conv", "BatchNormalization+Relu"]


def test_optional_outputs_that_nobody_reads_are_left_out_and_need_no_shape(tmp_path: Path) -> None:
    text = "(float[2,8] x) => (float[2,8] y) { a, mask = Dropout(x) y, mean, inv = LayerNormalization(a, w) }"
    source = read(weighted(graph(text), w=(8,)), tmp_path)
    assert rows(source) == [("LayerNormalization", ["x"], ["y"])]


def test_optional_inputs_and_outputs_may_be_left_empty(tmp_path: Path) -> None:
    model = graph("(float[3,2,4] x, float[1,2,5] start) => (float[1,2,5] h) { h = Identity(start) }")
    node = helper.make_node("RNN", ["x", "w", "r", "", "", "start"], ["", "h"], hidden_size=5)
    model.graph.node[0].CopyFrom(node)
    source = read(weighted(model, w=(1, 5, 4), r=(1, 5, 5)), tmp_path)
    assert rows(source) == [("RNN", ["x", "start"], ["h"])]
    assert source.network.operators[0].name == "h"
    assert differing(source) == []


def test_a_required_output_that_nobody_reads_is_still_written(tmp_path: Path) -> None:
    text = "(float[4,8] x) => (int64[4,2] i) <int64[1] k = {2}> { v, i = TopK(x, k) }"
    source = read(text, tmp_path)
    assert rows(source) == [("TopK", ["x"], ["v", "i"])]
    assert [t.bytes for t in source.network.tensors] == [128, 32, 64]


def test_dtype_sizes_floats_and_leaves_integers(tmp_path: Path) -> None:
    text = "(float[4,8] x) => (int64[4,2] i) <int64[1] k = {2}> { a = Mul(x, w) v, i = TopK(a, k) }"
    model = weighted(graph(text), w=(8,))
    for dtype, width in (("file", 4), ("int16", 2), ("int8", 1)):
        network = read(model, tmp_path, dtype=dtype, granularity="op").network
        assert [t.bytes for t in network.tensors] == [32 * width, 32 * width, 8 * width, 64]
        assert network.weight_bytes == 8 * width
        assert network.element == {"file": "float32"}.get(dtype, dtype)


def test_the_nodes_named_in_the_file_name_the_operators(tmp_path: Path) -> None:
    model = conv("y = Relu(a)")
    model.graph.node[0].name = "stem"
    assert [op.name for op in read(model, tmp_path).network.operators] == ["stem"]


def test_geometry_of_a_convolution_outlives_merging(tmp_path: Path) -> None:
    [operator] = read(conv("y = Relu(a)"), tmp_path).network.operators
    geometry = operator.geometry
    assert geometry is not None
    assert (geometry.kind, geometry.input, geometry.output) == ("conv", (1, 3, 8, 8), (1, 4, 8, 8))
    assert (geometry.kernel, geometry.stride, geometry.padding) == ((3, 3), (1, 1), (1, 1, 1, 1))
    assert (geometry.dilation, geometry.groups, geometry.layout) == ((1, 1), 1, "NCHW")


@pytest.mark.parametrize(
    ("auto", "size", "padding"),
    [("SAME_UPPER", 8, (0, 0, 1, 1)), ("SAME_LOWER", 8, (1, 1, 0, 0)), ("SAME_UPPER", 7, (1, 1, 1, 1)),
     ("VALID", 8, (0, 0, 0, 0))],
)  # fmt: skip
def test_geometry_spells_out_automatic_padding(
    tmp_path: Path, auto: str, size: int, padding: tuple[int, ...]
) -> None:
    out = 3 if auto == "VALID" else 4
    model = graph(f"""(float[1,4,{size},{size}] x) => (float[1,4,{out},{out}] y) {{
        y = Conv<auto_pad="{auto}", group=4, strides=[2,2]>(x, w) }}""")
    [operator] = read(weighted(model, w=(4, 1, 3, 3)), tmp_path).network.operators
    assert operator.geometry is not None
    assert operator.geometry.padding == padding
    assert operator.geometry.kind == "depthwise"


def test_geometry_of_the_rest(tmp_path: Path) -> None:
    text = """(float[1,4,8,8] x) => (float[1,5] y) {
        a = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x)  b = Add(a, a)  g = GlobalAveragePool(b)
        f = Flatten(g)  y = Gemm(f, w) }"""
    source = read(weighted(graph(text), w=(4, 5)), tmp_path, granularity="op")
    shapes = [(g.kind, g.input, g.output, g.kernel) for op in source.network.operators if (g := op.geometry)]
    assert shapes == [
        ("pool", (1, 4, 8, 8), (1, 4, 4, 4), (2, 2)), ("elementwise", (1, 4, 4, 4), (1, 4, 4, 4), ()),
        ("pool", (1, 4, 4, 4), (1, 4, 1, 1), (4, 4)), ("fully_connected", (1, 4), (1, 5), ()),
    ]  # fmt: skip


def test_file_and_zoo_have_their_own_default_element(tmp_path: Path) -> None:
    assert read(conv("y = Relu(a)"), tmp_path).network.element == "float32"
    assert load("zoo:resnet18").network.element == "int8"
    assert load("zoo:resnet18", ReadOptions(dtype="file")).network.element == "float32"


def test_merged_element_wise_operators_stay_element_wise(tmp_path: Path) -> None:
    text = """(float[1,4,8,8] x, float[1,4,8,8] z) => (float[1,4,8,8] y) { a = Add(x, z)  b = Relu(a)
        s = Sigmoid(b)  c = Mul(b, s)  y = Neg(c) }"""
    [operator] = read(graph(text), tmp_path).network.operators
    assert operator.geometry == Geometry("elementwise", (1, 4, 8, 8), (1, 4, 8, 8))
    assert may_overwrite(read(graph(text), tmp_path).network, 0, 2, 0)


def test_a_scale_that_is_broadcast_leaves_the_rest_element_wise(tmp_path: Path) -> None:
    text = "(float[1,4,8,8] x, float[1,4,1,1] s) => (float[1,4,8,8] y) { y = Mul(s, x) }"
    network = read(graph(text), tmp_path).network
    assert network.operators[0].geometry == Geometry("elementwise", (1, 4, 8, 8), (1, 4, 8, 8))
    x, s, y = (network.tensor_id[name] for name in "xsy")
    assert may_overwrite(network, 0, y, x)
    assert not may_overwrite(network, 0, y, s)
    # Of several types nothing is said: four bytes may be one element or four.
    text = "(bool[4,4] c, float[4,4] x, float[4] s) => (float[4,4] y) { y = Where(c, x, s) }"
    assert read(graph(text), tmp_path).network.operators[0].geometry is None
    text = "(float[4,1] x, float[1,4] s) => (float[4,4] y) { y = Mul(s, x) }"
    assert read(graph(text), tmp_path).network.operators[0].geometry is None
