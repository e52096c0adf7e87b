"""Run turns of a loop side by side: those that may, as many as have room, each with its own copies."""

from __future__ import annotations

from pathlib import Path

import pytest

from onchip.base.errors import Mismatch
from onchip.network.axes import axes_of
from onchip.plans import Leaf, Loop, Nest
from onchip.run.tiled.nests.abreast import Abreast
from onchip.run.tiled.nests.tree import Tree
from run.nested import Alone, model

MLP = """mlp (float[8,8] x) => (float[8,10] y) {
    h = MatMul(x, a)
    g = Relu(h)
    y = MatMul(g, b)
}"""
ROWS, HIDDEN = (("h", 0), ("g", 0), ("y", 0)), (("h", 1), ("g", 1), ("y", 2))
LEAVES = (Leaf("h"), Leaf("g"), Leaf("y"))


@pytest.fixture(scope="module")
def mlp(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    return Alone(model(MLP, tmp_path_factory.mktemp("mlp"), "op", a=(8, 12), b=(12, 10)))


def abreast(alone: Alone, nest: Nest, *, ordered: bool = False) -> Abreast:
    axes = axes_of(alone.network, alone.group())
    assert not isinstance(axes, str)
    [y] = (b for b, buffer in enumerate(axes.buffers) if buffer.name == "y")
    return Abreast(Tree(nest, axes, {y}, ()), axes, 1, ordered=ordered)


def may(alone: Alone, nest: Nest) -> bool:
    found = abreast(alone, nest)
    return found.may[found.tree.loops[0]]


def test_turns_that_read_nothing_of_each_other_may(mlp: Alone) -> None:
    assert may(mlp, Nest((Loop(ROWS, 2, LEAVES),)))
    assert may(mlp, Nest((Loop(HIDDEN, 4, LEAVES),), keep=("y",)))


def test_turns_that_spill_sums_may_not(mlp: Alone) -> None:
    assert not may(mlp, Nest((Loop(HIDDEN, 4, LEAVES),)))


def test_turns_that_read_sums_of_all_may_not(mlp: Alone) -> None:
    """In order this reads sums that are not complete, and is found out."""
    wrong = Nest((Loop((("h", 2), ("g", 0), ("y", 0)), 2, LEAVES),))
    assert not may(mlp, wrong)
    with pytest.raises(Mismatch, match="its partial sums are gone"):
        mlp.run(wrong, {"x": 8 * 8 * 4, "y": 8 * 10 * 4})


def test_an_inner_loop_must_end_with_the_turns_of_the_outer_one(mlp: Alone) -> None:
    assert may(mlp, Nest((Loop(ROWS, 4, (Loop(ROWS, 2, LEAVES),)),)))
    assert not may(mlp, Nest((Loop(ROWS, 3, (Loop(ROWS, 2, LEAVES),)),)))


@pytest.mark.parametrize(("room", "counts"), [(1 << 20, [1, 4, 1]), (3 * 2 * 12, [1, 3, 1, 1]), (1, [1] * 6)])
def test_as_many_run_at_once_as_have_room(
    mlp: Alone, room: int, counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first runs alone, and so does a last one that is smaller."""
    monkeypatch.setattr("onchip.run.tiled.nests.abreast.FEW", 0)
    monkeypatch.setattr("onchip.run.tiled.nests.abreast.ABREAST_BYTES", room)
    found = abreast(mlp, Nest((Loop((("h", 0),), 2, (Leaf("h", ((1, 5),)),)), Leaf("g"), Leaf("y"))))
    inner = next(turns for turns in found.tree.loops if turns.tile == 5)
    found.bytes[inner] = 2 * 12
    parts = list(found.parts(inner, (0, 27)))
    assert [count for _, count in parts] == counts
    assert [span[0] for span, _ in parts] == [0, *(span[1] for span, _ in parts[:-1])]
    assert parts[-1][0][1] == 27


def test_in_order_every_turn_is_by_itself(mlp: Alone) -> None:
    found = abreast(mlp, Nest((Loop(ROWS, 2, LEAVES),)), ordered=True)
    assert [count for _, count in found.parts(found.tree.loops[0], (0, 8))] == [1, 1, 1, 1]


@pytest.mark.parametrize("few", [0, 64])
def test_what_no_turn_has_for_others_is_copied_for_each(
    few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 16 rows fetches the matrix of 8 x 12 anew."""
    monkeypatch.setattr("onchip.run.tiled.nests.abreast.FEW", few)
    alone = Alone(model("one (float[16,8] x) => (float[16,12] h) { h = MatMul(x, a) }", tmp_path, a=(8, 12)))
    nest = Nest((Loop((("h", 0),), 1, (Leaf("h", ((1, 1),)),)),))
    moved = alone.lawful(nest)
    assert moved.weight_bytes == 16 * 8 * 12 * 4
    with pytest.raises(Mismatch, match="bytes of x crossed"):
        alone.run(nest, {"x": 16 * 8 * 4 - 1, "h": 16 * 12 * 4})


@pytest.mark.parametrize("few", [0, 64])
def test_turns_around_rounded_sums_may_not(few: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four parts of each sum wait for the last one: by row in the first turns, and so in all others."""
    monkeypatch.setattr("onchip.run.tiled.nests.abreast.FEW", few)
    text = """rounded (uint8[32,8] x, uint8[8,12] v) => (uint8[32,12] y)
        <float s = {0.05}, float t = {0.3}, uint8 z = {128}> {
        d = DequantizeLinear(x, s, z)  e = DequantizeLinear(v, s, z)
        a = MatMul(d, e)  y = QuantizeLinear(a, t, z) }"""
    alone = Alone(model(text, tmp_path))
    [name] = (op.name for op in alone.network.operators)
    nest = Nest((Loop(((name, 2),), 2, (Loop(((name, 0),), 1, (Leaf(name),)),)),), keep=("y",))
    alone.lawful(nest)
    assert alone.comparison is not None
    assert alone.comparison.bit_exact
