"""Built-in networks, fused and executed in tiles: what the model says is what crosses."""

from __future__ import annotations

import pytest

import onchip
from onchip.plans import Blocks


@pytest.mark.slow
@pytest.mark.parametrize(("name", "batch"), [("squeezenet1_0", 2), ("mobilenet_v2", 1)])
def test_fused_networks_move_what_the_model_says(name: str, batch: int) -> None:
    made = onchip.fuse(f"zoo:{name}", "optimus", batch=batch)
    assert made.plan is not None
    report = made.plan.run()
    assert 0 < report.relative_difference < 1e-4
    modelled = {g.name: g.dram_bytes for g in made.groups}
    assert {g.name: g.stated_bytes for g in report.tiled} == modelled
    assert all(g.counted_bytes == g.stated_bytes or "unread" in g.why for g in report.tiled)
    assert sum(g.counted_bytes for g in report.tiled) >= 0.99 * sum(modelled.values())


@pytest.mark.slow
def test_a_network_in_a_small_buffer_runs_in_blocks() -> None:
    made = onchip.fuse("zoo:mobilenet_v1@64x64", "optimus", "8KiB")
    assert made.plan is not None
    groups = made.plan.groups
    assert any(isinstance(g.tiling, Blocks) for g in groups)
    report = made.plan.run()
    assert sum(g.counted_bytes for g in report.tiled) == made.dram_bytes
