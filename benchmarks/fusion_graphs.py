"""The networks of the Optimus paper as operator graphs, made from the zoo's, and those graphs as networks.

A graph is a list of operators of kind conv, dw, pool, add, cat, fc or gap with their channels, kernel, stride
and output size; `weight_words` are weights and one bias a channel, as norms fold into them. Padding is what
makes the output size fit: none where the sizes say so, else in total (out - 1) * stride + kernel - in, the
smaller half before.

The zoo has torchvision's variants of some; `drawn` gives them back what their papers have (`EDITS`): VGG16
without classifier (18 operators, as in the paper's Table 5), bottlenecks that stride in their first
convolution, the larger windows of GoogLeNet, SqueezeNet's maps halved rounding up, and AlexNet is
CaffeNet without its local normalisation.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import onchip
from onchip.network import Geometry, Network, Operator, OperatorSpec, TensorKind

__all__ = ["NAMES", "drawn", "fusion_graph", "papers_network"]

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
"""Networks whose graphs are `drawn`; there is `alexnet_features`, too, without fully connected layers."""

ZOO = {"alexnet": "caffenet", "alexnet_features": "caffenet", "nasnetalarge": "nasnetalarge@331x331"}
"""The zoo's name of a network where it is another."""

WORD = 2
"""Bytes of an element: the papers' chips compute in 16 bits."""

Row = dict[str, Any]

Edit = Callable[[str, Row, int], Row]
"""A window's row changed, from the zoo's name of the operator and the height of its input."""


def papers_network(name: str, batch: int) -> Network:
    """The network at `batch` images of int16; NASNet and ResNet-1202 as the zoo has them."""
    if name in NAMES or name == "alexnet_features":
        return fusion_graph(drawn(name), batch)
    return onchip.load(f"zoo:{ZOO.get(name, name)}", dtype="int16", batch=batch).network


# -- graphs from the zoo -------------------------------------------------------------------------------------


@cache
def drawn(name: str) -> Row:
    """The operator graph of one of `NAMES`, from the zoo's network with its edits."""
    network = onchip.load(f"zoo:{ZOO.get(name, name)}", dtype="int16").network
    known: dict[int, tuple[str, tuple[int, int, int]]] = {}
    source = network.operators[network.order[0]]
    assert source.geometry is not None
    known[source.inputs[0]] = ("input", _chw(source.geometry.input))
    rows = []
    for op in (network.operators[v] for v in network.order):
        if op.type == "LRN":  # left out: it is element-wise but for its window over channels
            known[op.outputs[0]] = known[op.inputs[0]]
            continue
        row = _row(op, [known[t] for t in op.inputs], EDITS.get(name, _as_it_is))
        if row["kind"] == "fc" and name in HEADLESS:
            break
        known[op.outputs[0]] = (op.name, (row["c_out"], row["out_h"], row["out_w"]))
        rows.append(row)
    if name in BOTTLENECKS:
        _stride_first(rows)
    return {"name": name, "input_chw": list(known[source.inputs[0]][1]), "operators": rows}


def _row(op: Operator, reads: list[tuple[str, tuple[int, int, int]]], edit: Edit) -> Row:
    g = op.geometry
    assert g is not None, op.name
    kind = {"elementwise": "add", "concat": "cat", "fully_connected": "fc", "depthwise": "dw"}.get(
        g.kind, g.kind
    )
    channels, height, width = reads[0][1]
    row: Row = {"name": op.name, "kind": kind, "c_in": channels, "c_out": channels}
    row |= {"kernel": 1, "stride": 1, "out_h": height, "out_w": width, "weight_words": 0}
    row["reads"] = [name for name, _ in reads]
    match kind:
        case "cat":
            row["c_in"] = row["c_out"] = sum(chw[0] for _, chw in reads)
        case "fc":
            row |= {"c_in": channels * height * width, "c_out": g.output[-1], "out_h": 1, "out_w": 1}
            row["weight_words"] = row["c_in"] * row["c_out"] + row["c_out"]
        case "pool" if prod(g.output[2:]) == 1:
            row |= {"kind": "gap", "kernel": height, "stride": height, "out_h": 1, "out_w": 1}
        case "conv" | "dw" | "pool":
            row |= {"kernel": g.kernel[0], "stride": g.stride[0], "c_out": g.output[1]}
            row |= {"out_h": g.output[2], "out_w": g.output[3]}
            row = edit(op.name, row, height)
            if kind != "pool":
                words = row["c_out"] * channels // g.groups * row["kernel"] ** 2
                row["weight_words"] = words + row["c_out"]
            if kind == "conv" and g.groups > 1:
                row["groups"] = g.groups
    return row


def _as_it_is(_: str, row: Row, height: int) -> Row:
    return row


def _large_windows(name: str, row: Row, height: int) -> Row:
    """GoogLeNet's windows as its paper has them: 5x5 in the second convolution of third branches, 3x3 in the
    last pool."""
    if ".branch3.1." in name:
        return row | {"kernel": 5}
    return row | {"kernel": 3} if name == "maxpool4" else row


def _halved(_: str, row: Row, height: int) -> Row:
    """Square maps halved rounding up wherever a window strides: 224, 112, 56, 28, 14."""
    size = -(-height // row["stride"])
    return row | {"out_h": size, "out_w": size}


EDITS: dict[str, Edit] = {"googlenet": _large_windows, "squeezenet1_0": _halved}
HEADLESS = ("vgg16", "alexnet_features")
BOTTLENECKS = ("resnet50", "resnet152")


def _stride_first(rows: list[Row]) -> None:
    """Let bottlenecks stride in their first convolution, as their paper's do, not in the 3x3 behind it."""
    place = {row["name"]: row for row in rows}
    for row in rows:
        before = place.get(row["reads"][0])
        if row["kernel"] == 3 and row["stride"] == 2 and row["kind"] == "conv" and before:
            before |= {"stride": 2, "out_h": row["out_h"], "out_w": row["out_w"]}
            row["stride"] = 1


def _chw(shape: tuple[int, ...]) -> tuple[int, int, int]:
    _, channels, height, width = shape
    return channels, height, width


# -- networks from graphs ------------------------------------------------------------------------------------


def fusion_graph(source: Path | Row, batch: int, *, word: int = WORD) -> Network:
    """The graph, or the one in a file, at `batch` images; elements are of `word` bytes, shapes NCHW."""
    graph = source if isinstance(source, dict) else json.loads(source.read_text())
    maps: dict[str, tuple[int, int, int]] = {"input": tuple(graph["input_chw"])}
    operators = []
    for row in graph["operators"]:
        name, reads = row["name"], row["reads"]
        maps[name] = (row["c_out"], row["out_h"], row["out_w"])
        geometry = _geometry(row, maps[reads[0]], maps[name], batch)
        operators.append(
            OperatorSpec(name, row["kind"], reads, [name], row["weight_words"] * word, geometry=geometry)
        )
    read = {name for row in graph["operators"] for name in row["reads"]}
    tensors: list[tuple[str, int, TensorKind]] = [
        (name, batch * c * h * w * word, "input" if name == "input" else "activation")
        for name, (c, h, w) in maps.items()
    ]
    outputs = [name for name in maps if name not in read]
    return Network.build(graph["name"], tensors, operators, outputs, element=f"int{8 * word}")


def _geometry(row: Row, before: tuple[int, int, int], after: tuple[int, int, int], batch: int) -> Geometry:
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
    groups = row["c_in"] if row["kind"] == "dw" else row.get("groups", 1)
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
