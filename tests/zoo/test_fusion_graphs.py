"""The built-in networks that fusion is measured on, against operator graphs drawn up for it independently.

Those graphs give every operator its output's size and its weights with one bias for each channel; ours have
the batch normalisations of the definitions, so that weights are compared without what belongs to one channel.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import pytest

from onchip.network import Operator
from onchip.readers import load

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from fusion_graphs import NAMES, drawn, papers_network

KIND = {
    "conv": "conv", "dw": "depthwise", "pool": "pool", "gap": "pool", "add": "elementwise", "cat": "concat",
    "fc": "fully_connected",
}  # fmt: skip

Row = tuple[str, int, int, int]
"""Kind, operands, words of the output, words of the matrix of weights."""


def drawn_up(operator: dict[str, Any]) -> Row:
    words = operator["weight_words"] - operator["c_out"] if operator["weight_words"] else 0
    size = operator["c_out"] * operator["out_h"] * operator["out_w"]
    return KIND[operator["kind"]], len(operator["reads"]), size, words


def ours(operator: Operator) -> Row:
    g = operator.geometry
    assert g is not None
    words = 0
    if g.kind in ("conv", "depthwise"):
        words = g.output[1] * g.input[1] // g.groups * prod(g.kernel)
    elif g.kind == "fully_connected":
        words = g.input[-1] * g.output[-1]
    return g.kind, len(operator.inputs), prod(g.output), words


def both(name: str, shared: Path) -> tuple[list[Row], list[Row]]:
    text = (shared / "bench" / "fusion" / f"{name}.json").read_text()
    graph = [drawn_up(operator) for operator in json.loads(text)["operators"]]
    return graph, [ours(operator) for operator in load(f"zoo:{name}").network.operators]


@pytest.mark.parametrize(("name", "operators"), [("resnet18", 31), ("mobilenet_v1", 29)])
def test_the_same_operators(name: str, operators: int, shared: Path) -> None:
    graph, network = both(name, shared)
    assert len(graph) == operators
    assert Counter(graph) == Counter(network)


def test_vgg_has_its_classifier_too(shared: Path) -> None:
    graph, network = both("vgg16", shared)
    assert len(graph) == 18
    assert Counter(graph) == Counter(row for row in network if row[0] != "fully_connected")


@pytest.mark.parametrize(("name", "operators"), [("resnet50", 72), ("resnet152", 208)])
def test_bottlenecks_stride_in_their_second_convolution(name: str, operators: int, shared: Path) -> None:
    """torchvision's halve the map in the 3x3 convolution, the graphs in the 1x1 before: in three blocks."""
    graph, network = both(name, shared)
    assert len(graph) == operators
    earlier = Counter(graph) - Counter(network)
    later = Counter(network) - Counter(graph)
    assert earlier.total() == 3
    assert Counter((kind, n, 4 * size, words) for kind, n, size, words in earlier.elements()) == later


def test_inception_has_small_windows_in_its_third_branch(shared: Path) -> None:
    """torchvision's GoogLeNet has 3x3 convolutions where paper and graph have 5x5: in nine modules."""
    graph, network = both("googlenet", shared)
    assert len(graph) == 81
    large = Counter(graph) - Counter(network)
    small = Counter(network) - Counter(graph)
    assert large.total() == 9
    assert Counter((kind, n, size, words * 9 // 25) for kind, n, size, words in large.elements()) == small


def test_squeezenet_does_not_pad_its_first_convolution(shared: Path) -> None:
    """The graph pads all windows so that a map is halved rounding up; torchvision pads none that stride."""
    graph, network = both("squeezenet1_0", shared)
    assert len(graph) == 38
    assert Counter((k, n, w) for k, n, _, w in graph) == Counter((k, n, w) for k, n, _, w in network)
    assert (graph[0][2], network[0][2]) == (112 * 112 * 96, 109 * 109 * 96)
    # Squares of the same channels: those of a map, in order of size, are a little smaller, never larger.
    for small, large in zip(sorted(row[2] for row in network), sorted(row[2] for row in graph), strict=True):
        assert 0.8 * large < small <= large


def test_alexnet_is_another_one(shared: Path) -> None:
    """torchvision's has one tower of 64 to 384 channels, the graph the paper's 96 to 384 in two groups."""
    graph, network = both("alexnet", shared)
    assert [kind for kind, *_ in graph] == [kind for kind, *_ in network]
    assert graph[0][2] == 96 * 55 * 55
    assert network[0][2] == 64 * 55 * 55
    classifiers = [[row for row in rows if row[0] == "fully_connected"] for rows in (graph, network)]
    assert classifiers[0] == classifiers[1]


def edges(graph: dict[str, Any]) -> Counter[tuple[Row, Row]]:
    """Producers and readers by what they are, whatever their names and order."""
    rows = {operator["name"]: drawn_up(operator) for operator in graph["operators"]}
    pairs = [(read, operator["name"]) for operator in graph["operators"] for read in operator["reads"]]
    nowhere = ("input", 0, 0, 0)
    return Counter((rows.get(read, nowhere), rows[name]) for read, name in pairs)


@pytest.mark.parametrize("name", NAMES)
def test_graphs_from_the_zoo_are_those_drawn_up_by_hand(name: str, shared: Path) -> None:
    """All of them, with the edits that give back what torchvision changed."""
    graph = json.loads((shared / "bench" / "fusion" / f"{name}.json").read_text())
    made = drawn(name)
    assert made["input_chw"] == graph["input_chw"]
    keys = ("kind", "c_in", "c_out", "kernel", "stride", "out_h", "out_w", "weight_words")
    assert Counter(tuple(row[key] for key in keys) for row in made["operators"]) == Counter(
        tuple(row[key] for key in keys) for row in graph["operators"]
    )
    assert edges(made) == edges(graph)


def test_alexnet_ends_before_its_classifier() -> None:
    whole, features = papers_network("alexnet", 1), papers_network("alexnet_features", 1)
    assert len(whole.operators) - len(features.operators) == 3
    assert [op.name for op in features.operators] == [op.name for op in whole.operators[:8]]
    assert whole.weight_bytes - features.weight_bytes == 2 * (37_752_832 + 16_781_312 + 4_097_000)
