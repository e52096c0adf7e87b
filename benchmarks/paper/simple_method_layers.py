"""Weights and feature maps by layer: figure 1 of "A Simple Method ..."."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onchip

__all__ = ["NETWORKS", "Layer", "fig_1", "rank_correlation", "sizes_by_layer"]

NETWORKS = {"inception_v3": "Inception-v3", "resnet50": "ResNet-50"}

TENTHS = 10


@dataclass(frozen=True)
class Layer:
    """A layer with weights: their bytes, and those of the maps that it reads and makes, at 8 bits."""

    name: str
    weights: int
    maps: int


def sizes_by_layer(name: str) -> list[Layer]:
    """Convolutions and matrix products in the order in which they run."""
    network = onchip.load(f"zoo:{name}").network
    layers = []
    for op in (network.operators[v] for v in network.order):
        if op.weight_bytes:
            maps = sum(network.tensors[t].bytes for t in (*op.inputs, *op.outputs))
            layers.append(Layer(op.name, op.weight_bytes, maps))
    return layers


def fig_1() -> Iterator[str]:
    """Means over tenths of the layers: the picture has each."""
    yield "KB of a layer on average, over tenths of the layers in the order in which they run:\n"
    yield "| network | size of | " + " | ".join(f"{i + 1}" for i in range(TENTHS)) + " |"
    yield "|---|---|" + "--:|" * TENTHS
    for name, title in NETWORKS.items():
        layers = sizes_by_layer(name)
        for what, sizes in (
            ("weights", [layer.weights for layer in layers]),
            ("feature maps", [layer.maps for layer in layers]),
        ):
            cells = " | ".join(f"{mean / 1024:,.0f}" for mean in tenths(sizes))
            yield f"| {title}, {len(layers)} layers | {what} | {cells} |"


def tenths(sizes: Sequence[int]) -> Iterator[float]:
    """Means of ten parts that differ by one layer at most."""
    for i in range(TENTHS):
        part = sizes[i * len(sizes) // TENTHS : (i + 1) * len(sizes) // TENTHS]
        yield sum(part) / len(part)


def rank_correlation(sizes: Sequence[int]) -> float:
    """Spearman's, of the sizes with their places: 1 where they only rise, -1 where they only fall."""
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    ranks = [0.0] * len(sizes)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and sizes[order[end]] == sizes[order[start]]:
            end += 1
        for i in order[start:end]:
            ranks[i] = (start + end - 1) / 2
        start = end
    mean = (len(sizes) - 1) / 2
    both = sum((i - mean) * (rank - mean) for i, rank in enumerate(ranks))
    own = sum((i - mean) ** 2 for i in range(len(sizes)))
    other = sum((rank - mean) ** 2 for rank in ranks)
    return both / (own * other) ** 0.5
