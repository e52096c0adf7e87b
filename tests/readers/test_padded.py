"""A `Pad` of zeros in front of convolutions becomes their padding; any other stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from build import save

import onchip
from onchip.readers import load
from onchip.run import run
from quantised_models import with_weights

CONV = "y = Conv<kernel_shape=[3], dilations=[2], pads=[1, 0]>(p, w)"
FOLDED = {
    "causal": f"<int64[6] s = {{0, 0, 3, 0, 0, 0}}> {{ p = Pad(x, s) {CONV} }}",
    "axes": f"<int64[2] s = {{3, 0}}, float z = {{0}}, int64[1] a = {{-1}}> {{ p = Pad(x, s, z, a) {CONV} }}",
    "no padding of its own": "<int64[6] s = {0, 0, 4, 0, 0, 0}> "
    "{ p = Pad(x, s) y = Conv<kernel_shape=[3], dilations=[2]>(p, w) }",
    "two readers": f"<int64[6] s = {{0, 0, 3, 0, 0, 0}}> {{ p = Pad(x, s) {CONV.replace('y =', 'a =')} "
    f"{CONV.replace('y =', 'b =')} y = Add(a, b) }}",
}
KEPT = {
    "values": f"<int64[6] s = {{0, 0, 3, 0, 0, 0}}, float z = {{1}}> {{ p = Pad(x, s, z) {CONV} }}",
    "reflected": f'<int64[6] s = {{0, 0, 3, 0, 0, 0}}> {{ p = Pad<mode="reflect">(x, s) {CONV} }}',
    "cut": f"<int64[6] s = {{0, 0, 4, 0, 0, -1}}> {{ p = Pad(x, s) {CONV} }}",
    "read by another": f"<int64[6] s = {{0, 0, 3, 0, 0, 0}}> {{ p = Pad(x, s) {CONV.replace('y =', 'a =')} "
    "m = ReduceMax<keepdims=1>(p) y = Add(a, m) }",
}


def saved(text: str, folder: Path) -> Path:
    return save(with_weights(f"(float[1,4,20] x) => (float[1,5,20] y) {text}", 18, w=(5, 4, 3)), folder)


@pytest.mark.parametrize("name", [*FOLDED, *KEPT])
def test_zeros_are_those_of_the_convolution(name: str, tmp_path: Path) -> None:
    path = saved((FOLDED | KEPT)[name], tmp_path)
    source = load(path)
    assert (name in KEPT) == any("Pad" in op.type for op in source.network.operators)
    run(onchip.plan(path, fuse=True, budget=400), source)
    feeds = {"x": np.random.default_rng(1).standard_normal((1, 4, 20)).astype(np.float32)}
    [wanted] = ort.InferenceSession(str(path)).run(None, feeds)
    [found] = ort.InferenceSession(source.executable.model.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_pad_stays_where_no_operators_are_merged(tmp_path: Path) -> None:
    network = onchip.load(saved(FOLDED["causal"], tmp_path), granularity="op").network
    assert [op.type for op in network.operators] == ["Pad", "Conv"]


def test_a_padded_output_stays(tmp_path: Path) -> None:
    text = f"(float[1,4,20] x) => (float[1,5,20] y, float[1,4,23] p) {FOLDED['causal']}"
    path = save(onnx.ModelProto.FromString(with_weights(text, 18, w=(5, 4, 3)).SerializeToString()), tmp_path)
    assert any(op.type == "Pad" for op in load(path).network.operators)
