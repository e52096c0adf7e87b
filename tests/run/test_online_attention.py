"""An attention whose keys come in parts, executed: its sums are rescaled on the way."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest
from nested import Alone, model, random_nest

import onchip
from onchip.base.errors import IllegalPlan
from onchip.check import check, layout_of
from onchip.check.rules import Broken
from onchip.machines.chip import Chip
from onchip.planners.nests import best_nest
from onchip.plans import Leaf, Loop, Nest
from onchip.run.tiled.nests.kernels import Source
from onchip.run.tiled.nests.online import OnlineKernel
from run.models import HEADER

SHAPES = {
    "heads": "(float[1,2,8,4] q, float[1,2,12,4] k, float[1,2,12,6] v) => (float[1,2,8,6] y) "
    "{ y = Attention(q,k,v) }",
    "a mask": "(float[2,2,8,4] q, float[2,2,12,4] k, float[2,2,12,6] v, float[8,12] m) => (float[2,2,8,6] y) "
    "{ y = Attention<scale=0.3>(q,k,v,m) }",
    "tokens": "(float[1,8,12] q, float[1,16,12] k, float[1,16,24] v) => (float[1,8,24] y) "
    "{ y = Attention<q_num_heads=3, kv_num_heads=3>(q,k,v) }",
    "keys that are turned": "(float[1,2,8,4] q, float[1,12,2,4] x, float[1,2,12,6] v) => (float[1,2,8,6] y) "
    "{ k = Transpose<perm=[0,2,1,3]>(x)  y = Attention(q,k,v) }",
}


def alone_of(name: str, folder: Path) -> Alone:
    return Alone(model(HEADER.replace("17", "23") + f"online {SHAPES[name]}", folder))


def test_what_the_reader_says_of_it(tmp_path: Path) -> None:
    """Keys are a sum that carries the highest score and the sum of weights of each row."""
    [cut] = alone_of("heads", tmp_path).axes().operators
    assert cut.axes == (2, 8, 6, 12)
    assert list(cut.sums) == [3]
    assert (cut.carries, cut.across, cut.together) == (2, {2}, {2})


@pytest.mark.parametrize("change", ["<is_causal=1>", "<softcap=2.0>"])
def test_others_need_all_keys(tmp_path: Path, change: str) -> None:
    text = SHAPES["heads"].replace("Attention(", f"Attention{change}(")
    [op] = model(HEADER.replace("17", "23") + f"online {text}", tmp_path).network.operators
    assert op.reach is not None
    assert (op.reach.sums, op.reach.carries) == ((), 0)


@pytest.mark.thorough
@pytest.mark.parametrize("name", SHAPES)
def test_random_nests_of_keys(name: str, tmp_path: Path) -> None:
    """Bytes as the law says, in a scratch of just that size; values as of all keys at once."""
    alone, random, cut = alone_of(name, tmp_path), Random(name), 0
    [axes] = alone.axes().operators
    while cut < 12:
        nest = random_nest(random, alone.axes(), frozenset({"y"}))
        alone.accumulator = random.choice((None, 8))
        with suppress(Broken):  # some would let sums cross
            law = alone.law(nest)
            alone.lawful(nest)
            cut += any(place.carried for place in law.layout.accumulators)
    assert alone.comparison is not None
    assert alone.comparison.relative_difference < 1e-4
    assert axes.carries


@pytest.mark.thorough
def test_the_best_nests_of_little_room(tmp_path: Path) -> None:
    alone = alone_of("heads", tmp_path)
    axes, parts = alone.axes(), 0
    leaving = [axes.operators[0].writes.buffer]
    before = None
    for room in range(24, 1200, 56):
        best = best_nest(axes, leaving, (), room)
        if best is None:
            continue
        assert alone.lawful(best.nest).counted_bytes == best.bytes
        parts += any(place.carried for place in alone.law(best.nest).layout.accumulators)
        assert before is None or best.bytes <= before
        before = best.bytes
    assert parts > 2


def test_no_sum_crosses_with_its_state(tmp_path: Path) -> None:
    alone = alone_of("heads", tmp_path)
    nest = Nest((Loop((("y", 3),), 5, (Leaf("y"),)),))
    with pytest.raises(Broken, match="carry a state that stays on chip"):
        alone.law(nest)
    with pytest.raises(IllegalPlan, match="would cross with their state"):
        alone.run(nest, {"q": 768, "k": 384, "v": 576, "y": 1920})


def test_parts_in_any_division_make_the_same(tmp_path: Path) -> None:
    """Three parts, the second one masked for all rows: no row has a weight in it."""
    alone = alone_of("a mask", tmp_path)
    op, [cut] = alone.network.operators[0], alone.axes().operators
    run = alone.engine
    uses = [run.executable.value[t] for t in op.inputs]
    buffers = alone.axes().buffers
    sources = [
        Source(name, (), buffers[use.buffer], use, True) for name, use in zip(uses, cut.reads, strict=True)
    ]
    kernel = OnlineKernel(run, op, cut, sources)
    rng = np.random.default_rng(1)
    values = [rng.normal(size=buffers[use.buffer].sides).astype(np.float32) for use in cut.reads]
    values[3][:, 4:9] = -np.inf
    whole = kernel.finished(kernel.part(values.__getitem__))

    def keys(i: int, low: int, high: int) -> np.ndarray:  # type: ignore[type-arg]
        at = [slice(low, high) if axis == cut.sums[0] else slice(None) for axis in cut.reads[i].axes]
        return values[i][tuple(at)]

    first, second, third = (
        kernel.part(lambda i, low=low, high=high: keys(i, low, high))
        for low, high in ((0, 4), (4, 9), (9, 12))
    )
    found = kernel.finished(kernel.merged(kernel.merged(first, second), third))
    assert np.abs(found - whole).max() < 1e-5
    assert np.isfinite(found).all()


@pytest.mark.thorough
@pytest.mark.parametrize(("accumulator", "budget", "parts"), [(None, 1500, 1), (8, 1500, 1), (8, 3000, 0)])
def test_joint_plans_take_keys_in_parts(
    accumulator: int | None, budget: int, parts: int, tmp_path: Path
) -> None:
    """In little room; the plan checks, and its execution moves what it says."""
    text = """layer (float[1,40,16] x, float[1,40,16] z) => (float[1,40,16] y) {
        q = MatMul(x, a) k = MatMul(z, b) v = MatMul(z, c)
        o = Attention<q_num_heads=2, kv_num_heads=2>(q, k, v) y = MatMul(o, d) }"""
    source = model(HEADER.replace("17", "23") + text, tmp_path, **dict.fromkeys("abcd", (16, 16)))
    chip = Chip("test", 4, "float32", accumulator_bytes=accumulator)
    plan = onchip.plan(source, chip, budget, fuse=True)
    check(plan)
    found = [
        place
        for group in plan.groups
        if isinstance(group.tiling, Nest)
        for place in layout_of(plan.network, group, alignment=4, accumulator=accumulator).accumulators
        if place.carried
    ]
    assert len(found) >= parts
    report = plan.run(source)
    moved = report.moved
    assert moved.compulsory + moved.traffic + moved.weights == plan.result.dram_bytes
    assert report.relative_difference < 1e-4
