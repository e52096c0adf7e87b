"""Multiply-accumulates: those of published networks, and those of single nodes by definition."""

from __future__ import annotations

import pytest

import onchip

PUBLISHED = {"resnet50": 4_089_184_256, "vgg16": 15_470_264_320, "mobilenet_v2": 300_774_272}
"""As torchvision's tables give them (GFLOPS there are 10^9 multiply-accumulates), from layer shapes."""


@pytest.mark.parametrize("granularity", ["fused", "op"])
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_networks_do_their_published_work(name: str, granularity: str) -> None:
    network = onchip.load(f"zoo:{name}", granularity=granularity).network
    assert sum(op.work for op in network.operators) == PUBLISHED[name]


def test_what_the_geometry_says_is_what_the_shapes_say() -> None:
    network = onchip.load("zoo:mobilenet_v2").network
    both = [(op.macs, op.geometry.macs) for op in network.operators if op.geometry and op.geometry.macs]
    assert len(both) > 40
    assert all(stated == derived for stated, derived in both)
