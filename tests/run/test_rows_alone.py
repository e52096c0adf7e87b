"""Rows of an operator that runs as it is: made by its nodes on these rows, as on all of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, parser

import onchip
from onchip.run.tiled.kernels import Kernels
from onchip.run.tiled.rows import rows_of
from run.models import HEADER

MODELS = {
    "heads": """heads (float[1,3,12,8] x) => (float[1,3,12,8] y) {
        q = Conv<kernel_shape=[1,1]>(x, wq)  k0 = Conv<kernel_shape=[1,1]>(x, wk)
        k = Transpose<perm=[0,1,3,2]>(k0)
        s = MatMul(q, k)
        p = Softmax<axis=-1>(s)
        o = MatMul(p, x)
        y = Relu(o)
    }""",
    "halves": """halves (float[1,12,24] x) => (float[1,12,24] y)
    <int64[1] zero = {0}, int64[1] mid = {24}, int64[1] end = {48}, int64[1] axis = {2}> {
        h = MatMul(x, wide)
        a = Slice(h, zero, mid, axis)  b = Slice(h, mid, end, axis)
        g = Sigmoid(a)  m = Mul(g, b)  y = MatMul(m, w)
    }""",
}
WEIGHTS = {"wq": (3, 3, 1, 1), "wk": (3, 3, 1, 1), "w": (24, 24), "wide": (24, 48)}


@pytest.mark.parametrize("name", MODELS)
def test_rows_alone_are_those_of_the_whole(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every band is made both ways; in all there are some that have an operator's rows alone."""
    proto = parser.parse_model(HEADER + MODELS[name])
    for weight, dims in WEIGHTS.items():
        proto.graph.initializer.append(TensorProto(name=weight, dims=dims, data_type=TensorProto.FLOAT))
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    ways = Counter[bool]()
    reached = Kernels.reached

    def both(self: Kernels, chain: Any, *rest: Any) -> Any:
        found = reached(self, chain, *rest)
        alone = self.rows.get(chain.op.id)
        ways[alone is not None] += 1
        self.rows[chain.op.id] = None
        assert np.allclose(found, reached(self, chain, *rest), rtol=1e-5, atol=1e-6)
        self.rows[chain.op.id] = rows_of(self.engine, chain)
        return found

    monkeypatch.setattr(Kernels, "reached", both)
    for budget in (250, 450, 700):
        fused = onchip.fuse(path, "generic", budget, dtype="int8")
        if fused.plan is not None:
            fused.plan.run()
    assert ways[True]
