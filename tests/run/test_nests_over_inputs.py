"""Nests whose output lies over a whole input, executed: alone, read too late, and in joint plans."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import onchip
from onchip.base.errors import Mismatch
from onchip.check import check
from onchip.check.nest_overlap import prove_nest_overlap
from onchip.check.nests import nested
from onchip.check.rules import Broken
from onchip.plans import Alloc, Group, Leaf, Load, Loop, Nest
from run.nested import Alone, model, random_nest

NEW = '<ir_version: 10, opset_import: ["" : 17]> '
BLOCK = """
    {v}n = LayerNormalization<axis=-1>({x}, g, g)
    {v}h = MatMul({v}n, {v}w1)  {v}r = Relu({v}h)
    {v}p = MatMul({v}r, {v}w2)  {v} = Add({v}p, {x})"""
WEIGHTS = {"g": (16,), **{f"{v}w1": (16, 24) for v in "aby"}, **{f"{v}w2": (24, 16) for v in "aby"}}
STREAM = (
    NEW
    + "stream (float[12,16] x) => (float[12,16] y) {"
    + "".join(BLOCK.format(x=x, v=v) for x, v in zip("xab", "aby", strict=True))
    + "}"
)


@pytest.fixture(scope="module")
def block(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    text = NEW + "block (float[12,16] x) => (float[12,16] y) {" + BLOCK.format(x="x", v="y") + "}"
    weights = {"g": (16,), "yw1": (16, 24), "yw2": (24, 16)}
    return Alone(model(text, tmp_path_factory.mktemp("block"), "op", **weights))


def square(folder: Path, then: str) -> Alone:
    """A square stream of which something else is made besides."""
    text = (
        f"square (float[6,6] x) => (float[6,6] y, float[6,6] u) {{ h = MatMul(x, a)  r = Relu(h)  {then} }}"
    )
    return Alone(model(text, folder, "op", a=(6, 6)))


BEFORE = "v = Sigmoid(x)  y = Add(r, x)  u = Softmax<axis=-1>(v)"
BEHIND = "y = Add(r, x)  v = Sigmoid(x)  u = Softmax<axis=-1>(v)"


def leaves(alone: Alone) -> list[Leaf]:
    return [Leaf(op.name) for op in alone.network.operators]


OVER = (Load("x", 1 << 16), Alloc("y", 1 << 16, over="x"))


def test_a_block_lies_over_its_stream(block: Alone) -> None:
    """Whole, and row by row, as the law has it."""
    body = tuple(leaves(block))
    over = tuple((leaf.operator, 0) for leaf in body)
    for nest in (Nest(body), Nest((Loop(over, 5, body),)), Nest((*body[:-1], Loop(over[-1:], 2, body[-1:])))):
        block.run(nest, {}, before=OVER, scratch=1 << 15)


def test_a_stream_that_is_read_too_late_is_found_out(block: Alone) -> None:
    *body, add = leaves(block)
    product = Leaf(add.operator, (), "yp")  # in the place of y, over x: x is gone when it is added
    with pytest.raises(Mismatch, match=f"x, read by {add.operator}: the output over it was written"):
        block.run(Nest((*body, product)), {}, before=OVER, scratch=1 << 15)


def tried(alone: Alone, count: int) -> tuple[int, int]:
    """Execute random nests with y over x; return how many are proved, and how many others are found out."""
    random, network = Random(7), alone.network
    ids = alone.group()
    names = tuple(network.operators[v].name for v in ids)
    x, y = network.tensor_id["x"], network.tensor_id["y"]
    streamed = {network.tensor_id["u"]}
    proved = lost = 0
    for _ in range(count):
        nest = random_nest(random, alone.axes(), alone.leaving(ids))
        try:
            law = nested(network, Group("g", names, 0, tiling=nest), ids, streamed, 1)
        except Broken:
            continue
        crossing = {network.tensors[t].name: n for t, n in law.crossing.items()}
        try:
            prove_nest_overlap(network, "g", law.layout, y, x, 0)
        except Broken:
            with pytest.raises(Mismatch, match="the output over it was written there before"):
                alone.run(nest, crossing, before=OVER, scratch=1 << 15)
            lost += 1
            continue
        alone.run(nest, crossing, before=OVER, scratch=1 << 15)
        proved += 1
    return proved, lost


@pytest.fixture(params=[False, True], ids=["in turn", "side by side"])
def turns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param:
        monkeypatch.setattr("onchip.run.tiled.nests.abreast.FEW", 0)
        monkeypatch.setattr("onchip.run.tiled.nests.abreast.WITNESSES", 1)


@pytest.mark.thorough
@pytest.mark.usefixtures("turns")
def test_what_is_proved_runs_and_all_else_is_found_out(tmp_path: Path) -> None:
    proved, _ = tried(square(tmp_path, BEFORE), 400)
    assert proved > 10
    _, lost = tried(square(tmp_path, BEHIND), 400)
    assert lost > 5


@pytest.mark.usefixtures("turns")
@pytest.mark.parametrize("tile", [1, 2, 5])
def test_columns_of_what_is_written_over_by_rows_are_found_out(tmp_path: Path, tile: int) -> None:
    alone = square(tmp_path, BEFORE)
    h, r, v, y, u = (Leaf(op.name) for op in alone.network.operators)
    u_bytes = {"u": 6 * 6 * 4}
    alone.run(Nest((h, r, Loop(((v.operator, 1), (y.operator, 1)), tile, (v, y)), u)), u_bytes,
              before=OVER, scratch=1 << 15)  # fmt: skip
    askew = Loop(((v.operator, 1), (y.operator, 0)), tile, (v, y))
    with pytest.raises(Mismatch, match="the output over it was written there before"):
        alone.run(Nest((h, r, askew, u)), u_bytes, before=OVER, scratch=1 << 15)


def test_joint_plans_keep_one_stream_on_chip(tmp_path: Path) -> None:
    """A stream of 768 bytes; with its sums apart there would have to be two."""
    source = model(STREAM, tmp_path, **WEIGHTS)
    moved = {}
    for overlap in (True, False):
        plan = onchip.plan(source, budget=1000, fuse=True, overlap=overlap)
        result, report = check(plan), plan.run(source)
        assert report.max_difference < 1e-4
        copied = report.moved
        assert copied.compulsory + copied.traffic + copied.weights == result.dram_bytes
        moved[overlap] = result.dram_bytes
        over = [step for step in plan.program if isinstance(step, Alloc) and step.over is not None]
        assert bool(over) is overlap
    assert moved[True] < moved[False]
