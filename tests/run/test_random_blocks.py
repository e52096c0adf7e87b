"""Random networks out of today's blocks: planned with fusion in little room, executed as planned."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import onchip
from onchip.base.errors import Infeasible
from random_blocks import block_network


def executed(seed: int, folder: Path) -> int:
    path = folder / "net.onnx"
    onnx.save(block_network(seed), path)
    source = onchip.load(path)
    whole, ran = sum(t.bytes for t in source.network.tensors), 0
    for share in (0.05, 0.1, 0.3):
        try:
            plan = onchip.plan(source, budget=max(16, int(whole * share)), fuse=True)
        except Infeasible:
            continue
        moved = plan.run(source).moved
        assert moved.compulsory + moved.traffic + moved.weights == plan.result.dram_bytes
        ran += 1
    return ran


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [73, 106])
def test_what_went_wrong_once(seed: int, tmp_path: Path) -> None:
    """Scales of a resize as many as its channels; a norm over a channel in another order of sums."""
    assert executed(seed, tmp_path)


@pytest.mark.thorough
def test_matrices_of_several_images(tmp_path: Path) -> None:
    assert executed(80, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", [500, pytest.param(501, marks=pytest.mark.campaign), 505])
def test_blocks(seed: int, tmp_path: Path) -> None:
    assert executed(seed, tmp_path)
