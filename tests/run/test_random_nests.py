"""Random groups in random nests, executed: every value as in onnxruntime, every byte as the law says."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from onchip.check.rules import Broken
from onchip.network.axes import axes_of
from onchip.planners.nests import best_nest
from onchip.readers import ReadOptions, load
from quantised_models import quantised, with_weights
from run.nested import Alone, in_place, model, random_nest

NEW = '<ir_version: 10, opset_import: ["" : 23]> '

MODELS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "attention by heads": (
        """att (float[2,7,24] x, float[2,1,1,7] mask) => (float[2,7,24] y)
        <int64[4] apart = {2,7,3,8}, int64[3] back = {2,7,24}, float scale = {0.35}> {
            q0 = MatMul(x, wq)  q1 = Add(q0, bq)  q2 = Reshape(q1, apart)
            q = Transpose<perm=[0,2,1,3]>(q2)
            k0 = MatMul(x, wk)  k2 = Reshape(k0, apart)  k = Transpose<perm=[0,2,3,1]>(k2)
            v0 = MatMul(x, wv)  v2 = Reshape(v0, apart)  v = Transpose<perm=[0,2,1,3]>(v2)
            s0 = MatMul(q, k)  s1 = Mul(s0, scale)  s = Add(s1, mask)
            p = Softmax<axis=-1>(s)
            o = MatMul(p, v)  o1 = Transpose<perm=[0,2,1,3]>(o)  o2 = Reshape(o1, back)
            z = MatMul(o2, wo)
            r = Add(z, x)
            n = LayerNormalization<axis=-1>(r, g, b)
            y = Relu(n)
        }""",
        {**dict.fromkeys(("wq", "wk", "wv", "wo"), (24, 24)), **dict.fromkeys(("bq", "g", "b"), (24,))},
    ),
    "queries, keys and values in one": (
        """split (float[1,7,24] x) => (float[1,7,24] y)
        <int64[3] parts={24,24,24}, int64[4] hs={1,7,3,8}, int64[3] back={1,7,24}> {
            a = MatMul(x, w)  ab = Add(a, bb)
            q0, k0, v0 = Split<axis=2>(ab, parts)
            q1 = Reshape(q0, hs)  q = Transpose<perm=[0,2,1,3]>(q1)
            k1 = Reshape(k0, hs)  k = Transpose<perm=[0,2,3,1]>(k1)
            v1 = Reshape(v0, hs)  v = Transpose<perm=[0,2,1,3]>(v1)
            s = MatMul(q, k)
            p = Softmax<axis=-1>(s)
            o = MatMul(p, v)  o1 = Transpose<perm=[0,2,1,3]>(o)  o2 = Reshape(o1, back)
            y = MatMul(o2, wo)
        }""",
        {"w": (24, 72), "bb": (72,), "wo": (24, 24)},
    ),
    "queries, keys and values outermost": (
        """qkv (float[1,6,8] x) => (float[1,6,8] y)
        <int64[5] apart={1,6,3,2,4}, int64[1] z={0}, int64[3] parts={1,1,1}, int64[3] back={1,6,8}> {
            a = MatMul(x, w)  b = Reshape(a, apart)  c = Transpose<perm=[2,0,3,1,4]>(b)
            q0, k0, v0 = Split<axis=0>(c, parts)
            q = Squeeze(q0, z)  k1 = Squeeze(k0, z)  v = Squeeze(v0, z)  k = Transpose<perm=[0,1,3,2]>(k1)
            s = MatMul(q, k)
            p = Softmax<axis=-1>(s)
            o = MatMul(p, v)  o1 = Transpose<perm=[0,2,1,3]>(o)  o2 = Reshape(o1, back)
            y = MatMul(o2, wo)
        }""",
        {"w": (8, 24), "wo": (8, 8)},
    ),
    "gates of several sizes": (
        """gates (float[6,8] x) => (float[7,4] y) <int64[3] parts={7,3,7}> {
            u = MatMul(w, x)  a, b, c = Split<axis=0>(u, parts)
            s = Sigmoid(a)  g = Mul(s, c)  h = MatMul(g, v)  r = MatMul(k, b)  t = MatMul(r, v)
            y = Add(h, t)
        }""",
        {"w": (17, 6), "v": (8, 4), "k": (7, 3)},
    ),
    "shared keys": (
        """gqa (float[1,6,32] x) => (float[1,6,32] y)
        <int64[4] qs={1,6,4,8}, int64[4] ks={1,6,2,8}, int64[1] two={2}, int64[5] ex={1,2,2,6,8},
         int64[4] hs={1,4,6,8}, int64[3] back={1,6,32}> {
            q0 = MatMul(x, wq)  q1 = Reshape(q0, qs)  q = Transpose<perm=[0,2,1,3]>(q1)
            k0 = MatMul(x, wk)  k1 = Reshape(k0, ks)  k2 = Transpose<perm=[0,2,1,3]>(k1)
            k3 = Unsqueeze(k2, two)  k4 = Expand(k3, ex)  k5 = Reshape(k4, hs)
            k = Transpose<perm=[0,1,3,2]>(k5)
            v0 = MatMul(x, wv)  v1 = Reshape(v0, ks)  v2 = Transpose<perm=[0,2,1,3]>(v1)
            v3 = Unsqueeze(v2, two)  v4 = Expand(v3, ex)  v = Reshape(v4, hs)
            s = MatMul(q, k)
            p = Softmax<axis=-1>(s)
            o = MatMul(p, v)  o1 = Transpose<perm=[0,2,1,3]>(o)  o2 = Reshape(o1, back)
            y = MatMul(o2, wo)
        }""",
        {"wq": (32, 32), "wk": (32, 16), "wv": (32, 16), "wo": (32, 32)},
    ),
    "a norm in parts and a gated product": (
        """rms (float[5,16] x) => (float[5,16] y) <float two={2.0}, float eps={0.00001}> {
            a = Pow(x, two)  m = ReduceMean<axes=[-1]>(a)  e = Add(m, eps)  r = Sqrt(e)  d = Div(x, r)
            n = Mul(d, g)
            u = MatMul(n, w1)  v = MatMul(n, w3)
            si = Sigmoid(u)  sw = Mul(u, si)  h = Mul(sw, v)
            z = MatMul(h, w2)  y = Add(z, x)
        }""",
        {"g": (16,), "w1": (16, 24), "w3": (16, 24), "w2": (24, 16)},
    ),
    "a function in parts behind a product": (
        """gelu (float[2,5,8] x) => (float[2,5,8] y) <float r={1.4142}, float one={1.0}, float half={0.5}> {
            u = MatMul(x, w1)  v = Add(u, b1)
            d = Div(v, r)  e = Erf(d)  f = Add(e, one)  g = Mul(v, f)  h = Mul(g, half)
            z = MatMul(h, w2)  zb = Add(b2, z)  y = Add(zb, x)
        }""",
        {"w1": (8, 20), "b1": (20,), "w2": (20, 8), "b2": (8,)},
    ),
    "positions turned into heads": (
        """rope (float[1,6,32] x) => (float[1,4,6,6] y)
        <int64[4] qs={1,6,4,8}, int64[1] z0={0}, int64[1] z4={4}, int64[1] z8={8}, int64[1] ax={3}> {
            q0 = MatMul(x, wq)  q1 = Reshape(q0, qs)  q = Transpose<perm=[0,2,1,3]>(q1)
            c1 = Mul(q, cs)
            a = Slice(q, z0, z4, ax)  b = Slice(q, z4, z8, ax)  nb = Neg(b)  rot = Concat<axis=-1>(nb, a)
            c2 = Mul(rot, sn)  qr = Add(c1, c2)
            k = Transpose<perm=[0,1,3,2]>(qr)
            y = MatMul(qr, k)
        }""",
        {"wq": (32, 32), "cs": (1, 1, 6, 8), "sn": (1, 1, 6, 8)},
    ),
    "masks and broadcasts": (
        """where (float[2,3,5,6] x, bool[2,1,5,6] m, float[6] t) => (float[2,3,5,6] y) <float low={-1e3}> {
            a = Where(m, x, low)  s = Softmax<axis=-1>(a)  u = Mul(s, t)  y = Mul(u, c)
        }""",
        {"c": (3, 1, 1)},
    ),
    "products of all sorts": (
        """gm (float[6,8] x, float[6,12] m) => (float[12,5] y) {
            h = Gemm<transB=1, alpha=0.5, beta=2.0>(x, a, m)  g = Tanh(h)
            t = Transpose(g)
            y = Gemm(t, b, bb)
        }""",
        {"a": (12, 8), "b": (6, 5), "bb": (5,)},
    ),
    "attention in one node": (
        NEW
        + """one (float[2,4,5,6] q, float[2,4,7,6] k, float[2,4,7,8] v, float[1,1,5,7] m)
        => (float[2,4,5,8] y) { o = Attention(q, k, v, m)  y = Relu(o) }""",
        {},
    ),
    "a rotation": (
        NEW
        + """turn (float[1,4,5,8] q, float[1,5,4] c, float[1,5,4] s, float[3,8,6] z) => (float[4,5,6] y)
        <int64[3] flat = {4,5,8}, int64[3] r = {1,5,1}> {
            t = RotaryEmbedding(q, c, s)  f = Reshape(t, flat)
            y = Einsum<equation="hij,kjl->hil">(f, z)
        }""",
        {},
    ),
    "norms by channel and by row": (
        NEW
        + """norms (float[2,6,3,4] x) => (float[2,6,3,5] y) {
            a = InstanceNormalization(x, g, b)  c = Sigmoid(a)
            n = RMSNormalization(c, s)  y = MatMul(n, w)
        }""",
        {"g": (6,), "b": (6,), "s": (4,), "w": (4, 5)},
    ),
    "a convolution of a line": (
        NEW
        + """line (float[1,6,9] x, float[1,1,5] z) => (float[1,9,5] y) <int64[3] times = {1,9,1}> {
            a = Conv<kernel_shape=[3], pads=[1,1]>(x, w, b)  g = Gelu(a)
            t = Transpose<perm=[0,2,1]>(g)
            r = Tile(z, times)  y = Mul(t, r)
        }""",
        {"w": (5, 6, 3), "b": (5,)},
    ),
    "a cache": (
        """cache (float[1,4,3,8] x, float[1,4,1,8] z) => (float[1,4,4,5] y) {
            c = Concat<axis=2>(x, z)  r = Sigmoid(c)  y = MatMul(r, w)
        }""",
        {"w": (8, 5)},
    ),
}


def drawn(name: str, folder: Path, count: int, seed: int) -> int:
    """Execute random nests of random groups of neighbours; return how many there were."""
    text, weights = MODELS[name]
    alone = Alone(model(text, folder, **weights))
    network, random, done = alone.network, Random(f"{name} {seed}"), 0
    for _ in range(count):
        first = random.randrange(len(network.order))
        ids = network.order[first : random.randint(first + 1, first + 5)]
        axes = axes_of(network, ids)
        if isinstance(axes, str):
            continue
        nest = random_nest(random, axes, alone.leaving(ids))
        alone.accumulator = random.choice((None, 8))
        names = [network.operators[v].name for v in ids]
        if alone.slides_twice(nest, *names):
            continue
        with suppress(Broken):  # not every output may lie there
            alone.law(denser := in_place(random, axes, nest), *names)
            nest = denser
        alone.lawful(nest, *names)
        done += 1
    return done


@pytest.mark.parametrize("name", MODELS)
def test_a_few_nests(name: str, tmp_path: Path) -> None:
    assert drawn(name, tmp_path, 8, 1)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["a norm in parts and a gated product", "masks and broadcasts"])
def test_turns_side_by_side(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one by one, where few are enough for that."""
    monkeypatch.setattr("onchip.run.tiled.nests.abreast.FEW", 0)
    monkeypatch.setattr("onchip.run.tiled.nests.abreast.WITNESSES", 1)
    assert drawn(name, tmp_path, 12, 5)


@pytest.mark.campaign
@pytest.mark.parametrize("name", MODELS)
def test_many_nests(name: str, tmp_path: Path) -> None:
    assert drawn(name, tmp_path, 60, 2) > 20


@pytest.mark.slow
def test_all_of_a_network_in_one_nest(tmp_path: Path) -> None:
    text, weights = MODELS["attention by heads"]
    alone = Alone(model(text, tmp_path, **weights))
    axes, random = alone.axes(), Random(3)
    for _ in range(8):
        alone.lawful(random_nest(random, axes, frozenset({"y"})))


@pytest.mark.slow
def test_quantised_groups(tmp_path: Path) -> None:
    """Sums of whole numbers that are not complete are wider than the tensor."""
    text, weights = MODELS["attention by heads"]
    path = quantised(with_weights(text.partition(" ")[2], 17, **weights), tmp_path)
    alone = Alone(load(path, ReadOptions(granularity="fused")))
    network, random = alone.network, Random(4)
    for _ in range(40):
        first = random.randrange(len(network.order))
        ids = network.order[first : random.randint(first + 1, first + 4)]
        axes = axes_of(network, ids)
        assert not isinstance(axes, str)
        nest = random_nest(random, axes, alone.leaving(ids))
        alone.accumulator = random.choice((None, 2, 4))
        alone.lawful(nest, *(network.operators[v].name for v in ids))
        assert alone.comparison is not None
        assert alone.comparison.bit_exact


def found_and_run(name: str, folder: Path, count: int, seed: int) -> int:
    """Execute the best nests of random groups in random rooms; return how many there were."""
    text, weights = MODELS[name]
    alone = Alone(model(text, folder, **weights))
    network, random, done = alone.network, Random(f"{name} {seed}"), 0
    for _ in range(count):
        first = random.randrange(len(network.order))
        ids = network.order[first : random.randint(first + 1, first + 3)]
        axes = axes_of(network, ids)
        if isinstance(axes, str):
            continue
        names = alone.leaving(ids)
        leaving = [b for b, x in enumerate(axes.buffers) if x.maker is not None and x.model_name in names]
        room = random.randint(1, sum(buffer.bytes for buffer in axes.buffers))
        alone.accumulator = random.choice((None, 5, 8))
        best = best_nest(axes, leaving, (), room, spine=2, accumulator=alone.accumulator)
        if best is None:
            continue
        operators = [network.operators[v].name for v in ids]
        moved = alone.lawful(best.nest, *operators)
        assert moved.counted_bytes == best.bytes
        done += 1
    return done


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_best_nests_run(name: str, tmp_path: Path) -> None:
    assert found_and_run(name, tmp_path, 6, 1)
