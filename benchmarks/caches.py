"""Bytes of a decode step of a GPT-2-sized model by length: caches rewritten, kept in DRAM, kept on chip.

    python benchmarks/caches.py [--layers 12] [--words 1023]

The model has the shapes of GPT-2 small without embeddings and norms: 12 layers, 12 heads of 64, 3,072 hidden,
8-bit elements. For each budget and each way to keep the caches it prints the table's rows and what a step
moves at the first and at the last length. docs/caches.md shows what it printed.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onchip

HEADS, WIDTH, HIDDEN = 12, 64, 3072
BUDGETS = ("1MiB", "2MiB", "4MiB", "20MiB")
WAYS: dict[str, dict[str, object]] = {
    "written anew": {},
    "in DRAM": {"cache": "past.*=present.*"},
    "layer 0 on chip": {"cache": "past.*=present.*", "state": ("past.0.*=present.0.*",)},
    "on chip": {"state": ("past.*=present.*",)},
}


def decode(layers: int) -> onnx.ModelProto:
    """A decode step behind `past` words, its weights without data."""
    wide, f32 = HEADS * WIDTH, TensorProto.FLOAT
    nodes: list[onnx.NodeProto] = []
    weights = [
        numpy_helper.from_array(np.array(shape, np.int64), name)
        for name, shape in (("heads", (1, 1, HEADS, WIDTH)), ("rows", (1, 1, wide)))
    ]
    inputs = [helper.make_tensor_value_info("x", f32, [1, 1, wide])]
    outputs: list[onnx.ValueInfoProto] = []

    def node(op: str, operands: list[str], made: str, **how: object) -> str:
        nodes.append(helper.make_node(op, operands, [made], made, **how))
        return made

    def product(x: str, name: str, rows: int, columns: int) -> str:
        weights.append(TensorProto(name=name, dims=(rows, columns), data_type=f32))
        return node("MatMul", [x, name], f"{name}.out")

    x = "x"
    for i in range(layers):
        part = {}
        for letter in "qkv":
            made = node("Reshape", [product(x, f"W{letter}.{i}", wide, wide), "heads"], f"{letter}1.{i}")
            part[letter] = node("Transpose", [made], f"{letter}.{i}", perm=[0, 2, 1, 3])
        for letter in "kv":
            inputs.append(helper.make_tensor_value_info(f"past.{i}.{letter}", f32, [1, HEADS, "past", WIDTH]))
            grown = node("Concat", [f"past.{i}.{letter}", part[letter]], f"present.{i}.{letter}", axis=2)
            outputs.append(helper.make_tensor_value_info(grown, f32, None))
            part[letter] = grown
        turned = node("Transpose", [part["k"]], f"t.{i}", perm=[0, 1, 3, 2])
        shares = node("Softmax", [node("MatMul", [part["q"], turned], f"s.{i}")], f"p.{i}", axis=-1)
        mixed = node("MatMul", [shares, part["v"]], f"m.{i}")
        flat = node("Reshape", [node("Transpose", [mixed], f"n.{i}", perm=[0, 2, 1, 3]), "rows"], f"o.{i}")
        x = node("Add", [product(flat, f"Wo.{i}", wide, wide), x], f"a.{i}")
        inner = node("Relu", [product(x, f"Wu.{i}", wide, HIDDEN)], f"r.{i}")
        x = node("Add", [product(inner, f"Wd.{i}", HIDDEN, wide), x], f"y.{i}")
    outputs.insert(0, helper.make_tensor_value_info(x, f32, None))
    graph = helper.make_graph(nodes, "decode", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--words", type=int, default=1023, help="the longest length")
    parser.add_argument("--read", type=int, default=16, help="lengths at which the model is read, a row")
    asked = parser.parse_args()
    print("| budget | caches | lengths | plans | bytes at the first | bytes at the last | proved |")
    print("|---|---|---|--:|--:|--:|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decode.onnx"
        path.write_bytes(decode(asked.layers).SerializeToString())
        for budget in BUDGETS:
            for way, how in WAYS.items():
                try:
                    table = onchip.lengths(
                        path,
                        length=f"past=1..{asked.words}",
                        budget=budget,
                        dtype="int8",
                        read=asked.read,
                        **how,  # type: ignore[arg-type]
                    )
                except onchip.Infeasible as no:
                    print(f"| {budget} | {way} | none: {no.needs:,} bytes needed | | | | |", flush=True)
                    continue
                first, last = table.rows[0], table.rows[-1]
                table.plan(last.last).check()
                gap = max(row.gap_bytes for row in table.rows)
                proved = "optimal" if not gap else f"within {gap:,} B"
                print(
                    f"| {budget} | {way} | 1 to {last.last:,} | {len(table.rows)} |"
                    f" {first.begins.result.dram_bytes:,} | {last.plan.result.dram_bytes:,} | {proved} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
