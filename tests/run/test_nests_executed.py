"""Groups in nests of loops, executed: values, the bytes that the law says, wrong plans found out."""

from __future__ import annotations

from pathlib import Path

import pytest

from check.nest_plans import plan_of
from onchip.base.errors import IllegalPlan, InputError, Mismatch
from onchip.machines.chip import Chip
from onchip.plans import Alloc, Leaf, Load, Loop, Nest
from onchip.run import run
from run.nested import Alone, model

MLP = """mlp (float[6,8] x) => (float[6,10] y) {
    h = Gemm(x, a, ab)
    g = Relu(h)
    y = Gemm(g, b, bb)
}"""
MLP_WEIGHTS = {"a": (8, 12), "ab": (12,), "b": (12, 10), "bb": (10,)}

# Axes of h: 6 rows, 12 hidden; 8 summed. Of y: 6 rows, 10 columns; 12 summed.
SLICES = (("h", 1), ("y", 2))
UP, DOWN = Leaf("h", ((2, 3), (0, 4))), Leaf("y", ((1, 4), (0, 5)))


@pytest.fixture(autouse=True, params=["one by one", "side by side"])
def turns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run everything twice: few turns run one by one, unless they are made to run side by side."""
    if request.param == "side by side":
        monkeypatch.setattr("onchip.run.tiled.nests.abreast.FEW", 0)
        monkeypatch.setattr("onchip.run.tiled.nests.abreast.WITNESSES", 0)


@pytest.fixture(scope="module")
def mlp(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    return Alone(model(MLP, tmp_path_factory.mktemp("mlp"), **MLP_WEIGHTS))


def test_sums_of_hidden_slices_are_spilled_and_read_back(mlp: Alone) -> None:
    """Three slices: x comes for each, y crosses 2 * 3 - 1 times; a, b and the bias of h once, that of y
    thrice."""
    nest = Nest((Loop(SLICES, 5, (UP, DOWN)),))
    moved = mlp.run(nest, {"x": 3 * 6 * 8 * 4, "y": 5 * 6 * 10 * 4})
    assert moved.weight_bytes == 4 * (8 * 12 + 12 + 12 * 10 + 3 * 10)


def test_sums_that_are_held_cross_once(mlp: Alone) -> None:
    nest = Nest((Loop(SLICES, 5, (UP, DOWN)),), keep=("x", "y", "bb"))
    moved = mlp.run(nest, {"x": 6 * 8 * 4, "y": 6 * 10 * 4})
    assert moved.weight_bytes == 4 * (8 * 12 + 12 + 12 * 10 + 10)


def test_rows_with_all_weights_held(mlp: Alone) -> None:
    nest = Nest((Loop((("h", 0), ("y", 0)), 4, (Leaf("h"), Leaf("y"))),), keep=("a", "b"))
    moved = mlp.run(nest, {"x": 6 * 8 * 4, "y": 6 * 10 * 4})
    assert moved.weight_bytes == 4 * (8 * 12 + 2 * 12 + 12 * 10 + 2 * 10)


def test_a_byte_count_off_by_one_is_found_out(mlp: Alone) -> None:
    nest = Nest((Loop(SLICES, 5, (UP, DOWN)),))
    with pytest.raises(Mismatch, match=r"576 bytes of x crossed, the plan states 575"):
        mlp.run(nest, {"x": 575, "y": 1200})


def test_a_scratch_that_is_a_byte_too_small_is_refused(mlp: Alone) -> None:
    nest = Nest((Loop(SLICES, 5, (UP, DOWN)),))
    crossing = {"x": 576, "y": 1200}
    with pytest.raises(IllegalPlan, match=r"its nest takes (\d+) bytes") as found:
        mlp.run(nest, crossing, scratch=1)
    need = int(str(found.value).split("takes ")[1].split(" ")[0])
    mlp.run(nest, crossing, scratch=need)
    with pytest.raises(IllegalPlan, match=r"its scratch has"):
        mlp.run(nest, crossing, scratch=need - 1)


def test_reading_sums_that_are_not_complete_is_found_out(mlp: Alone) -> None:
    """The loop goes over the sum of h, and y reads h in it."""
    nest = Nest((Loop((("h", 2), ("y", 0)), 4, (Leaf("h"), Leaf("y"))),))
    with pytest.raises((Mismatch, IllegalPlan)):
        mlp.run(nest, {"x": 6 * 8 * 4, "y": 6 * 10 * 4})


def test_a_reader_before_its_maker_is_found_out(mlp: Alone) -> None:
    with pytest.raises(Mismatch, match=r"differ from|not made"):
        mlp.run(Nest((Leaf("y"), Leaf("h"))), {"x": 6 * 8 * 4, "y": 6 * 10 * 4})


def test_a_loop_that_cuts_a_tensor_for_its_reader_alone_is_found_out(mlp: Alone) -> None:
    """Each turn makes six rows of a slice of h, and y reads all columns of two rows."""
    nest = Nest((Loop((("h", 1), ("y", 0)), 2, (Leaf("h"), Leaf("y"))),))
    with pytest.raises(IllegalPlan, match="a loop cuts g, and y reads more of it"):
        mlp.run(nest, {"x": 6 * 8 * 4, "y": 6 * 10 * 4})


@pytest.mark.parametrize(
    ("nest", "said"),
    [
        (Nest((Leaf("h"),)), "does not run y"),
        (Nest((Leaf("h"), Leaf("h"))), "runs h twice"),
        (Nest((Leaf("h"), Leaf("z"))), "runs z twice, or it is not inside"),
        (Nest((Loop((("h", 0),), 2, (Leaf("h"), Leaf("y"))),)), "states no axis of an operator"),
        (Nest((Loop((("h", 7),), 2, (Leaf("h"),)), Leaf("y"))), "h has no axis 7"),
        (Nest((Loop((("h", 0),), 0, (Leaf("h"),)), Leaf("y"))), "by no tile"),
        (Nest((Leaf("h"), Leaf("y", over="x"))), "does not read x"),
        (Nest((Leaf("h"), Leaf("y", over="g"))), "cannot be made in the place of g"),
    ],
)
def test_a_nest_that_cannot_run_is_refused_in_one_line(mlp: Alone, nest: Nest, said: str) -> None:
    with pytest.raises(IllegalPlan, match=said):
        mlp.run(nest, {"x": 6 * 8 * 4, "y": 6 * 10 * 4})


def test_half_precision_is_refused_by_name(tmp_path: Path) -> None:
    text = "half (float16[4,6] x) => (float16[4,6] y) { y = Softmax<axis=-1>(x) }"
    alone = Alone(model(text, tmp_path))
    with pytest.raises(InputError, match="tensor x: cannot be run in tiles: its elements are float16"):
        alone.run(Nest((Leaf("y"),)), {"x": 48, "y": 48})


ROWS = """rows (float[6,8] x, float[6,12] z) => (float[6,10] y) {
    h = MatMul(x, a)
    s = Add(h, z)
    p = Softmax<axis=-1>(s)
    y = MatMul(p, b)
}"""
STREAMED = {"x": 6 * 8 * 4, "z": 6 * 12 * 4, "y": 6 * 10 * 4}


def row_by_row(s: Leaf, p: Leaf) -> Nest:
    over = tuple((name, 0) for name in "hspy")
    return Nest((Loop(over, 2, (Leaf("h", ((2, 1),)), s, p, Leaf("y", ((2, 1),)))),), keep=("a", "b"))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    return Alone(model(ROWS, tmp_path_factory.mktemp("rows"), a=(8, 12), b=(12, 10)))


def test_outputs_in_the_place_of_operands_take_no_room(rows: Alone) -> None:
    """Weights of 864 bytes; two rows of h, s and p are 96 each, of z 96, of y 80."""
    apart, chained = row_by_row(Leaf("s"), Leaf("p")), row_by_row(Leaf("s", over="h"), Leaf("p", over="s"))
    weights = 4 * (8 * 12 + 12 * 10)
    rows.run(apart, STREAMED, scratch=weights + 3 * 96)
    rows.run(chained, STREAMED, scratch=weights + 2 * 96)
    with pytest.raises(IllegalPlan, match="its scratch has"):
        rows.run(apart, STREAMED, scratch=weights + 2 * 96)
    with pytest.raises(IllegalPlan, match="its scratch has"):
        rows.run(chained, STREAMED, scratch=weights + 2 * 96 - 1)


def test_operands_that_lie_whole_do_not_cross(rows: Alone) -> None:
    before = (Load("x", 1 << 20), Load("z", (1 << 20) + 200), Alloc("y", (1 << 20) + 500))
    moved = rows.run(row_by_row(Leaf("s"), Leaf("p")), {}, before=before)
    assert moved.counted_bytes == moved.weight_bytes == 4 * (8 * 12 + 12 * 10)


def test_an_output_lies_over_an_operand_that_it_replaces(tmp_path: Path) -> None:
    text = "over (float[6,8] x, float[6,8] z) => (float[6,8] y) { h = MatMul(x, a)  s = Add(h, z)"
    alone = Alone(model(text + " y = Softmax<axis=-1>(s) }", tmp_path, a=(8, 8)))
    body = (Leaf("h"), Leaf("s"), Leaf("y"))
    nest = Nest((Loop(tuple((name, 0) for name in "hsy"), 2, body),))
    crossing = {"x": 6 * 8 * 4}
    before = (Load("z", 4096), Alloc("y", 4096, over="z"))
    whole = Nest((Leaf("h"), Leaf("s"), Leaf("y", over="s")))  # s lies in the place of y, over z
    apart = Nest((Loop((("h", 0),), 2, (Leaf("h"),)), Loop((("s", 0), ("y", 0)), 4, (Leaf("s"), Leaf("y")))))
    for one in (nest, whole, apart):
        alone.run(one, crossing, before=before, scratch=2048)
    ahead = (Load("z", 4096), Alloc("y", 4096 - 32, over="z", by=32))
    alone.run(nest, crossing, before=ahead, scratch=2048)
    behind = (Load("z", 4096), Alloc("y", 4096 + 32, over="z", by=-32))
    with pytest.raises(Mismatch, match="z, read by s: the output over it was written there before"):
        alone.run(nest, crossing, before=behind, scratch=2048)


def test_a_plan_is_judged_and_executed(tmp_path: Path) -> None:
    source = model(MLP, tmp_path, **MLP_WEIGHTS)
    nest = Nest((Loop(SLICES, 5, (UP, DOWN)),))
    plan = plan_of(source.network, nest, chip=Chip("test", 16))
    report = run(plan, source, seed=1)
    assert report.moved.weights == 4 * (8 * 12 + 12 + 12 * 10 + 3 * 10)
    assert (report.moved.spill, report.moved.reload) == (4 * 6 * 10 * 4, 2 * 6 * 8 * 4)
    [group] = report.tiled
    assert (group.counted_bytes, group.recomputed) == (group.stated_bytes, 0.0)
    whole = plan_of(source.network, nest, whole=("x", "y"))
    assert run(whole, source, seed=1).moved.spill == 0
