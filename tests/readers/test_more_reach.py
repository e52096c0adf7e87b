"""Reach of normalisations, rotations, sums by letters, look-ups and repetitions: parts give the whole."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from build import graph, read, save
from stepwise import differing

import onchip
from onchip.base.errors import Infeasible, ModelError
from onchip.readers import load
from onchip.run import run
from quantised_models import with_weights

TABLE = "(int64[6,1] i) => (float[6,8] y) { y = GatherND(t, i) }"
ROTARY = "y = RotaryEmbedding<num_heads=4>(x, c, s, p)"
MODELS: dict[str, onnx.ModelProto] = {
    "instance": with_weights(
        "(float[2,4,6,6] x) => (float[2,4,6,6] y) { y = InstanceNormalization(x, s, b) }", s=(4,), b=(4,)),
    "groups": with_weights(
        "(float[2,8,6,6] x) => (float[2,8,6,6] y) { y = GroupNormalization<num_groups=4>(x, s, b) }", 21,
        s=(8,), b=(8,)),
    "expand": with_weights(
        "(float[1,6,1] x) => (float[4,6,8] y) <int64[3] t = {4, 6, 8}> { y = Expand(x, t) }"),
    "tile": with_weights("(float[4,6] x) => (float[8,18] y) <int64[2] t = {2, 3}> { y = Tile(x, t) }"),
    "product": with_weights(
        '(float[2,6,8] x, float[2,5,8] w) => (float[2,6,5] y) { y = Einsum<equation="bik,bjk->bij">(x, w) }'),
    "weights": with_weights(
        '(float[2,6,8] x) => (float[2,4,6] y) { y = Einsum<equation="bik,kj->bji">(x, w) }', w=(8, 4)),
    "outer": with_weights('(float[6] x, float[8] w) => (float[6,8] y) { y = Einsum<equation="i,j">(x, w) }'),
    "three": with_weights(
        '(float[4,6] x, float[6,5] w, float[5,7] v) => (float[4,7] y) { '
        'y = Einsum<equation="ab,bc,cd->ad">(x, w, v) }'),
    "turned": with_weights('(float[4,6,5] x) => (float[5,4] y) { y = Einsum<equation="abc->ca">(x) }'),
    "elements": with_weights(TABLE, t=(50, 8)),
    "all": with_weights("(float[1,4,5] x) => (float[1,4,5] y) "
                        "<int64[1,4,2] i = {0, 0, 0, 1, 0, 2, 0, 3}> { a = GatherND(x, i) y = Softmax(a) }"),
    "mask": with_weights("(float[1,4,16,8] x) => (float[1,4,16,8] y) { y = Mul(x, m) }", m=(16, 8)),
    "rms": with_weights("(float[3,8,16] x) => (float[3,8,16] y) { y = RMSNormalization(x, g) }", 23, g=(16,)),
    "rotary": with_weights(
        "(float[1,8,5,8] x) => (float[1,8,5,8] y) { y = RotaryEmbedding(x, c, s) }", 23,
        c=(1, 5, 4), s=(1, 5, 4)),
    "positions": with_weights(
        "(float[1,5,32] x) => (float[1,5,32] y) <int64[1,5] p = {3, 4, 5, 6, 7}> { " + ROTARY + " }", 23,
        c=(9, 4), s=(9, 4)),
    "running": with_weights("(float[4,6,8] x) => (float[4,6,8] y) <int64 a = {1}> { y = CumSum(x, a) }"),
    "scattered": with_weights(
        "(float[6,8] x, float[4,8] u, float[4,6,8] z) => (float[6,8] y) { "
        'i = ArgMax<axis=1, keepdims=0>(z) y = ScatterElements<axis=0, reduction="add">(x, i, u) }'),
    "scattered parts": with_weights(
        "(float[6,8] x, float[3,8] u, float[3,6] z) => (float[6,8] y) { "
        'i = ArgMax<axis=1>(z) y = ScatterND<reduction="add">(x, i, u) }'),
    "looked up": with_weights(
        "(float[6,8] x, float[3,6] z) => (float[3,8] y) { i = ArgMax<axis=1>(z) y = GatherND(x, i) }"),
    "small table": with_weights(  # twelve of five
        "(float[12,5] z) => (float[12,8] y) { i = ArgMax<axis=1, keepdims=0>(z) y = Gather(t, i) }",
        t=(5, 8)),
    "indices that repeat": with_weights(
        "(float[6,8] x, float[4,8] u, float[4,6] z) => (float[6,8] y) <int64[2] t = {4, 8}> { "
        'i = ArgMax<axis=1>(z) e = Expand(i, t) y = ScatterElements<axis=0, reduction="add">(x, e, u) }'),
    "backwards": with_weights(  # along one side, by two along another
        "(float[1,12,16,10] x) => (float[1,12,8,10] y) <int64[2] a = {-1, 14}, int64[2] b = {-1000, -1000}, "
        "int64[2] c = {3, 2}, int64[2] d = {-1, -2}> { y = Slice(x, a, b, c, d) }"),
    "backwards and in steps": with_weights(
        "(float[1,12,16,10] x) => (float[1,12,7,10] y) <int64[2] a = {-1, 2}, int64[2] b = {-1000, 16}, "
        "int64[2] c = {3, 2}, int64[2] d = {-1, 2}> { y = Slice(x, a, b, c, d) }"),
    "matrix and vector": with_weights(
        "(float[2,12,16] x, float[16] v) => (float[2,12] y) { y = MatMul(x, v) }"),
    "vector and matrices": with_weights(
        "(float[16] v, float[2,16,12] x) => (float[2,12] y) { y = MatMul(v, x) }"),
    "tokens as a map": with_weights(  # but the first one, and half of the channels
        "(float[1,37,32] x) => (float[1,16,6,6] y) "
        "<int64[1] a = {1}, int64[1] b = {37}, int64[4] s = {1, 32, 6, 6}, int64[2] p = {16, 16}> { "
        "t = Slice(x, a, b, a) r = Transpose<perm=[0, 2, 1]>(t) m = Reshape(r, s) "
        "q, k = Split<axis=1>(m, p) y = Conv<group=16, pads=[1, 1, 1, 1]>(k, w) }", w=(16, 1, 3, 3)),
    "some heads as a map": with_weights(
        "(float[1,37,48] x) => (float[1,24,6,6] y) "
        "<int64[1] a = {1}, int64[1] b = {37}, int64[1] c = {2}, int64[4] h = {1, 37, 6, 8}, "
        "int64[4] s = {1, 48, 6, 6}, int64[3] p = {16, 24, 8}> { "
        "g = Reshape(x, h) o = Transpose<perm=[0, 2, 1, 3]>(g) t = Slice(o, a, b, c) "
        "r = Transpose<perm=[0, 1, 3, 2]>(t) m = Reshape(r, s) q, k, l = Split<axis=1>(m, p) "
        "y = Conv<group=24, pads=[2, 2, 2, 2]>(k, w) }", w=(24, 1, 5, 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_parts_give_the_whole(tmp_path: Path, name: str) -> None:
    """Every operator has a reach, and some plan runs it in parts, each from what the reach says it needs."""
    path, parts = save(MODELS[name], tmp_path), 0
    source = load(path)
    assert all(op.reach is not None for op in source.network.operators)
    assert differing(source) == []
    most = sum(t.bytes for t in source.network.tensors) + source.network.weight_bytes
    for share in (2, 4, 8):
        try:
            plan = onchip.plan(path, fuse=True, budget=most // share)
        except Infeasible:
            continue
        run(plan, source)
        parts += any(group.tiling is not None for group in plan.groups)
    assert parts


@pytest.mark.parametrize(
    "text",
    [
        '(float[5,5] x) => (float[5] y) { y = Einsum<equation="ii->i">(x) }',
        '(float[2,5,5] x) => (float[2,5] y) { y = Einsum<equation="...i->...">(x) }',
        "(float[3,4,5] x) => (float[2,5] y) <int64[2,2] i = {1, 0, 2, 3}> { y = GatherND(x, i) }",
    ],
)
def test_what_is_not_exact_runs_whole(tmp_path: Path, text: str) -> None:
    source = read(text, tmp_path)
    assert source.network.operators[0].reach is None
    assert differing(source) == []


def test_a_table_that_is_fetched_whole_comes_in_parts_of_its_rows(tmp_path: Path) -> None:
    """Twelve rows are looked up among five: each box fetches its features of all five."""
    network = load(save(MODELS["small table"], tmp_path)).network
    [table] = [c for op in network.operators if op.reach is not None for c in op.reach.weights]
    assert [(side.size, side.axis) for side in table.sides] == [(5, -1), (8, 1)]
    assert table.bytes == 5 * 8 * 4


def test_expanded_indices_are_no_tensor(tmp_path: Path) -> None:
    network = load(save(MODELS["indices that repeat"], tmp_path)).network
    assert [op.type for op in network.operators] == ["ArgMax", "Expand+ScatterElements"]


def test_maps_without_constants_along_their_rows_stay_as_they_were(tmp_path: Path) -> None:
    model = with_weights("(float[1,4,8,8] x) => (float[1,4,8,8] y) { y = Mul(x, m) }", m=(4, 1, 1))
    assert read(model, tmp_path).network.operators[0].reach is None


NMS = """(float[1,20,4] b, float[1,3,20] s) => (int64[LAST] y)
    <int64 n = {5}, float i = {0.5}, float t = {1.5}> {
    y = NonMaxSuppression(b, s, n, i, t) }"""


def test_selected_boxes_are_as_many_as_may_be(tmp_path: Path) -> None:
    """Their number is known at run time alone: a plan has room for all, and one line says so when it runs."""
    path = save(graph(NMS.replace("LAST", "n,3")), tmp_path)
    source = load(path)
    assert source.network.tensors[-1].bytes == 3 * 5 * 3 * 8
    with pytest.raises(ModelError, match=r"tensor y: is int64\[\d+, 3\] when run, not int64\[15, 3\]"):
        run(onchip.plan(path, budget=10_000), source)


def test_unknown_limits_are_refused(tmp_path: Path) -> None:
    model = graph("(float[1,20,4] b, float[1,3,20] s, int64 n) => (int64[k,3] y) { "
                  "y = NonMaxSuppression(b, s, n) }")  # fmt: skip
    with pytest.raises(ModelError, match="the shape of its output y cannot be inferred"):
        load(save(model, tmp_path))


@pytest.mark.parametrize("name", ["tokens as a map", "some heads as a map"])
def test_a_map_of_tokens_is_read_by_rows(tmp_path: Path, name: str) -> None:
    """A band of the map needs the tokens of its rows alone, and a slice of its channels those channels."""
    [op] = load(save(MODELS[name], tmp_path)).network.operators
    assert op.reach is not None
    rows, *channels = op.reach.reads[0]
    assert rows.axis >= 0
    assert rows.span < rows.size
    assert any(side.axis >= 0 for side in channels)
