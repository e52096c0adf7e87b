"""Embeddings fetch the rows that they look up, not the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from build import graph, read, save
from stepwise import differing

import onchip
from onchip.plans import Boxes, Nest
from onchip.readers import load
from onchip.run import run
from quantised_models import with_weights

EMBEDDING = """(int64[1,6] i) => (float[1,6,8] y) {
    e = Gather(table, i)  p = Add(e, place)  y = LayerNormalization(p, g) }"""


def embedding(rows: int) -> onnx.ModelProto:
    return with_weights(EMBEDDING, table=(rows, 8), place=(6, 8), g=(8,))


@pytest.mark.parametrize("granularity", ["fused", "op"])
def test_rows_read_count(tmp_path: Path, granularity: str) -> None:
    source = read(embedding(100), tmp_path, granularity=granularity)
    first = source.network.operators[0]
    assert first.weight_bytes == 6 * 8 * 4 * (2 if granularity == "fused" else 1)
    assert differing(source) == []


def test_no_more_than_the_table(tmp_path: Path) -> None:
    """Six look-ups in three rows fetch three rows at most; a box may need some features of all of them."""
    source = read(embedding(3), tmp_path, granularity="op")
    assert source.network.operators[0].weight_bytes == 3 * 8 * 4
    [constant] = source.network.operators[0].reach.weights  # type: ignore[union-attr]
    assert [(side.size, side.axis) for side in constant.sides] == [(3, -1), (8, 1)]


def test_known_indices_and_tables_that_are_computed(tmp_path: Path) -> None:
    """A table that is data is an operand; by constant indices a constant is a smaller constant."""
    source = read("(float[9,8] x, int64[2] i) => (float[2,8] y) { y = Gather(x, i) }", tmp_path)
    assert source.network.weight_bytes == 0
    text = "(float[2,8] x) => (float[2,8] y) <int64[2] i = {0, 2}> { r = Gather(t, i)  y = Add(x, r) }"
    model = with_weights(text, t=(9, 8))
    assert read(model, tmp_path).network.weight_bytes == 2 * 8 * 4


def test_elements_read_count(tmp_path: Path) -> None:
    model = with_weights("(int64[4,8] i) => (float[4,8] y) { y = GatherElements(t, i) }", t=(50, 8))
    assert read(model, tmp_path).network.weight_bytes == 4 * 8 * 4
    model = with_weights("(int64[5,1] i) => (float[5,8] y) { y = GatherND(t, i) }", t=(50, 8))
    assert read(model, tmp_path).network.weight_bytes == 5 * 8 * 4


def test_a_quantised_table(tmp_path: Path) -> None:
    model = graph("""(int64[6] i) => (float[6,8] y) <float s = {0.5}> {
        d = DequantizeLinear(t, s)  y = Gather(d, i) }""")
    table = np.arange(800, dtype=np.int64).reshape(100, 8).astype(np.int8)
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "t"))
    source = read(model, tmp_path)
    assert source.network.weight_bytes == 6 * 8
    assert differing(source) == []


@pytest.mark.parametrize(("nests", "tiles"), [(True, Nest), (False, Boxes)])
def test_tiles_fetch_their_rows(tmp_path: Path, nests: bool, tiles: type[Nest | Boxes]) -> None:
    """At a budget for a part of the result, every part fetches its own rows, and the values are right."""
    path = save(embedding(1000), tmp_path)
    plan = onchip.plan(path, fuse=True, budget=200, nests=nests)
    assert any(isinstance(group.tiling, tiles) for group in plan.groups)
    assert plan.result.weight_bytes == (6 + 6 + 1) * 8 * 4
    report = run(plan, load(path))
    assert report.bit_exact
