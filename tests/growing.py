"""Language models in small: one of decode steps and one of a whole prompt, with the same weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HEADS, WIDTH, HIDDEN = 2, 4, 12


def model(*, words: int | str, past: int | str | None, layers: int = 1) -> onnx.ModelProto:
    """A model of `words` words behind `past` ones, whose keys and values it appends to (None: no caches)."""
    f32 = TensorProto.FLOAT
    rng = np.random.default_rng(5)
    nodes: list[onnx.NodeProto] = []
    weights: list[TensorProto] = []
    wide = HEADS * WIDTH
    shape = [1, 0, HEADS, WIDTH]
    weights.append(numpy_helper.from_array(np.array(shape, np.int64), "heads"))
    weights.append(numpy_helper.from_array(np.array([1, -1, wide], np.int64), "rows"))
    inputs = [helper.make_tensor_value_info("x", f32, [1, words, wide])]
    outputs = []

    def weight(name: str, rows: int, columns: int) -> str:
        value = rng.normal(0, 0.4, (rows, columns)).astype(np.float32)
        weights.append(numpy_helper.from_array(value, name))
        return name

    def node(op: str, operands: list[str], result: str, **how: object) -> str:
        nodes.append(helper.make_node(op, operands, [result], result, **how))
        return result

    x = "x"
    for i in range(layers):
        parts = {}
        for letter in "qkv":
            made = node("MatMul", [x, weight(f"W{letter}.{i}", wide, wide)], f"{letter}w.{i}")
            apart = node("Reshape", [made, "heads"], f"{letter}r.{i}")
            begins = past is None and letter != "q"
            result = f"present.{i}.{letter}" if begins else f"{letter}.{i}"
            parts[letter] = node("Transpose", [apart], result, perm=[0, 2, 1, 3])
        for letter in "kv":
            whole = f"present.{i}.{letter}"
            if past is not None:
                name = f"past.{i}.{letter}"
                inputs.append(helper.make_tensor_value_info(name, f32, [1, HEADS, past, WIDTH]))
                node("Concat", [name, parts[letter]], whole, axis=2)
            outputs.append(helper.make_tensor_value_info(whole, f32, None))
            parts[letter] = whole
        turned = node("Transpose", [parts["k"]], f"kt.{i}", perm=[0, 1, 3, 2])
        scores = node("MatMul", [parts["q"], turned], f"s.{i}")
        shares = node("Softmax", [scores], f"p.{i}", axis=-1)
        mixed = node(
            "Transpose", [node("MatMul", [shares, parts["v"]], f"m.{i}")], f"mt.{i}", perm=[0, 2, 1, 3]
        )
        flat = node("Reshape", [mixed, "rows"], f"mr.{i}")
        out = node("Add", [node("MatMul", [flat, weight(f"Wo.{i}", wide, wide)], f"o.{i}"), x], f"a.{i}")
        inner = node("Relu", [node("MatMul", [out, weight(f"Wu.{i}", wide, HIDDEN)], f"u.{i}")], f"r.{i}")
        x = node("Add", [node("MatMul", [inner, weight(f"Wd.{i}", HIDDEN, wide)], f"d.{i}"), out], f"y.{i}")
    outputs.insert(0, helper.make_tensor_value_info(x, f32, None))
    graph = helper.make_graph(nodes, "words", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def saved(folder: Path, name: str, made: onnx.ModelProto) -> Path:
    path = folder / name
    path.write_bytes(made.SerializeToString())
    return path
