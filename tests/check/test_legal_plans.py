"""Legal plans are accepted, keep every byte that is read, and cost what a machine of cells counts."""

from __future__ import annotations

from random import Random

import byte_clock
import pytest
from byte_machine import ByteMachine
from hypothesis import given, settings
from hypothesis import strategies as st
from legal_plans import legal_plan

from onchip.check import check


@given(st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_a_legal_plan_is_accepted_and_its_figures_are_those_of_the_byte_machine(rng: Random) -> None:
    accepted_with_the_figures_of_the_byte_machine(rng)


@pytest.mark.slow
@given(st.randoms(use_true_random=True))
@settings(max_examples=300)
def test_hundreds_of_legal_plans_are_accepted(rng: Random) -> None:
    accepted_with_the_figures_of_the_byte_machine(rng)


def accepted_with_the_figures_of_the_byte_machine(rng: Random) -> None:
    plan = legal_plan(rng)
    counts = ByteMachine(plan).execute()
    result = check(plan)
    assert result == plan.result
    assert (result.compulsory_bytes, result.reload_bytes, result.spill_bytes) == (
        counts["compulsory"],
        counts["reload"],
        counts["spill"],
    )
    assert result.traffic_bytes == counts["reload"] + counts["spill"]
    assert result.weight_bytes == counts["weights"]
    assert result.dram_bytes == sum(counts[key] for key in ("compulsory", "reload", "spill", "weights"))
    assert (result.peak_bytes, result.extent_bytes) == (counts["peak"], counts["extent"])
    if plan.chip.dram_bytes_per_second is None:
        assert (plan.timing, result.latency_picoseconds) == ((), None)
    else:
        assert [(t.index, t.start, t.end, t.fetched) for t in plan.timing] == byte_clock.times(plan)
        assert result.latency_picoseconds == max(t.end for t in plan.timing)
