"""Aliases have no bytes of their own, views share their parent's, permutes are read in place."""

from __future__ import annotations

from pathlib import Path

import pytest
from build import graph, read, rows, weighted
from stepwise import differing, loose_nodes

from onchip.network import Geometry
from onchip.readers import Source


def views(source: Source) -> list[tuple[str, str, int]]:
    names = [t.name for t in source.network.tensors]
    return [(names[v.tensor], names[v.of], v.offset) for v in source.network.views]


def sound(source: Source) -> bool:
    return differing(source) == [] and loose_nodes(source) == []


def test_aliases_are_never_listed(tmp_path: Path) -> None:
    text = """(float[2,3,4] x) => (float[2,12] y)
        <int64[2] t = {2, -1}, int64[4] q = {1,2,1,12}, int64[2] s = {0, 3}> {
        b = Identity(x)  c = Reshape(b, t)  d = Unsqueeze(c, s)  e = Squeeze(d, s)  f = Dropout(e)
        g = Flatten(f)  h = Cast<to=1>(g)  i = Transpose<perm=[0,2,1,3]>(k)  k = Reshape(h, q)
        l = Reshape(i, t)  y = Softmax(l) }"""
    source = read(text, tmp_path, granularity="op")
    assert rows(source) == [("Softmax", ["x"], ["y"])]
    assert sound(source)


def test_an_alias_at_the_end_is_run_with_what_it_renames(tmp_path: Path) -> None:
    text = "(float[2,3] x) => (float[6] y) <int64[1] t = {6}> { a = Relu(x) y = Reshape(a, t) }"
    source = read(text, tmp_path, granularity="op")
    assert rows(source) == [("Relu", ["x"], ["a"])]
    assert [source.network.tensors[t].name for t in source.network.outputs] == ["a"]
    assert loose_nodes(source) == []


def test_outputs_that_are_inputs_aliases_of_one_another_or_constants(tmp_path: Path) -> None:
    text = """(float[2,3] x) => (float[2,3] x, float[2,3] a, float[2,3] b, float[2,3] c, float[4] w) {
        a = Relu(x) b = Identity(a) c = Identity(x) }"""
    source = read(weighted(graph(text), w=(4,)), tmp_path)
    assert [source.network.tensors[t].name for t in source.network.outputs] == ["x", "a"]
    assert sound(source)


def test_inputs_that_are_initializers_or_unused_are_no_tensors(tmp_path: Path) -> None:
    text = "(float[2,3] x, float[3] w, float[n] unused) => (float[2,3] y) { a = Add(x, w) y = Softmax(a) }"
    source = read(weighted(graph(text, ir=3), w=(3,)), tmp_path)
    assert [t.name for t in source.network.tensors] == ["x", "a", "y"]
    assert [op.weight_bytes for op in source.network.operators] == [12, 0]


def test_outer_parts_are_views(tmp_path: Path) -> None:
    text = """(float[4,6] x) => (float[1,6] y, float[3,6] z)
        <int64[1] o = {1}, int64[1] f = {4}, int64[1] a = {0}, int64[2] sizes = {1, 3}> {
        r = Relu(x) b, c = Split<axis=0>(r, sizes) y = Softmax(b) d = Slice(r, o, f, a) z = Softmax(d) }"""
    source = read(text, tmp_path)
    assert rows(source) == [("Relu", ["x"], ["r"]), ("Softmax", ["b"], ["y"]), ("Softmax", ["d"], ["z"])]
    assert views(source) == [("b", "r", 0), ("d", "r", 24)]
    assert sound(source)
    small = read(text, tmp_path, dtype="int8")
    assert views(small) == [("b", "r", 0), ("d", "r", 6)]


def test_a_row_taken_by_index_is_a_view_even_of_an_input(tmp_path: Path) -> None:
    text = "(float[2,3,4] x) => (float[3,4] y) <int64 i = {-1}> { g = Gather<axis=0>(x, i) y = Softmax(g) }"
    source = read(text, tmp_path)
    assert views(source) == [("g", "x", 48)]
    assert sound(source)


def test_channels_of_a_single_image_are_a_view(tmp_path: Path) -> None:
    text = (
        "(float[1,4,5,5] x) => (float[1,2,5,5] y) { a, b = Split<axis=1, num_outputs=2>(x) y = Softmax(b) }"
    )
    assert views(read(text, tmp_path)) == [("b", "x", 200)]


def test_inner_parts_are_read_in_place_by_those_who_can_and_copied_for_the_rest(tmp_path: Path) -> None:
    text = """(float[2,4] x) => (float[2,3] y, float[2,2] z) {
        r = Relu(x) a, b = Split<axis=1, num_outputs=2>(r) y = MatMul(a, w) z = Softmax(b) }"""
    source = read(weighted(graph(text), w=(2, 3)), tmp_path)
    assert rows(source) == [
        ("Relu", ["x"], ["r"]), ("Split", ["r"], ["b"]), ("MatMul", ["r"], ["y"]), ("Softmax", ["b"], ["z"])
    ]  # fmt: skip
    assert views(source) == []
    assert sound(source)


def test_a_permute_is_merged_into_a_reader_that_takes_it(tmp_path: Path) -> None:
    text = """(float[2,3,8,8] x) => (float[2,5] y) <int64[2] t = {2, -1}> {
        a = Transpose<perm=[0,2,3,1]>(x)  f = Reshape(a, t)  y = Gemm(f, w) }"""
    source = read(weighted(graph(text), w=(192, 5)), tmp_path)
    assert rows(source) == [("Gemm", ["x"], ["y"])]
    assert source.network.operators[0].geometry == Geometry("gathered fully_connected", (2, 192), (2, 5))
    assert sound(source)


def test_a_permute_is_an_operator_for_a_reader_that_does_not(tmp_path: Path) -> None:
    text = """(float[2,3,4] x) => (float[2,12] y) <int64[2] t = {2, -1}> {
        a = Transpose<perm=[0,2,1]>(x)  f = Reshape(a, t)  y = Softmax(f) }"""
    source = read(text, tmp_path)
    assert rows(source) == [("Transpose", ["x"], ["a"]), ("Softmax", ["a"], ["y"])]
    assert sound(source)


def test_a_permute_that_is_an_output_is_an_operator(tmp_path: Path) -> None:
    text = "(float[2,3] x) => (float[3,2] y) { a = Relu(x) y = Transpose(a) }"
    assert rows(read(text, tmp_path)) == [("Relu", ["x"], ["a"]), ("Transpose", ["a"], ["y"])]


def test_permutes_that_cancel_out_vanish(tmp_path: Path) -> None:
    text = """(float[2,3,4] x) => (float[2,3,4] y) {
        a = Transpose<perm=[2,0,1]>(x)  b = Transpose<perm=[1,2,0]>(a)  y = Softmax(b) }"""
    source = read(text, tmp_path)
    assert rows(source) == [("Softmax", ["x"], ["y"])]
    assert sound(source)


def test_channel_shuffle_into_convolutions_moves_nothing(tmp_path: Path) -> None:
    text = """(float[1,4,3,3] x) => (float[1,2,3,3] y, float[1,4,3,3] z)
        <int64[5] five = {1,2,2,3,3}, int64[4] four = {1,4,3,3}> {
        r = Relu(x)  a = Reshape(r, five)  b = Transpose<perm=[0,2,1,3,4]>(a)  c = Reshape(b, four)
        d, e = Split<axis=1, num_outputs=2>(c)  y = Conv(d, w)  z = Concat<axis=1>(e, y) }"""
    source = read(weighted(graph(text), w=(2, 2, 1, 1)), tmp_path)
    assert [row[0] for row in rows(source)] == ["Relu", "Conv", "Concat"]
    assert sound(source)


ATTENTION = """(float[2,5,24] x) => (float[2,5,24] y) <int64[5] five = {2,5,3,4,6}, int64[3] out = {2,5,24},
        int64 zero = {0}, int64 one = {1}, int64 two = {2}, float scale = {0.4}> {
    p = MatMul(x, w)  f = Reshape(p, five)  t = Transpose<perm=[2,0,3,1,4]>(f)
    q = Gather<axis=0>(t, zero)  k = Gather<axis=0>(t, one)  v = Gather<axis=0>(t, two)
    ATTEND
    h = Transpose<perm=[0,2,1,3]>(s)  m = Reshape(h, out)  y = MatMul(m, u) }"""


def test_attention_reads_the_one_projection_once(tmp_path: Path) -> None:
    model = graph(ATTENTION.replace("ATTEND", "s = Attention(q, k, v)"), opset=23, ir=11)
    source = read(weighted(model, w=(24, 72), u=(24, 24)), tmp_path)
    assert rows(source) == [("MatMul", ["x"], ["p"]), ("Attention", ["p"], ["s"]), ("MatMul", ["s"], ["y"])]
    assert sound(source)


@pytest.mark.parametrize("granularity", ["op", "fused"])
def test_attention_in_pieces_is_read_as_it_is(tmp_path: Path, granularity: str) -> None:
    pieces = """kt = Transpose<perm=[0,1,3,2]>(k)  g = MatMul(q, kt)  n = Mul(g, scale)  a = Softmax(n)
        s = MatMul(a, v)"""
    model = weighted(graph(ATTENTION.replace("ATTEND", pieces)), w=(24, 72), u=(24, 24))
    source = read(model, tmp_path, granularity=granularity)
    assert rows(source) == [
        row
        for row in [
            ("MatMul", ["x"], ["p"]),
            ("MatMul+Mul", ["p"], ["n"]) if granularity == "fused" else ("MatMul", ["p"], ["g"]),
            None if granularity == "fused" else ("Mul", ["g"], ["n"]),
            ("Softmax", ["n"], ["a"]),
            ("MatMul", ["a", "p"], ["s"]),
            ("MatMul", ["s"], ["y"]),
        ]
        if row is not None
    ]
    assert sound(source)


def test_a_concat_copies_and_so_takes_anything(tmp_path: Path) -> None:
    text = """(float[1,3,2,2] x) => (float[1,5,3] y) <int64[3] t = {1,3,4}> {
        r = Relu(x)  a = Reshape(r, t)  b = Transpose<perm=[0,2,1]>(a)  y = Concat<axis=1>(c, b) }"""
    source = read(weighted(graph(text), c=(1, 1, 3)), tmp_path)
    assert rows(source) == [("Relu", ["x"], ["r"]), ("Concat", ["r"], ["y"])]
    assert source.network.weight_bytes == 12
    assert sound(source)


def test_a_view_and_a_strided_part_of_one_split(tmp_path: Path) -> None:
    text = """(float[3,4] x) => (float[4,3] y, float[4,1] z) <int64[2] sizes = {1, 2}> {
        a = Softmax(x)  t = Transpose(a)  b, c = Split<axis=1>(t, sizes)  y = Concat<axis=1>(c, b)
        z = Softmax(b) }"""
    source = read(text, tmp_path)
    assert rows(source) == [
        ("Softmax", ["x"], ["a"]), ("Concat", ["a"], ["y"]), ("Softmax", ["b"], ["z"])
    ]  # fmt: skip
    assert views(source) == [("b", "a", 0)]
    assert sound(source)


def test_a_dropout_whose_mask_is_read_computes(tmp_path: Path) -> None:
    text = "(float[4] x) => (float[4] y, bool[4] m) { y, m = Dropout(x) }"
    assert rows(read(text, tmp_path)) == [("Dropout", ["x"], ["y", "m"])]


def test_a_cast_to_another_type_computes(tmp_path: Path) -> None:
    text = "(float[4] x) => (int32[4] y) { s = Softmax(x) y = Cast<to=6>(s) }"
    assert rows(read(text, tmp_path)) == [("Softmax+Cast", ["x"], ["y"])]


def test_a_lookup_by_input_reads_the_rows_it_names(tmp_path: Path) -> None:
    source = read(
        weighted(graph("(int64[7] x) => (float[7,4] y) { y = Gather(w, x) }"), w=(100, 4)), tmp_path
    )
    assert rows(source) == [("Gather", ["x"], ["y"])]
    assert source.network.weight_bytes == 7 * 4 * 4
    assert source.network.tensors[0].bytes == 56


def test_a_look_up_of_a_range_is_a_view(tmp_path: Path) -> None:
    """`GatherND` by constant indices one after the other moves nothing."""
    text = """(float[3,4,5] x) => (float[4,5] y, float[3,4,5] z) <int64[4,2] i = {1, 0, 1, 1, 1, 2, 1, 3}> {
        a = Relu(x)  b = GatherND(a, i)  y = Softmax(b)  z = Exp(a) }"""
    source = read(text, tmp_path)
    assert [row[:2] for row in rows(source)] == [("Relu", ["x"]), ("Softmax", ["b"]), ("Exp", ["a"])]
    [view] = source.network.views
    assert (view.offset, source.network.tensors[view.tensor].bytes) == (80, 80)
    assert differing(source) == []
