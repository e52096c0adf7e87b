"""A part of the campaign that tries to refute what planners claim (benchmarks/claims.py has the rest)."""

from collections.abc import Callable

import pytest

from onchip.machines.chip import Chip
from onchip.planners.packing import Buffer
from onchip.plans import PlanChip
from oracles.claims_branch_cases import branches_case
from oracles.claims_joint import Joint
from oracles.claims_joint_cases import fuse_case, joint_case
from oracles.claims_memory_cases import memories_case
from oracles.claims_outcome import Outcome, accepts
from oracles.claims_pack_cases import fits, packing_case
from oracles.claims_place_cases import placement_case
from oracles.claims_placement import Question, cheaper
from oracles.claims_segment_cases import segments_case
from oracles.claims_segments import Chain
from oracles.claims_ways import Space, Ways

HELD = [(placement_case, 300), (packing_case, 300), (memories_case, 60), (branches_case, 60)]
HELD += [(joint_case, 60), (fuse_case, 60)]


@pytest.mark.thorough
@pytest.mark.parametrize(("case", "count"), HELD, ids=lambda v: getattr(v, "__name__", ""))
def test_no_claim_is_refuted(case: Callable[..., Outcome], count: int) -> None:
    statuses = set()
    for seed in range(count):
        outcome = case(seed)
        assert not outcome.refuted, f"{outcome.kind} {seed}: {outcome.refuted}"
        assert not outcome.needs_wrong, f"{outcome.kind} {seed}: {outcome.needs_wrong}"
        statuses.add(outcome.status)
    assert {"optimal", "infeasible"} <= statuses


@pytest.mark.thorough
def test_elementary_moves_find_what_placement_claims() -> None:
    """Otherwise an oracle that finds nothing would let every claim pass."""
    found = 0
    for seed in range(400):
        outcome = placement_case(seed, judge=False)
        made = outcome.claimed
        if made is None or made.options["objective"] != "traffic" or not made.result.traffic_bytes:
            continue
        if made.options["order"] == "given" or made.budget > 12 * made.chip.alignment_bytes:
            continue
        asked = Question(made.network, made.chip.alignment_bytes, in_place=bool(made.options.get("in_place")))
        program = cheaper(asked, made.budget, made.result.traffic_bytes + 1)
        assert program is not None
        again = accepts(made.network, made.chip, made.budget, program)
        assert again is not None
        assert again.result.traffic_bytes == made.result.traffic_bytes
        found += 1
    assert found >= 3


@pytest.mark.thorough
def test_groups_and_tilings_find_what_joint_planning_claims() -> None:
    """What the oracle says that groups cost, the checker says of the whole plan, and it is no dearer."""
    found = 0
    for seed in range(40):
        made = joint_case(seed, judge=False, nests=False).claimed
        if made is None or made.result.status != "optimal":
            continue
        channels = made.options["channel_tile"]
        assert isinstance(channels, int)
        ways = Ways(made.network, made.chip.alignment_bytes, Space(channels))
        judge = Joint(ways, overlap=bool(made.options["overlap"]))
        cheapest = judge.cheapest(made.budget, made.result.dram_bytes + 1)
        assert cheapest is not None
        laid = judge.program(cheapest[1], made.budget)
        assert laid is not None
        chip = Chip("odd", alignment_bytes=made.chip.alignment_bytes)
        again = accepts(made.network, chip, made.budget, *laid, options={"objective": "dram"})
        assert again is not None
        assert again.result.dram_bytes == cheapest[0] <= made.result.dram_bytes
        found += 1
    assert found >= 20


@pytest.mark.thorough
def test_bytes_of_chains_find_what_segments_claim() -> None:
    for seed in range(30):
        outcome = segments_case(seed, judge=False)
        made = outcome.claimed
        assert made is not None
        least = made.result.extent_bytes
        found = Chain(made.network, stages=outcome.label == "least").program(least)
        assert found is not None
        assert accepts(found[0], PlanChip("mcu"), least, found[1], found[2]) is not None


def test_offsets_are_all_tried() -> None:
    buffers = [Buffer(0, 2, 4), Buffer(1, 3, 4), Buffer(2, 4, 4, alignment=4)]
    assert fits(buffers, 8, 1) is not None
    assert fits(buffers, 7, 1) is None
    assert fits([Buffer(0, 2, 2, offset=1), Buffer(0, 2, 2)], 4, 1) is None
