"""Nests along windows, executed: rings, rows made again and fetched anew, every byte as the law says."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from onchip.base.errors import IllegalPlan, Mismatch
from onchip.check.rules import Broken
from onchip.network.axes import axes_of
from onchip.plans import Leaf, Loop, Nest
from run.nested import Alone, model
from run.windowed import windowed_nest

NEW = '<ir_version: 10, opset_import: ["" : 23]> '

MODELS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "convolutions": (
        """convs (float[1,3,9,7] x) => (float[1,4,5,7] y) {
            a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1, b1)  r = Relu(a)
            d = Conv<kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,1], group=6>(r, w2)
            e = Conv<kernel_shape=[1,1]>(d, w3, b3)
            f = Conv<kernel_shape=[5,3], pads=[2,1,2,1]>(e, w4)
            y = Add(f, e)
        }""",
        {
            "w1": (6, 3, 3, 3),
            "b1": (6,),
            "w2": (6, 1, 3, 3),
            "w3": (4, 6, 1, 1),
            "b3": (4,),
            "w4": (4, 4, 5, 3),
        },
    ),
    "pools": (
        """pools (float[2,3,11,8] x) => (float[2,4,5,4] y) {
            a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1)
            m = MaxPool<kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]>(a)
            p = AveragePool<kernel_shape=[2,3], pads=[0,1,0,1]>(m)
            c = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(p)
            y = Conv<kernel_shape=[3,1], pads=[2,0,2,0], dilations=[2,1]>(c, w2, b2)
        }""",
        {"w1": (3, 3, 3, 3), "w2": (4, 3, 3, 1), "b2": (4,)},
    ),
    "down and up": (
        NEW
        + """up (float[1,3,8,6] x) => (float[1,2,8,6] y) <float[4] twice = {1.0, 1.0, 2.0, 2.0}> {
            a = Conv<kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]>(x, w1)
            s = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(a, , twice)
            q = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(s, w2)
            d = Conv<kernel_shape=[2,2], strides=[2,2]>(q, w3)
            t = ConvTranspose<kernel_shape=[4,4], strides=[2,2], pads=[1,1,1,1]>(d, w4, b4)
            y = Sigmoid(t)
        }""",
        {"w1": (4, 3, 3, 3), "w2": (4, 4, 3, 3), "w3": (3, 4, 2, 2), "w4": (3, 2, 4, 4), "b4": (2,)},
    ),
    "three dimensions": (
        """cube (float[1,2,6,5,4] x) => (float[1,3,3,5,4] y) {
            a = Conv<kernel_shape=[3,3,3], pads=[1,1,1,1,1,1]>(x, w1)
            r = Relu(a)
            m = MaxPool<kernel_shape=[2,1,1], strides=[2,1,1]>(r)
            y = Conv<kernel_shape=[3,1,1], pads=[1,0,0,1,0,0]>(m, w2)
        }""",
        {"w1": (3, 2, 3, 3, 3), "w2": (3, 3, 3, 1, 1)},
    ),
}


def drawn(name: str, folder: Path, count: int, seed: int, granularity: str = "op") -> int:
    """Execute random nests of random groups of neighbours; return how many windows slid along."""
    text, weights = MODELS[name]
    alone = Alone(model(text, folder, granularity, **weights))
    network, random, done = alone.network, Random(f"{name} {seed}"), 0
    while done < count:
        first = random.randrange(len(network.order))
        ids = network.order[first : random.randint(first + 1, first + 5)]
        axes = axes_of(network, ids)
        assert not isinstance(axes, str)
        nest = windowed_nest(random, axes, alone.leaving(ids))
        names = [network.operators[v].name for v in ids]
        try:
            law = alone.law(nest, *names)
        except Broken:
            continue
        if not law.layout.windows:
            continue
        alone.lawful(nest, *names)
        done += 1
    return done


@pytest.mark.parametrize("name", MODELS)
def test_a_few_nests_along_windows(name: str, tmp_path: Path) -> None:
    drawn(name, tmp_path, 10, 1)


@pytest.mark.slow
@pytest.mark.parametrize("granularity", ["op", "fused"])
@pytest.mark.parametrize("name", MODELS)
def test_many_nests_along_windows(name: str, granularity: str, tmp_path: Path) -> None:
    drawn(name, tmp_path, 100, 2, granularity)


TWO = """two (float[1,2,8,5] x) => (float[1,3,4,5] y) {
    h = Conv<kernel_shape=[3,1], pads=[1,0,1,0]>(x, a)
    y = Conv<kernel_shape=[3,1], pads=[1,0,1,0], strides=[2,1]>(h, b)
}"""


@pytest.mark.parametrize(
    ("ring", "rows", "made"),
    [(("h", "x"), 3 + 2 + 2 + 1, 8), (("h",), 3 + 4 + 4 + 3, 8), ((), 3 + 5 + 5 + 4, 2 + 3 + 3 + 3)],
)
def test_rows_are_kept_or_come_again(ring: tuple[str, ...], rows: int, made: int, tmp_path: Path) -> None:
    """Without a ring for h a row of it is made again in each turn but the first."""
    alone = Alone(model(TWO, tmp_path, a=(4, 2, 3, 1), b=(3, 4, 3, 1)))
    over = tuple((name, _rows(alone, name)) for name in "hy")
    nest = Nest((Loop(over, 1, (Leaf("h"), Leaf("y")), ("x",), ring),), keep=("h.kernel", "y.kernel"))
    scratch = alone.law(nest).layout.extent
    crossing = {"x": rows * 2 * 5 * 4, "y": 4 * 3 * 5 * 4}
    moved = alone.run(nest, crossing, scratch=scratch)
    assert moved.weight_bytes == 4 * (4 * 2 * 3 + 3 * 4 * 3)
    assert moved.recomputed == pytest.approx((made - 8) * 20 / (made * 20 + 4 * 15))
    with pytest.raises(IllegalPlan, match="its scratch has"):
        alone.run(nest, crossing, scratch=scratch - 1)
    with pytest.raises(Mismatch, match="bytes of x crossed"):
        alone.run(nest, crossing | {"x": crossing["x"] + 4}, scratch=scratch)


def _rows(alone: Alone, name: str) -> int:
    [cut] = [cut for cut in alone.axes().operators if cut.name == name]
    sizes = alone.axes().buffers[cut.writes.buffer].sides
    return cut.writes.axes[len(sizes) - 2]
