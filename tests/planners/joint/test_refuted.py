"""Plans that once refuted a claim of joint planning: what the planner finds now, and what it claims."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from onchip.base.errors import Infeasible
from onchip.check import check
from onchip.machines.chip import load_chip
from onchip.planners.joint import JointOptions, plan
from onchip.plans import Plan, Tiling, read_plan

REFUTED = Path(__file__).resolve().parents[2] / "refuted"
BEATEN = sorted(p.name for p in REFUTED.glob("joint_ce_*.json") if "claimed" not in p.name)


def planned(found: Plan, channel_tile: int | None) -> Plan:
    chip = replace(load_chip("generic"), alignment_bytes=found.chip.alignment_bytes)
    return plan(found.network, chip, found.budget, JointOptions(fuse=True, channel_tile=channel_tile))


def tiles_of(found: Plan) -> set[int]:
    """Channels of the slices of the plan's groups in bands."""
    return {group.tiling.channels for group in found.groups if isinstance(group.tiling, Tiling)}


@pytest.mark.parametrize("name", BEATEN)
def test_the_planner_finds_what_refuted_it(name: str) -> None:
    found = read_plan(REFUTED / name)
    check(found)
    tiles = tiles_of(found) or {16}
    for tile in tiles:
        made = planned(found, tile)
        assert made.result.status == "optimal"
        assert f"T_c {tile} " in made.result.space
        if tiles == {tile}:
            assert made.result.dram_bytes <= found.result.dram_bytes


@pytest.mark.thorough
def test_the_claim_names_the_slices_of_channels_that_bind() -> None:
    """A chip without an array has a T_c all the same: plans with another one may move less."""
    found = read_plan(REFUTED / "joint_zoo_squeezenet_128KiB_tc8_1446608.json")
    check(found)
    assert tiles_of(found) == {8}
    assert found.result.dram_bytes == 1_446_608
    claimed = read_plan(REFUTED / "joint_zoo_squeezenet_128KiB_claimed_optimal_1493264.json")
    made = planned(claimed, None)
    assert made.result.dram_bytes > found.result.dram_bytes
    assert "T_c 16 channels" in made.result.space
    again = planned(found, 8)
    assert again.result.status == "optimal"
    assert again.result.dram_bytes <= 1_446_608
    assert "T_c 8 channels" in again.result.space


@pytest.mark.parametrize("name", BEATEN)
def test_what_is_infeasible_needs_what_it_says(name: str) -> None:
    """In one byte less than the least that is named nothing runs; in the least something does."""
    found = read_plan(REFUTED / name)
    with pytest.raises(Infeasible) as refusal:
        planned(replace(found, budget=0), 1)
    needs = refusal.value.needs
    assert planned(replace(found, budget=needs), 1).result.extent_bytes <= needs
    with pytest.raises(Infeasible):
        planned(replace(found, budget=needs - 1), 1)
