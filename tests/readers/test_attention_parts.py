"""`attention=parts`: the same values as the whole operator, in operators that plans can tell apart."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from build import read, save
from onnx import TensorProto, helper

import onchip
from onchip.base.errors import ModelError, UsageError
from onchip.readers import ReadOptions, load
from onchip.readers.attention_parts import with_attention_parts

FOUR = {"q": (2, 4, 5, 8), "k": (2, 4, 7, 8), "v": (2, 4, 7, 6)}
SAME = {"q": (1, 4, 6, 8), "k": (1, 4, 6, 8), "v": (1, 4, 6, 8)}
SHARED = {"q": (2, 4, 5, 8), "k": (2, 2, 7, 8), "v": (2, 2, 7, 6)}
THREE = {"q": (2, 5, 32), "k": (2, 7, 32), "v": (2, 7, 24)}

CASES: dict[str, tuple[dict[str, tuple[int, ...]], dict[str, object]]] = {
    "heads in front": (FOUR, {}),
    "scaled": (FOUR, {"scale": 0.3}),
    "causal": (SAME, {"is_causal": 1}),
    "shared keys": (SHARED, {}),
    "packed heads": (THREE, {"q_num_heads": 4, "kv_num_heads": 4}),
    "bias": ({**FOUR, "m": (2, 1, 5, 7)}, {}),
    "bias of few axes": ({**SHARED, "m": (5, 7)}, {}),
    "mask": ({**FOUR, "allowed": (5, 7)}, {}),
}


def attention(shapes: dict[str, tuple[int, ...]], settings: dict[str, object]) -> onnx.ModelProto:
    """The operator between two that compute, so that it may merge with neither."""
    inputs, nodes, operands = [], [], []
    for name, shape in shapes.items():
        inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        if name == "allowed":
            nodes.append(helper.make_node("Greater", [name, "zero"], [f"{name}1"]))
        else:
            nodes.append(helper.make_node("Tanh", [name], [f"{name}1"], name=f"{name}1"))
        operands.append(f"{name}1")
    nodes.append(helper.make_node("Attention", operands, ["a"], name="att", **settings))
    nodes.append(helper.make_node("Tanh", ["a"], ["y"], name="last"))
    width = shapes["v"][-1]
    out = (*shapes["q"][:-1], width)
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
        [helper.make_tensor("zero", TensorProto.FLOAT, [], [-1.0])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def run(content: bytes, shapes: dict[str, tuple[int, ...]]) -> np.ndarray:
    settings = onnxruntime.SessionOptions()
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    rng = np.random.default_rng(0)
    given = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return np.asarray(onnxruntime.InferenceSession(content, settings).run(None, given)[0])


@pytest.mark.parametrize("name", CASES)
def test_parts_compute_what_the_whole_does(name: str, tmp_path: Path) -> None:
    shapes, settings = CASES[name]
    model = attention(shapes, settings)
    content = model.SerializeToString()
    parted = with_attention_parts(content, ReadOptions(), where="net", folder=None, resize=None)
    assert not any(node.op_type == "Attention" for node in onnx.load_model_from_string(parted).graph.node)
    np.testing.assert_allclose(run(parted, shapes), run(content, shapes), atol=1e-5)
    source = read(model, tmp_path, attention="parts")
    kinds = [kind for op in source.network.operators for kind in op.type.split("+")]
    assert kinds.count("MatMul") == 2
    assert kinds.count("Softmax") == 1
    assert onchip.plan(source, budget="MP").run().bit_exact
    whole = read(model, tmp_path)
    assert [op.type for op in whole.network.operators if "Attention" in op.type] == ["Attention+Tanh"]


def test_scores_take_memory_in_parts_only() -> None:
    whole, parts = (load("zoo:vit_b_16", ReadOptions(attention=kind)).network for kind in ("whole", "parts"))  # type: ignore[arg-type]
    scores = 12 * 197 * 197
    assert scores not in {t.bytes for t in whole.tensors}
    assert [t.bytes for t in parts.tensors].count(scores) == 2 * 12  # before and after the softmax
    assert parts.weight_bytes == whole.weight_bytes
    assert parts.sha256 == whole.sha256


def test_an_attention_that_hands_out_more_stays_whole(tmp_path: Path) -> None:
    model = attention(FOUR, {"softcap": 2.0})
    assert "Attention+Tanh" in [op.type for op in read(model, tmp_path, attention="parts").network.operators]


def test_refusals(tmp_path: Path) -> None:
    model = attention(FOUR, {})
    for axis in model.graph.input[0].type.tensor_type.shape.dim:
        axis.dim_param = "n"
    with pytest.raises(ModelError, match="input q: dimension 0 is n and has no value"):
        read(model, tmp_path, attention="parts")
    with pytest.raises(
        ModelError, match=r"net.onnx: node att \(Attention\): cannot be taken apart: 2 heads share 4"
    ):
        read(model, tmp_path, attention="parts", dims="n=2")
    with pytest.raises(UsageError, match="neither whole nor parts"):
        read(model, tmp_path, attention="half")
    (tmp_path / "bad.onnx").write_bytes(b"\xff\xff no model")
    with pytest.raises(ModelError, match="is no ONNX model"):
        load(tmp_path / "bad.onnx", ReadOptions(attention="parts"))


def test_a_plan_remembers_how_attention_was_read(tmp_path: Path) -> None:
    path = save(attention(THREE, {"q_num_heads": 4, "kv_num_heads": 4}), tmp_path)
    plan = onchip.plan(path, budget="MR", attention="parts")
    assert plan.options["attention"] == "parts"
    assert onchip.Plan.from_text(plan.to_json()).run().bit_exact
    assert math.prod(THREE["q"]) * 4 in {t.bytes for t in plan.network.tensors}


def test_sizes_may_be_given_and_images_be_several(tmp_path: Path) -> None:
    model = attention(SAME, {"is_causal": 1})
    for info in model.graph.input:
        info.type.tensor_type.shape.dim[0].dim_param = "n"
    given = read(model, tmp_path, attention="parts", dims="n=3").network
    several = read(model, tmp_path, attention="parts", batch=3).network
    assert [t.bytes for t in given.tensors] == [t.bytes for t in several.tensors]
    assert 3 * 4 * 6 * 6 * 4 in {t.bytes for t in given.tensors}


def test_small_files_stay_small(tmp_path: Path) -> None:
    """Contents of constants do not double from node to node, and masks are not written out."""
    model = attention(FOUR, {})
    nodes = [
        helper.make_node("Concat", [f"d{i}", f"d{i}"], [f"d{i + 1}"], axis=0, name=f"c{i}") for i in range(40)
    ]
    model.graph.initializer.append(helper.make_tensor("d0", TensorProto.INT64, [1], [1]))
    shape = helper.make_node("ConstantOfShape", ["d40"], ["big"])
    total = helper.make_node("ReduceSum", ["big"], ["one"], keepdims=0)
    ends = [helper.make_node("Cast", ["one"], ["two"], to=1), helper.make_node("Add", ["a", "two"], ["b"])]
    last = model.graph.node.pop()
    last.input[0] = "b"
    model.graph.node.extend([*nodes, shape, total, *ends, last])
    with pytest.raises(ModelError, match="cannot be inferred"):
        read(model, tmp_path, attention="parts")

    long = dict.fromkeys("qkv", (1, 1, 16384, 1))
    model = attention(long, {"is_causal": 1})
    made = [helper.make_node("Attention", ["q1", "k1", "v1"], [f"o{i}"], is_causal=1) for i in range(50)]
    model.graph.node.extend(made)
    parted = with_attention_parts(
        model.SerializeToString(), ReadOptions(), where="net", folder=None, resize=None
    )
    assert len(parted) < 200_000
