"""Pinned weights and tensors and state, executed: the second inference runs on what the first one left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onchip
from onchip.base.errors import IllegalPlan, Mismatch
from onchip.plans import State


@pytest.fixture(name="recurrent")
def _recurrent(tmp_path: Path) -> Path:
    """hn = tanh(x W + h U) through one more layer, y = hn V."""
    rng = np.random.default_rng(7)

    def weight(name: str, rows: int, columns: int) -> TensorProto:
        return numpy_helper.from_array(rng.normal(0, 0.4, (rows, columns)).astype(np.float32), name)

    nodes = [
        helper.make_node("MatMul", ["x", "W"], ["xw"]),
        helper.make_node("MatMul", ["h", "U"], ["hu"]),
        helper.make_node("Add", ["xw", "hu"], ["s"]),
        helper.make_node("Tanh", ["s"], ["a"]),
        helper.make_node("MatMul", ["a", "A"], ["b"]),
        helper.make_node("Sigmoid", ["b"], ["hn"]),
        helper.make_node("MatMul", ["hn", "V"], ["y"]),
    ]
    f32 = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "recurrent",
        [helper.make_tensor_value_info(n, f32, [1, k]) for n, k in (("x", 4), ("h", 8))],
        [helper.make_tensor_value_info(n, f32, [1, k]) for n, k in (("y", 3), ("hn", 8))],
        [weight("W", 4, 8), weight("U", 8, 8), weight("A", 8, 8), weight("V", 8, 3)],
    )
    path = tmp_path / "recurrent.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.mark.parametrize("weights", ["streamed", "resident"])
def test_the_state_of_one_inference_is_where_the_next_one_looks(recurrent: Path, weights: str) -> None:
    heavy = next(op.name for op in onchip.load(recurrent).network.operators if op.weight_bytes == 256)
    made = onchip.plan(
        recurrent,
        budget=1024,
        granularity="op",
        weights=weights,
        state=("h=hn",),
        pin=(f"weights:{heavy}", "a"),
    )
    assert made.result.status == "optimal"
    assert made.result.compulsory_bytes == 4 * (4 + 3)
    report = made.run()
    assert report.bit_exact
    assert any("twice" in note for note in report.notes)


def test_a_state_that_moves_is_executed_too(recurrent: Path) -> None:
    # In the fused network the operator before hn reads what lives beside h, in the least budget there is.
    made = onchip.plan(recurrent, budget=100, state=("h=hn@0",), pin=("hn",), order="given")
    assert made.run().bit_exact


def test_a_state_that_ends_elsewhere_is_refused(recurrent: Path) -> None:
    made = onchip.plan(recurrent, budget=200, granularity="op", state=("h=hn@0",))
    elsewhere = replace(made, state=(State("h", "hn", 160),))
    with pytest.raises((IllegalPlan, Mismatch)):
        onchip.api.Plan.of(elsewhere).run(checked=False)
