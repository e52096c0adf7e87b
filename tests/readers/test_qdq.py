"""Networks in QDQ form: int8 networks with the geometry, tensors and traffic of their float twins."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from build import graph, read, rows, save
from onnx import numpy_helper
from stepwise import differing, loose_nodes

import onchip
from onchip.base.errors import Infeasible, ModelError
from onchip.readers import ReadOptions, Source, load
from onchip.readers.source import Executable
from onchip.run import run
from quantised_models import (
    ENCODER,
    ENCODER_WEIGHTS,
    float_cnn,
    quantised,
    with_weights,
)


def walks(source: Source) -> list[object]:
    return [op.geometry for op in source.network.operators]


def sizes(source: Source) -> list[int]:
    return [t.bytes for t in source.network.tensors]


@pytest.mark.parametrize("per_channel", [False, True])
def test_a_quantised_network_is_its_float_twin_in_int8(tmp_path: Path, per_channel: bool) -> None:
    found = load(quantised(float_cnn(), tmp_path, per_channel=per_channel))
    twin = load(tmp_path / "float.onnx", ReadOptions(dtype="int8"))
    assert found.network.operators[0].type == "DequantizeLinear+Conv+QuantizeLinear"
    assert walks(found) == walks(twin)
    assert sizes(found) == sizes(twin)
    assert [op.macs for op in found.network.operators] == [op.macs for op in twin.network.operators]
    assert differing(found) == []
    assert loose_nodes(found) == []


def test_an_encoder_is_its_float_twin_in_int8(tmp_path: Path) -> None:
    """Products, norms, softmax, sums and what only moves."""
    found = load(quantised(with_weights(ENCODER, 20, **ENCODER_WEIGHTS), tmp_path))
    twin = load(tmp_path / "float.onnx", ReadOptions(dtype="int8"))
    operators, twins = found.network.operators, twin.network.operators
    assert walks(found) == walks(twin)
    assert sizes(found) == sizes(twin)
    for op, other in zip(operators, twins, strict=True):
        assert (op.reach is None) == (other.reach is None)
        if op.reach is not None and other.reach is not None:
            assert (op.reach.output, op.reach.reads) == (other.reach.output, other.reach.reads)
            assert op.reach.sums == other.reach.sums
    assert differing(found) == []
    assert loose_nodes(found) == []


@pytest.mark.parametrize("budget", [1400, 3000, 5000])
def test_it_moves_what_its_twin_moves(tmp_path: Path, budget: int) -> None:
    path = quantised(float_cnn(), tmp_path)
    found = onchip.plan(path, fuse=True, budget=budget).result
    twin = onchip.plan(tmp_path / "float.onnx", fuse=True, budget=budget, dtype="int8").result
    assert found.compulsory_bytes == twin.compulsory_bytes
    assert found.traffic_bytes == twin.traffic_bytes


MOVED = """(float[1,4,6,6] x) => (float[1,2,6,6] y)
    <float s = {0.05}, uint8 z = {128}, float other = {0.06}, int64[4] m = {1, 6, 6, 4}, float ws = {0.02},
     int8 wz = {0}, int64[2] half = {2, 2}> {
    q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)
    t = Transpose<perm=[0,2,3,1]>(d)  tq = QuantizeLinear(t, s, z)  td = DequantizeLinear(tq, s, z)
    r = Reshape(td, m)  rq = QuantizeLinear(r, s, z)  rd = DequantizeLinear(rq, s, z)
    u = Transpose<perm=[0,3,1,2]>(rd)  uq = QuantizeLinear(u, s, z)  ud = DequantizeLinear(uq, s, z)
    a, b = Split<axis=1>(ud, half)
    aq = QuantizeLinear(a, s, z)  ad = DequantizeLinear(aq, s, z)
    bq = QuantizeLinear(b, LAST, z)  bd = DequantizeLinear(bq, LAST, z)
    e = Add(ad, bd)  eq = QuantizeLinear(e, s, z)  y = DequantizeLinear(eq, s, z) }"""


@pytest.mark.parametrize("budget", [1400, 5000])
def test_its_boundary_is_integers_unless_floats_are_asked_for(tmp_path: Path, budget: int) -> None:
    """What is executed is the same network without the conversions at its ends, and the plan says so."""
    path = quantised(float_cnn(), tmp_path)
    found, floats = load(path), load(path, ReadOptions(float_boundary=True))
    assert [op.type for op in floats.network.operators][1:-1] == [op.type for op in found.network.operators]
    assert [floats.network.operators[i].type for i in (0, -1)] == ["QuantizeLinear", "DequantizeLinear"]
    assert [t.bytes for t in floats.network.tensors][1:-1] == sizes(found)
    assert floats.notes == ()
    plan = onchip.plan(path, fuse=True, budget=budget)
    first, last = str(plan.options["boundary"]).split("; ")
    assert first.startswith("input x is its integers: the caller quantises it by ")
    assert last.startswith("output y is integers: the caller dequantises it by ")
    assert plan.run().bit_exact
    asked = onchip.plan(path, fuse=True, budget=budget, float_boundary=True)
    assert asked.run().bit_exact
    assert asked.result.compulsory_bytes == plan.result.compulsory_bytes + 3 * (768 + 10)


@pytest.mark.parametrize(
    ("kind", "change", "integers"),
    [
        ("float", "o = Neg(d)", {"x": 2, "y": 2, "o": 1}),
        ("float", "o = Relu(x)", {"x": 1, "y": 2, "o": 1}),
        ("uint8", "o = QuantizeLinear(x, t, z)", {"x": 1, "y": 2, "o": 2}),
        ("uint8", "o = Identity(q)", {"x": 2, "y": 2, "o": 2}),
        ("float", "o = Relu(y)", {"x": 2, "y": 1, "o": 1}),
        ("float", "o = DequantizeLinear(r, s, z)", {"x": 2, "y": 1, "o": 1}),
    ],
)
def test_what_reads_floats_keeps_them(
    tmp_path: Path, kind: str, change: str, integers: dict[str, int]
) -> None:
    """An input that is read as floats, too, or by two scales, stays; so does an output that is read on."""
    model = graph(f"""(float[1,8] x) => (float[1,8] y, {kind}[1,8] o)
        <float s = {{0.05}}, float t = {{0.1}}, uint8 z = {{128}}> {{
        q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  a = Sigmoid(d)
        r = QuantizeLinear(a, s, z)  y = DequantizeLinear(r, s, z) {change} }}""")
    source = read(model, tmp_path)
    assert isinstance(source.executable, Executable)
    ends = [*source.executable.model.graph.input, *source.executable.model.graph.output]
    assert {end.name: end.type.tensor_type.elem_type for end in ends} == integers
    assert differing(source) == []
    assert loose_nodes(source) == []


def test_pairs_around_what_only_moves_vanish(tmp_path: Path) -> None:
    """Transposes there and back, a reshape and a split, all quantised alike, move nothing."""
    source = read(MOVED.replace("LAST", "s"), tmp_path, float_boundary=True)
    assert rows(source) == [
        ("QuantizeLinear", ["x"], ["q"]),
        ("DequantizeLinear+Add+QuantizeLinear", ["aq", "bq"], ["eq"]),
        ("DequantizeLinear", ["eq"], ["y"]),
    ]
    assert [(v.tensor, v.offset) for v in source.network.views] == [
        (source.network.tensor_id["aq"], 0), (source.network.tensor_id["bq"], 72)
    ]  # fmt: skip
    assert differing(source) == []


def test_another_scale_is_an_operator(tmp_path: Path) -> None:
    source = read(MOVED.replace("LAST", "other"), tmp_path)
    assert "DequantizeLinear+QuantizeLinear" in [row[0] for row in rows(source)]
    assert differing(source) == []


JOINED = """(uint8[1,4,6,6] x) => (uint8[1,8,6,6] y)
    <float s = {0.05}, uint8 z = {128}, float other = {0.06}> {
    d = DequantizeLinear(x, s, z)
    a = Relu(d)  aq = QuantizeLinear(a, s, z)  ad = DequantizeLinear(aq, s, z)
    b = Sigmoid(d)  bq = QuantizeLinear(b, s, z)  bd = DequantizeLinear(bq, s, z)
    c = Concat<axis=1>(ad, bd)  y = QuantizeLinear(c, LAST, z) }"""


def test_a_concat_of_equal_steps_only_joins(tmp_path: Path) -> None:
    source = read(JOINED.replace("LAST", "s"), tmp_path)
    assert [op.type for op in source.network.operators][-1] == "Concat"
    assert source.network.operators[-1].geometry.kind == "concat"  # type: ignore[union-attr]
    assert differing(source) == []
    assert loose_nodes(source) == []


def test_a_concat_of_other_steps_converts(tmp_path: Path) -> None:
    """It walks like a concat, and its type says that bytes do not stay what they are."""
    source = read(JOINED.replace("LAST", "other"), tmp_path)
    assert [op.type for op in source.network.operators][-1] == "DequantizeLinear+Concat+QuantizeLinear"
    assert source.network.operators[-1].geometry.kind == "concat"  # type: ignore[union-attr]
    assert differing(source) == []


def test_a_concat_that_stays_wide_joins_nothing_as_it_lies(tmp_path: Path) -> None:
    text = JOINED.replace("uint8[1,8,6,6] y", "float[1,8,6,6] y").replace(
        "QuantizeLinear(c, LAST, z)", "Neg(c)"
    )
    source = read(text, tmp_path)
    assert source.network.operators[-1].geometry.kind == "gathered concat"  # type: ignore[union-attr]
    assert differing(source) == []


def test_several_readers_and_a_dangling_dequantisation(tmp_path: Path) -> None:
    """Every reader reads the quantised tensor; what no output needs is left out."""
    source = read(
        """(uint8[1,8] x) => (float[1,8] y, uint8[1,8] w) <float s = {0.05}, uint8 z = {128}> {
        d = DequantizeLinear(x, s, z)  a = Exp(d)  b = Neg(d)  gone = DequantizeLinear(x, s)
        aq = QuantizeLinear(a, s, z)  bq = QuantizeLinear(b, s, z)
        ad = DequantizeLinear(aq, s, z)  bd = DequantizeLinear(bq, s, z)
        c = Add(ad, bd)  w = QuantizeLinear(c, s, z)  y = Exp(bd) }""",
        tmp_path,
    )
    assert rows(source) == [
        ("DequantizeLinear+Exp+QuantizeLinear", ["x"], ["aq"]),
        ("DequantizeLinear+Neg+QuantizeLinear", ["x"], ["bq"]),
        ("DequantizeLinear+Add+QuantizeLinear", ["aq", "bq"], ["w"]),
        ("DequantizeLinear+Exp", ["bq"], ["y"]),
    ]
    assert differing(source) == []


def test_scales_by_channel_of_an_activation(tmp_path: Path) -> None:
    """They are no one step: a pair around a reshape stays, and computes what it computes."""
    model = graph("""(float[1,4,2,2] x) => (float[1,4,2,2] y)
        <uint8[4] z = {1, 2, 3, 4}, int64[2] m = {4, 4}> {
        q = QuantizeLinear<axis=1>(x, s, z)  d = DequantizeLinear<axis=1>(q, s, z)  r = Reshape(d, m)
        rq = QuantizeLinear<axis=1>(r, s, z)  rd = DequantizeLinear<axis=1>(rq, s, z)
        n = Neg(rd)  u = Shape(x)  y = Reshape(n, u) }""")
    model.graph.initializer.append(numpy_helper.from_array(np.array([0.1, 0.2, 0.3, 0.4], np.float32), "s"))
    source = read(model, tmp_path)
    assert differing(source) == []
    assert loose_nodes(source) == []


@pytest.mark.parametrize(
    "text",
    [
        """(float[2,2,3] x) => (float[2,1,3] b, float[2,2,3] y) {
        a, b = Split<axis=1, num_outputs=2>(x)  c = Concat<axis=1>(b, a)  y = Relu(c) }""",
        """(uint8[2,3] x) => (float[1,3] b, float[2,3] y) <float s = {0.05}, uint8 z = {128}> {
        d = DequantizeLinear(x, s, z)  a, b = Split<axis=0, num_outputs=2>(d)
        c = Concat<axis=0>(b, a)  y = Relu(c) }""",
    ],
)
def test_an_output_that_is_cut_out_is_not_read_again(tmp_path: Path, text: str) -> None:
    """Another reader of the split cuts both parts itself: it has one operand and is a model of its own."""
    source = read(text, tmp_path)
    assert [len(op.inputs) for op in source.network.operators] == [1, 1]
    assert differing(source) == []
    for budget in (60, 40):
        with contextlib.suppress(Infeasible):
            run(onchip.plan(tmp_path / "net.onnx", fuse=True, budget=budget), source)


CONV = """(float[1,3,8,8] x) => (float[1,2,8,8] y) <float s = {0.05}, uint8 z = {128}> {
    q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)
    w = DequantizeLinear<axis=0>(k, ws, wz)  a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(d, w)
    r = QuantizeLinear(a, s, z)  y = DequantizeLinear(r, s, z) }"""


def conv(scales: int, zeros: object) -> onnx.ModelProto:
    model = graph(CONV)
    for name, value in (
        ("k", np.ones((2, 3, 3, 3), np.int8)), ("ws", np.full(scales, 0.02, np.float32)), ("wz", zeros)
    ):  # fmt: skip
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return model


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (conv(2, np.zeros(2, np.uint8)), "zero point wz is not of the type of k"),
        (conv(3, np.zeros(3, np.int8)), r"scales \[3\] do not go along axis 0 of \[2, 3, 3, 3\]"),
        (conv(2, np.zeros(3, np.int8)), r"its scale is \[2\] and its zero point \[3\]"),
        (graph(CONV.replace("(q, s, z)", "(q)")), "DequantizeLinear"),
        (graph('(uint8[8] q) => (float[8] y) { y = DequantizeLinear(q, "") }'.replace('""', "")), "node y"),
    ],
)
def test_operands_that_do_not_fit_are_one_line(tmp_path: Path, model: onnx.ModelProto, said: str) -> None:
    with pytest.raises(ModelError, match=said) as problem:
        load(save(model, tmp_path))
    assert "\n" not in str(problem.value)


def test_weights_by_channel_count_as_stored(tmp_path: Path) -> None:
    source = read(conv(2, np.zeros(2, np.int8)), tmp_path, float_boundary=True)
    [_, op, _] = source.network.operators
    assert op.weight_bytes == 54 + 2 * 4  # zero points that are zero are not fetched
    source = read(conv(2, np.ones(2, np.int8)), tmp_path, float_boundary=True)
    assert source.network.operators[1].weight_bytes == 54 + 2 * 4 + 2
    assert differing(source) == []


@pytest.mark.parametrize(("factor", "scales"), [(1.0, 0), (2.0, 4 * 2)])
def test_biases_of_32_bits_are_added_to_sums_of_their_scale(
    tmp_path: Path, factor: float, scales: int
) -> None:
    """Their scales are fetched only if they are not those of the sum."""
    model = graph(
        CONV.replace("(d, w)", "(d, w, c)").replace(
            "a = Conv", "c = DequantizeLinear<axis=0>(i, bs)  a = Conv"
        )
    )
    random = np.random.default_rng(0)
    step = np.array([0.01, 0.03], np.float32)
    for name, value in (
        ("k", random.integers(-100, 100, (2, 3, 3, 3)).astype(np.int8)),
        ("ws", step),
        ("wz", np.zeros(2, np.int8)),
        ("i", np.array([300, -500], np.int32)),
        ("bs", step * np.float32(0.05 * factor)),
    ):
        model.graph.initializer.append(numpy_helper.from_array(value, name))
    source = read(model, tmp_path)
    [op] = source.network.operators
    assert op.weight_bytes == 54 + 2 * 4 + 2 * 4 + scales
    assert differing(source) == []
    for budget in (200, 150, 100):
        with contextlib.suppress(Infeasible):
            assert run(onchip.plan(source, fuse=True, budget=budget), source).bit_exact
