"""The operator graphs of the fusion papers' networks, as onchip networks with geometry.

`shared/bench/fusion/*.json` has a form of its own: operators of kind conv, dw, pool, add, cat, fc or gap with
their channels, kernel, stride and output size; `weight_words` are weights and biases. Padding is what makes
the output size fit: none where the sizes say so, else in total (out - 1) * stride + kernel - in, the smaller
half before.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onchip.network import Geometry, Network, OperatorSpec, TensorKind

__all__ = ["NAMES", "fusion_graph"]

NAMES = (
    "vgg16",
    "mobilenet_v1",
    "squeezenet1_0",
    "googlenet",
    "resnet50",
    "resnet152",
    "resnet18",
    "alexnet",
)

WORD = 2
"""Bytes of an element: the papers' chips compute in 16 bits."""


def fusion_graph(path: Path, batch: int) -> Network:
    """The graph in a file at `batch` images; elements are int16, shapes NCHW."""
    graph = json.loads(path.read_text())
    maps: dict[str, tuple[int, int, int]] = {"input": tuple(graph["input_chw"])}
    operators = []
    for row in graph["operators"]:
        name, reads = row["name"], row["reads"]
        maps[name] = (row["c_out"], row["out_h"], row["out_w"])
        geometry = _geometry(row, maps[reads[0]], maps[name], batch)
        operators.append(
            OperatorSpec(name, row["kind"], reads, [name], row["weight_words"] * WORD, geometry=geometry)
        )
    read = {name for row in graph["operators"] for name in row["reads"]}
    tensors: list[tuple[str, int, TensorKind]] = [
        (name, batch * c * h * w * WORD, "input" if name == "input" else "activation")
        for name, (c, h, w) in maps.items()
    ]
    outputs = [name for name in maps if name not in read]
    return Network.build(graph["name"], tensors, operators, outputs, element="int16")


def _geometry(
    row: dict[str, Any], before: tuple[int, int, int], after: tuple[int, int, int], batch: int
) -> Geometry:
    first, result = (batch, *before), (batch, *after)
    kernel, stride = row["kernel"], row["stride"]
    match row["kind"]:
        case "add":
            return Geometry("elementwise", result, result)
        case "cat":
            return Geometry("concat", result, result)
        case "gap":
            return Geometry("pool", first, result, before[1:])
        case "fc":
            return Geometry("fully_connected", (batch, row["c_in"]), (batch, row["c_out"]))
    top, bottom = _padding(before[1], after[1], kernel, stride)
    left, right = _padding(before[2], after[2], kernel, stride)
    kinds = {"conv": "conv", "dw": "depthwise", "pool": "pool"}
    groups = row["c_in"] if row["kind"] == "dw" else 1
    return Geometry(
        kinds[row["kind"]],
        first,
        result,
        (kernel, kernel),
        (stride, stride),
        (top, left, bottom, right),
        (1, 1),
        groups,
    )


def _padding(size: int, out: int, kernel: int, stride: int) -> tuple[int, int]:
    total = max(0, (out - 1) * stride + kernel - size)
    return total // 2, total - total // 2
