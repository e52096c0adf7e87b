"""What exporters of today write: windows side by side, constants under two names, rows that lie as maps."""

from __future__ import annotations

from pathlib import Path

import onnx
from build import read, rows, save
from stepwise import differing

import onchip
from onchip.readers import load
from onchip.run import run
from quantised_models import with_weights

WINDOWS = """(float[1,8,8,4] x) => (float[1,8,8,4] y) <
  int64[6] cut = {1, 2, 4, 2, 4, 4}, int64[4] flat = {1, 4, 16, 4}, int64[4] map = {1, 8, 8, 4}> {
  a = Sigmoid(x)
  b = Reshape(a, cut)
  c = Transpose<perm = [0, 1, 3, 2, 4, 5]>(b)
  d = Reshape(c, flat)
  e = MatMul(d, w)
  f = Reshape(e, cut)
  g = Transpose<perm = [0, 1, 3, 2, 4, 5]>(f)
  h = Reshape(g, map)
  y = Add(a, h)
}"""


def executed(model: onnx.ModelProto, folder: Path, budget: int) -> onchip.Plan:
    """A plan with groups that was executed and compared, every tensor of it."""
    made = onchip.plan(save(model, folder), budget=budget, fuse=True)
    run(made)
    return made


def test_windows_side_by_side_are_boxes_of_a_map(tmp_path: Path) -> None:
    """The sum of a map and of one that lies in windows runs in parts, though its shapes are those of maps."""
    model = with_weights(WINDOWS, w=(4, 4))
    last = load(save(model, tmp_path)).network.operators[-1]
    assert last.type == "Transpose+Add"
    assert last.reach is not None
    made = executed(model, tmp_path, 2600)  # the three operands of the sum are 3,072
    assert any(last.name in group.operators for group in made.groups)


def test_a_constant_under_two_names_is_fetched_once(tmp_path: Path) -> None:
    """Weight and deviation of a batch norm may be one constant, as equal ones are written once."""
    model = with_weights(
        """(float[1,8,8,8] x) => (float[1,8,8,8] y) {
        same = Identity(s)
        a = Sigmoid(x)
        y = BatchNormalization(a, s, b, m, same)
        z = Relu(a)
        }""",
        s=(8,), b=(8,), m=(8,),
    )  # fmt: skip
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", 1, [1, 8, 8, 8]))
    norm = next(op for op in load(save(model, tmp_path)).network.operators if "Batch" in op.type)
    assert norm.weight_bytes == 3 * 8 * 4
    assert executed(model, tmp_path, 2400).groups


def test_a_product_of_a_row_that_lies_as_a_map(tmp_path: Path) -> None:
    """What attention makes of one token, [heads, 1, features], is a row of the product behind it."""
    model = with_weights(
        """(float[1,4,1,16] x, float[1,1,64] r) => (float[1,1,64] y) <int64[3] row = {1, 1, 64}> {
        a = Sigmoid(x)
        b = Transpose<perm = [0, 2, 1, 3]>(a)
        c = Reshape(b, row)
        d = MatMul(c, w)
        e = Add(d, r)
        f = MatMul(e, v)
        g = Relu(f)
        y = MatMul(g, u)
        }""",
        w=(64, 64), v=(64, 256), u=(256, 64),
    )  # fmt: skip
    made = executed(model, tmp_path, 500)
    assert any("d" in group.operators for group in made.groups)


def test_a_mask_waits_for_the_values_it_chooses(tmp_path: Path) -> None:
    """What is computed of an input, false or true, waits in the place of the result that it chooses."""
    model = with_weights(
        """(float[32,8] x, float[32,32] m) => (float[32,7] y) <float no = {0.0}, float low = {-9.0}> {
        a = MatMul(x, v)
        b = MatMul(x, w)
        c = Transpose<perm = [1, 0]>(b)
        d = Add(a, c)
        e = LeakyRelu(d)
        f = Equal(m, no)
        g = Where(f, low, e)
        h = Softmax<axis = -1>(g)
        i = MatMul(h, x)
        y = MatMul(i, u)
        }""",
        v=(8, 1), w=(8, 1), u=(8, 7),
    )  # fmt: skip
    path = save(model, tmp_path)
    for budget in (1 << 10, 1 << 12, 1 << 14):
        run(onchip.plan(path, budget=budget, fuse=True, dtype="int8"))


SCALED = """(float[1,6,8] x) => (float[1,6,8] y)
    <int64[4] cut = {1, 6, 2, 4}, int64[3] flat = {1, 6, 8}, float half = {0.7}> {
    q = MatMul(x, w)
    a = Reshape(q, cut)
    b = Transpose<perm = [0, 2, 1, 3]>(a)
    c = Mul(b, half)
    k = MatMul(x, v)
    d = Reshape(k, cut)
    e = Transpose<perm = [0, 2, 3, 1]>(d)
    f = Mul(half, e)
    g = Neg(f)
    s = MatMul(c, g)
    p = Softmax<axis = -1>(s)
    z = Reshape(x, cut)
    o = Transpose<perm = [0, 2, 1, 3]>(z)
    r = MatMul(p, o)
    t = Transpose<perm = [0, 2, 1, 3]>(r)
    y = Reshape(t, flat)
}"""


def test_scales_behind_transposes_are_parts_of_the_products(tmp_path: Path) -> None:
    """Attention in parts whose queries and keys are scaled where they lie permuted: nothing is copied."""
    source = read(with_weights(SCALED, w=(8, 8), v=(8, 8)), tmp_path)
    assert [type_ for type_, *_ in rows(source)] == [
        "MatMul+Mul", "MatMul+Mul+Neg", "MatMul", "Softmax", "MatMul", "Transpose",
    ]  # fmt: skip
    assert differing(source) == []
    apart = read(with_weights(SCALED, w=(8, 8), v=(8, 8)), tmp_path, granularity="op")
    assert "Mul" in [type_ for type_, *_ in rows(apart)]


def test_what_others_read_keeps_its_place(tmp_path: Path) -> None:
    """A scale stays behind a transpose that another operator reads, or of a part of a value."""
    text = """(float[6,8] x) => (float[8,6] y, float[4,6] z) <float half = {0.5}, int64[2] each = {4, 4}> {
    q = MatMul(x, w)
    a = Transpose<perm = [1, 0]>(q)
    b = Mul(a, half)
    y = Add(a, b)
    p, r = Split<axis = 1>(q, each)
    c = Transpose<perm = [1, 0]>(p)
    z = Mul(c, half)
    }"""
    source = read(with_weights(text, w=(8, 8)), tmp_path)
    assert sum("Transpose" in type_ for type_, *_ in rows(source)) == 2
    assert differing(source) == []
