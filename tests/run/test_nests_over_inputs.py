"""Nests whose output lies over a whole input, executed: alone, read too late, and in joint plans."""

from __future__ import annotations

from pathlib import Path

import pytest

import onchip
from onchip.base.errors import Mismatch
from onchip.check import check
from onchip.plans import Alloc, Leaf, Load, Loop, Nest
from run.nested import Alone, model

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
