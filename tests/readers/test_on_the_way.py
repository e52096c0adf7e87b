"""Values made on the way: masks, shared heads, norms and rotations in parts, constants that are computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from build import graph, read, rows, save, weighted
from onnx import numpy_helper
from stepwise import differing

import onchip
from onchip.base.errors import Infeasible
from onchip.readers import Source, load
from onchip.run import run

MASK = """(float[1,2,8,4] q, float[1,2,4,8] k, float[1,2,8,4] v, bool[1,1,1,8] there) => (float[1,2,8,4] y)
    <float none = {0}, float lowest = {-10000}, float scale = {0.5}> {
    s = MatMul(q, k)  m = And(there, all)  f = Where(m, none, lowest)
    a = Add(s, f)  p = Softmax(a)  y = MatMul(p, v) }"""


def masked(folder: Path) -> Source:
    model = graph(MASK)
    model.graph.initializer.append(numpy_helper.from_array(np.ones((1, 1, 8, 1), np.bool_), "all"))
    return read(model, folder)


def names(source: Source, operator: int) -> list[str]:
    return [source.network.tensors[t].name for t in source.network.operators[operator].inputs]


def test_a_mask_of_queries_and_keys_is_read_as_its_keys(tmp_path: Path) -> None:
    """Scores take it as one number for each key; nothing of eight times eight is made."""
    source = masked(tmp_path)
    assert rows(source) == [
        ("MatMul+And+Where+Add", ["q", "k", "there"], ["a"]),
        ("Softmax", ["a"], ["p"]),
        ("MatMul", ["p", "v"], ["y"]),
    ]
    [scores, *_] = source.network.operators
    assert scores.reach is not None
    assert scores.weight_bytes == 8
    assert differing(source) == []


def test_it_is_executed_in_tiles(tmp_path: Path) -> None:
    source = masked(tmp_path)
    least = sum(t.bytes for t in source.network.tensors)
    tiled = 0
    for budget in (least // 2, least // 3, least // 4):
        try:
            plan = onchip.plan(source, fuse=True, budget=budget)
        except Infeasible:
            continue
        run(plan, source)
        tiled += len(plan.groups)
    assert tiled


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("m = And(there, all)  f = Where(m, none, lowest)  y = Add(x, f)", 1),  # two weights of rows
        (
            "m = And(there, all)  f = Where(m, none, lowest)  y = Softmax(f)",
            2,
        ),  # needs rows of it as they are
        ("m = And(there, all)  y = Where(m, none, lowest)", 1),  # an output is made
        ("f = Exp(e)  g = Expand(f, t)  y = Add(x, g)", 2),  # the sines of positions, say, are made once
    ],
)
def test_who_takes_what_is_made_on_the_way(tmp_path: Path, body: str, left: int) -> None:
    model = graph(f"""(float[1,2,8,8] x, bool[1,1,1,8] there, float[1,2,1,1] e) => (float[1,2,8,8] y)
        <float none = {{0}}, float lowest = {{-10000}}, int64[4] t = {{1, 2, 8, 8}}> {{ {body} }}""")
    if "float[1,2,8,8] y" in str(body) or "y = Where" in body or "Softmax" in body:
        del model.graph.output[0].type.tensor_type.shape.dim[:]
        for n in (1, 1, 8, 8):
            model.graph.output[0].type.tensor_type.shape.dim.add(dim_value=n)
    model.graph.initializer.append(numpy_helper.from_array(np.ones((1, 1, 8, 1), np.bool_), "all"))
    source = read(model, tmp_path)
    assert len(source.network.operators) == left
    assert differing(source) == []


def test_heads_that_share_keys_are_read_where_they_lie(tmp_path: Path) -> None:
    """The expansion, the scale and the transpose of keys are a part of the product that reads them."""
    source = read(
        """(float[1,4,8,4] q, float[1,2,8,4] k) => (float[1,4,8,8] y, float[1,2,8,4] kept)
        <int64[1] one = {2}, int64[5] wide = {1, 2, 2, 8, 4}, int64[4] flat = {1, 4, 8, 4}, float h = {0.5}> {
        kept = Relu(k)  a = Unsqueeze(kept, one)  b = Expand(a, wide)  c = Reshape(b, flat)
        d = Transpose<perm=[0,1,3,2]>(c)  e = Mul(d, h)  y = MatMul(q, e) }""",
        tmp_path,
    )
    assert rows(source) == [("Relu", ["k"], ["kept"]), ("Expand+Transpose+Mul+MatMul", ["q", "kept"], ["y"])]
    assert differing(source) == []
    for budget in (700, 500, 300):
        plan = onchip.plan(source, fuse=True, budget=budget)
        assert run(plan, source) is not None


ROTATED = """(float[1,2,6,8] x) => (float[1,2,6,8] y)
    <int64[1] zero = {0}, int64[1] half = {4}, int64[1] all = {8}, int64[1] last = {3}> {
    a = Slice(x, zero, half, last)  b = Slice(x, half, all, last)  n = Neg(b)  t = Concat<axis = -1>(n, a)
    c = Mul(x, cos)  s = Mul(t, sin)  y = Add(c, s) }"""


def test_a_rotation_in_parts_is_one_operator(tmp_path: Path) -> None:
    source = read(weighted(graph(ROTATED), cos=(6, 8), sin=(6, 8)), tmp_path)
    assert [row[1:] for row in rows(source)] == [(["x"], ["y"])]
    [op] = source.network.operators
    assert op.reach is not None
    assert [(s.size, s.axis, s.span) for s in op.reach.reads[0]] == [(2, 0, 1), (6, 1, 1), (8, -1, 8)]
    assert differing(source) == []
    plan = onchip.plan(source, fuse=True, budget=400)
    assert plan.groups
    run(plan, source)


RMS = """(float[4,16] x) => (float[4,16] y, float[4,16] z)
    <float two = {2}, float eps = {0.001}, int64[1] last = {-1}> {
    a = Sigmoid(x)  q = Pow(a, two)  m = ReduceMean(q, last)  e = Add(m, eps)  r = Sqrt(e)  i = Reciprocal(r)
    n = Mul(a, i)  y = Mul(n, w)  z = Exp(a) }"""


def test_a_norm_of_squares_in_parts_is_one_operator(tmp_path: Path) -> None:
    source = read(weighted(graph(RMS), w=(16,)), tmp_path)
    assert [row[0] for row in rows(source)] == [
        "Sigmoid",
        "Pow+ReduceMean+Add+Sqrt+Reciprocal+Mul+Mul",
        "Exp",
    ]
    assert differing(source) == []
    run(onchip.plan(source, fuse=True, budget=260), source)


def test_a_row_that_is_too_long_is_read_twice(tmp_path: Path) -> None:
    text = RMS.replace("[4,16]", "[1,20000]").replace("w)", "a)")
    assert "ReduceMean+Add+Sqrt+Reciprocal" in [row[0] for row in rows(read(text, tmp_path))]


def test_a_gelu_whose_halves_read_one_value_is_one_function(tmp_path: Path) -> None:
    source = read(
        """(float[4,16] x) => (float[4,16] y, float[4,16] z) <float h = {0.5}, float one = {1}> {
        a = Sigmoid(x)  b = Mul(a, h)  t = Tanh(a)  c = Add(t, one)  y = Mul(b, c)  z = Exp(a) }""",
        tmp_path,
    )
    assert [row[0] for row in rows(source)] == ["Sigmoid", "Tanh+Add+Mul+Mul", "Exp"]
    assert differing(source) == []


CAUSAL = """(float[1,2,16,16] x) => (float[1,2,16,16] y)
    <int64 zero = {0}, int64 one = {1}, int64 n = {16}, int64[1] a0 = {0}, int64[1] a1 = {1},
     float none = {0}, float lowest = {-10000}> {
    p = Range(zero, n, one)  i = Unsqueeze(p, a1)  j = Unsqueeze(p, a0)
    below = LessOrEqual(j, i)  m = Where(below, none, lowest)  y = Add(x, m) }"""


def test_a_causal_mask_is_fetched_as_positions(tmp_path: Path) -> None:
    """256 floats follow from 16 positions of eight bytes."""
    source = read(CAUSAL, tmp_path)
    [op] = source.network.operators
    assert op.weight_bytes == 16 * 8
    assert differing(source) == []
    run(onchip.plan(source, fuse=True, budget=1500), source)


def test_an_expanded_constant_is_fetched_as_it_lies(tmp_path: Path) -> None:
    text = "(float[4,8] x) => (float[4,8] y) <int64[2] t = {4, 8}> { e = Expand(w, t)  y = Add(x, e) }"
    source = read(weighted(graph(text), w=(8,)), tmp_path)
    assert source.network.weight_bytes == 8 * 4
    assert differing(source) == []


def test_rows_of_a_table_that_known_indices_name_count_once(tmp_path: Path) -> None:
    text = """(float[6,8] x) => (float[6,8] y) <int64[6] i = {1, 1, 1, 0, 1, 1}> {
        e = Gather(w, i)  y = Add(x, e) }"""
    source = read(weighted(graph(text), w=(2, 8)), tmp_path)
    assert source.network.weight_bytes == 2 * 8 * 4
    assert differing(source) == []
    run(onchip.plan(source, fuse=True, budget=300), source)


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("(float[5,4] x, int64[3] i) => (float[3,4] y) { y = Gather(x, i) }", 2),
        ("(float[5,4] x, int64[3,4] i) => (float[3,4] y) { y = GatherElements(x, i) }", 2),
        ("(float[1,2,4,4] x, float[1,3,3,2] g) => (float[1,2,3,3] y) { y = GridSample(x, g) }", 2),
        ("(float[3,4,5] x) => (int64[3,1,5] y) { y = ArgMax<axis=1>(x) }", 1),
        ("(float[3,4] x) => (float[3,4] y) <int64[1,2] i = {1, 2}, float[1] u = {7}> "
         "{ y = ScatterND(x, i, u) }", 1),
        ("(float[2,4,3] x) => (float[2,4,4] y) { t = Transpose<perm=[0,2,1]>(x)  y = MatMul(x, t) }", 1),
    ],
)  # fmt: skip
def test_what_is_picked_has_a_reach(tmp_path: Path, text: str, reads: int) -> None:
    """All of the dimension that indices go along, the rest place by place."""
    [op] = read(text, tmp_path).network.operators
    assert op.reach is not None
    assert len(op.reach.reads) == reads


def test_what_is_picked_is_executed_in_parts(tmp_path: Path) -> None:
    text = """(float[16,8] x, float[16,8] z) => (float[16,8] y) {
        a = Sigmoid(x)  i = ArgMax<axis=0>(z)  b = Gather<axis=0>(a, i)  c = Squeeze(b)
        d = GatherElements<axis=0>(a, i)  e = Add(a, d)  y = Mul(e, z) }"""
    model = graph(text.replace("b = Gather<axis=0>(a, i)  c = Squeeze(b)\n        ", ""))
    path = save(model, tmp_path)
    source = load(path)
    assert all(op.reach is not None or op.geometry is not None for op in source.network.operators)
    tiled = 0
    for budget in (1600, 1200, 900, 700):
        try:
            plan = onchip.plan(path, fuse=True, budget=budget)
        except Infeasible:
            continue
        run(plan, source)
        tiled += len(plan.groups)
    assert tiled
