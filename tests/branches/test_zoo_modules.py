"""The modules of well-known networks are the ones that their papers describe."""

from __future__ import annotations

import pytest

from onchip.branches.detection import detect
from onchip.branches.modules import Detection, Module
from onchip.network import Network
from onchip.readers import ReadOptions, load

COUNTS = {
    "deeplabv3_resnet50": 17,  # and the pyramid of dilated convolutions
    "googlenet": 9,
    "inception_v3": 11,
    "mnasnet1_0": 10,
    "mobilenet_v1": 0,
    "mobilenet_v2": 10,
    "mobilenet_v3_large": 10,
    "resnet152": 50,
    "resnet18": 8,
    "resnet50": 16,
    "s3d": 9,
    "shufflenet_v2_x1_0": 16,
    "squeezenet1_0": 8,
    "vit_b_16": 24,
}
"""Modules of networks in which every concat and every sum closes one."""


def zoo(name: str, granularity: str = "fused") -> tuple[Network, Detection]:
    network = load(f"zoo:{name}", ReadOptions(granularity=granularity)).network  # type: ignore[arg-type]
    return network, detect(network)


def nested(module: Module) -> list[Module]:
    found = [step for branch in module.branches for step in branch.steps if isinstance(step, Module)]
    return found + [inner for module in found for inner in nested(module)]


@pytest.mark.parametrize("granularity", ["fused", "op"])
@pytest.mark.parametrize("name", COUNTS)
def test_every_merge_closes_a_module(name: str, granularity: str) -> None:
    _, found = zoo(name, granularity)
    assert len(found.modules) == COUNTS[name]
    assert not found.rejected
    assert not found.long_skips


def test_inception_v3_is_as_the_paper_shows_it() -> None:
    network, found = zoo("inception_v3")
    names = [module.name for module in found.modules]
    assert names == [f"Mixed_{n}" for n in ("5b", "5c", "5d", "6a", "6b", "6c", "6d", "6e", "7a", "7b", "7c")]
    assert [len(module.branches) for module in found.modules] == [4, 4, 4, 3, 4, 4, 4, 4, 3, 4, 4]
    assert [len(nested(module)) for module in found.modules] == [0] * 9 + [2, 2]
    assert len(found.items) == 13  # the stem, eleven modules in a row, the head
    for module in found.modules[-2:]:
        for inner in nested(module):
            assert inner.depth == 2
            assert [len(branch.steps) for branch in inner.branches] == [1, 1]
            assert network.tensors[inner.start].name.startswith(module.name)
