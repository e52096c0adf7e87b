"""`cache`: an output that is an input with more behind it is written as far as it is new."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from build import graph, read, save
from stepwise import differing

import onchip
from onchip.base.errors import ModelError, UsageError
from onchip.network.json import wire_network

STEP = """(float[1,2,1,4] q, float[1,2,1,4] k, float[1,2,7,4] past_k, float[1,2,1,4] v, float[1,2,7,4] past_v)
    => (float[1,2,1,4] y, float[1,2,8,4] now_k, float[1,2,8,4] now_v) {
    k1 = Relu(k)  v1 = Relu(v)
    now_k = Concat <axis = 2> (past_k, k1)  all = Concat <axis = 2> (past_v, v1)  now_v = Identity (all)
    t = Transpose <perm = [0, 1, 3, 2]> (now_k)  s = MatMul (q, t)  p = Softmax (s)
    y = MatMul (p, now_v) }"""


def test_only_what_is_new_leaves(tmp_path: Path) -> None:
    whole, grown = read(STEP, tmp_path), read(STEP, tmp_path, cache="past_*=now_*")
    assert {grown.network.tensors[t].name for t in grown.network.outputs} == {"y", "k1", "v1"}
    plans = [onchip.plan(source, budget=4096) for source in (whole, grown)]
    apart = [plan.result.compulsory_bytes for plan in plans]
    assert apart[0] - apart[1] == 2 * 2 * 7 * 4 * 4
    assert plans[1].result.traffic_bytes == 0
    assert differing(grown) == []


def test_plans_say_how_their_model_is_read(tmp_path: Path) -> None:
    path = save(graph(STEP), tmp_path)
    made = onchip.plan(path, budget=4096, cache="past_k=now_k")
    assert made.options["cache"] == "past_k=now_k"
    assert made.run(onchip.load(path, cache="past_k=now_k")).bit_exact


def test_several_new_pieces_leave_as_one(tmp_path: Path) -> None:
    text = """(float[1,3] a, float[1,2] b, float[1,1] c) => (float[1,6] y, float[1,3] z) {
        d = Relu(b)  y = Concat <axis = 1> (a, d, c)  z = Relu(a) }"""
    source = read(text, tmp_path, cache="a=y")
    sizes = sorted(source.network.tensors[t].bytes for t in source.network.outputs)
    assert sizes == [12, 12]
    assert differing(source) == []


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("past_k=now_v", "no Concat makes it so"),
        ("past_k=y", "no Concat makes it so"),
        ("past_k", "is not INPUT=OUTPUT"),
        ("past_k=", "is not INPUT=OUTPUT"),
        ("old_*=now_*", "is not INPUT=OUTPUT"),
        ("past_*=then_*", "there is an input past_., and no output then_."),
        ("past_*=now_*,past_k=now_k", "now_k is in two caches"),
        ("k=now_k", "no Concat makes it so"),
    ],
)
def test_pairs_that_are_none(tmp_path: Path, pairs: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(STEP, tmp_path, cache=pairs)


def test_a_circle_of_identities_ends(tmp_path: Path) -> None:
    text = "(float[1,2] a) => (float[1,2] y) { x = Identity (y)  y = Identity (x) }"
    with pytest.raises(UsageError, match="no Concat makes it so"):
        read(text, tmp_path, cache="a=y")


def test_caches_are_for_onnx_and_given_as_text(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no text like"):
        read(STEP, tmp_path, cache=("a=b",))
    path = tmp_path / "net.json"
    path.write_text(json.dumps(wire_network(read(STEP, tmp_path).network)))
    with pytest.raises(ModelError, match=r"is read as it is; --cache is for \.onnx"):
        onchip.load(path, cache="a=b")
