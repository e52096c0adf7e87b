"""Nests along windows, executed: rings, rows made again and fetched anew, every byte as the law says."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from onchip.base.errors import IllegalPlan, Mismatch
from onchip.check.rules import Broken
from onchip.network.axes import axes_of
from onchip.plans import Leaf, Loop, Nest
from onchip.readers import ReadOptions, load
from quantised_models import float_cnn, quantised
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
    "halves": (
        """c2f (float[1,4,8,6] x) => (float[1,5,8,6] y) <int64[2] parts = {4, 4}> {
            a = Conv<kernel_shape=[1,1]>(x, w1, b1)  s = Sigmoid(a)  h0, h1 = Split<axis=1>(s, parts)
            b = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(h1, w2)  r = Relu(b)  c = Add(r, h1)
            j = Concat<axis=1>(h0, h1, c)
            y = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(j, w3)
        }""",
        {"w1": (8, 4, 1, 1), "b1": (8,), "w2": (4, 4, 3, 3), "w3": (5, 12, 3, 3)},
    ),
    "parts": (
        """parts (float[1,3,9,7] x) => (float[1,5,9,7] y) <int64[3] parts = {2, 5, 3}> {
            a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1)  p, q, r = Split<axis=1>(a, parts)
            d = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=5>(q, w2)  t = Tanh(d)
            c = Concat<axis=1>(r, p)
            y = Mul(t, c)
        }""",
        {"w1": (10, 3, 3, 3), "w2": (5, 1, 3, 3)},
    ),
    "rows": (
        """rows (float[1,1,12,7] x) => (float[1,1,5,5] y)
        <int64[1] two = {2}, int64[1] nine = {9}, int64[1] ax = {2}> {
            a = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w1)  b = Slice(a, two, nine, ax)
            c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(b, w2)  d = Conv<kernel_shape=[3,3]>(b, w3)
            e = MaxPool<kernel_shape=[3,3]>(c)  y = Add(d, e)
        }""",
        {"w1": (1, 1, 3, 3), "w2": (1, 1, 3, 3), "w3": (1, 1, 3, 3)},
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
    "joins, groups and pads": (
        NEW
        + """joins (float[1,4,8,9] x) => (float[1,6,4,5] y, float[1,6,1,1] g)
        <int64[8] around = {0,0,1,2,0,0,1,0}, float[4] twice = {1.0, 1.0, 2.0, 2.0},
         int64[1] zero = {0}, int64[1] nine = {9}, int64[1] three = {3}> {
            a = Conv<kernel_shape=[3,3], pads=[1,1,1,1], group=2>(x, w1, b1)
            s = Conv<kernel_shape=[1,1], strides=[2,2]>(a, w2)
            u = Resize<mode="linear">(s, , twice)
            p = Pad(x, around)
            c = Conv<kernel_shape=[3,3]>(p, w3)
            e = Slice(u, zero, nine, three)
            j = Concat<axis=1>(a, e, c)
            m = LRN<size=3>(j)
            k = Conv<kernel_shape=[1,1], group=2>(m, w4)
            y = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(k)
            g = GlobalAveragePool(k)
        }""",
        {"w1": (4, 2, 3, 3), "b1": (4,), "w2": (3, 4, 1, 1), "w3": (3, 4, 3, 3), "w4": (6, 5, 1, 1)},
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


def drawn(alone: Alone, count: int, seed: str, *, exact: bool = False) -> None:
    """Execute random nests of random groups of neighbours, along windows; `exact` bit for bit."""
    network, random, done = alone.network, Random(seed), 0
    while done < count:
        first = random.randrange(len(network.order))
        ids = network.order[first : random.randint(first + 1, first + 5)]
        axes = axes_of(network, ids)
        if isinstance(axes, str):
            continue
        nest = windowed_nest(random, axes, alone.leaving(ids))
        names = [network.operators[v].name for v in ids]
        try:
            law = alone.law(nest, *names)
        except Broken:
            continue
        if law.layout.windows:
            alone.lawful(nest, *names)
            assert alone.comparison is not None
            assert alone.comparison.bit_exact or not exact
            done += 1


def alone_of(name: str, folder: Path, granularity: str = "op") -> Alone:
    text, weights = MODELS[name]
    return Alone(model(text, folder, granularity, **weights))


@pytest.mark.parametrize("name", MODELS)
def test_a_few_nests_along_windows(name: str, tmp_path: Path) -> None:
    drawn(alone_of(name, tmp_path), 6, name)


@pytest.mark.thorough
def test_turns_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of operators that make nothing in some turns."""
    monkeypatch.setattr("onchip.run.tiled.nests.abreast.FEW", 0)
    monkeypatch.setattr("onchip.run.tiled.nests.abreast.WITNESSES", 1)
    drawn(alone_of("joins, groups and pads", tmp_path), 20, "at once")


@pytest.mark.campaign
@pytest.mark.parametrize("granularity", ["op", "fused"])
@pytest.mark.parametrize("name", MODELS)
def test_many_nests_along_windows(name: str, granularity: str, tmp_path: Path) -> None:
    drawn(alone_of(name, tmp_path, granularity), 40, f"{name} {granularity}")


@pytest.mark.thorough
@pytest.mark.parametrize("operators", [False, True])
def test_whole_numbers_are_equal_bit_for_bit(operators: bool, tmp_path: Path) -> None:
    """Sums that are not complete are kept in 32 bits, and rounded once."""
    path = quantised(float_cnn(), tmp_path, operators=operators, per_channel=operators)
    alone = Alone(load(path, ReadOptions(granularity="fused")))
    drawn(alone, 20, f"{operators}", exact=True)


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
