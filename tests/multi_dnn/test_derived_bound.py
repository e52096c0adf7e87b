"""The judge's own bound: below everything that can be done, and tight where work or path decides."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workloads import profile_of, random_schedule, random_workload, workload_of

from onchip.machines.contention import NO_CONTENTION
from onchip.multi_dnn.baselines import baselines
from onchip.multi_dnn.derived_bound import derived_bound
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.timeline import RATES
from onchip.multi_dnn.workload import Job


@pytest.mark.thorough
@given(st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_no_schedule_whatever_beats_it(rng: Random) -> None:
    """Random orders and waits, and the best of many: of every figure, with and without tolerated overlap."""
    work = random_workload(rng)
    if rng.random() < 0.5:  # without contention and transitions the bounds are nearest
        work = replace(work, model=NO_CONTENTION)
    epsilon = rng.choice((0.0, 0.0, 0.3))
    lines = [
        simulate(work, random_schedule(rng, work, idle=rng.random() < 0.3), epsilon_ms=epsilon)
        for _ in range(6)
    ]
    for objective in Objective:
        lines += [simulate(work, one.schedule, epsilon_ms=epsilon) for one in baselines(work, objective)]
    for figure in ("latency_ms", "makespan_ms", "fps", "sum_of_rates"):
        bound = derived_bound(work, figure, epsilon)
        assert bound is not None
        for line in lines:
            value = line.figure(figure)
            assert value is not None
            if figure in RATES:
                assert value <= bound * (1 + 1e-9)
            else:
                assert value >= bound * (1 - 1e-9)


def test_closed_forms() -> None:
    long = Job("x", profile_of("x", [(4, 8), (4, 2)], transition=0.5))
    work = workload_of(NO_CONTENTION, long)
    assert derived_bound(work, "latency_ms") == pytest.approx(6.5)  # 4, change, 2
    assert derived_bound(work, "sum_of_rates") == pytest.approx(1000 / 6.5)
    assert derived_bound(work, "fps") == pytest.approx(1000 / 6.5)
    assert derived_bound(work, "millijoules") is None
    # Two units, equally fast, divide four equal groups: work decides, not the path.
    even = [Job(name, profile_of(name, [(1, 1), (1, 1)])) for name in "xyzw"]
    work = workload_of(NO_CONTENTION, *even)
    assert derived_bound(work, "makespan_ms") == pytest.approx(4)
    # One twice as fast gets two thirds.
    uneven = [Job(name, profile_of(name, [(1, 2)])) for name in "xyz"]
    assert derived_bound(workload_of(NO_CONTENTION, *uneven), "latency_ms") == pytest.approx(2)
    series = [Job("a", profile_of("a", [(1, 9)])), Job("b", profile_of("b", [(9, 1)]), after=("a",))]
    assert derived_bound(workload_of(NO_CONTENTION, *series), "latency_ms") == pytest.approx(2)


def test_a_stream_is_bound_by_its_slowest_stage() -> None:
    """A pipeline of 3 and 1 ms on a unit each: a frame every 3 ms, however many are measured."""
    stages = [Job("a", profile_of("a", [(3, 30)])), Job("b", profile_of("b", [(30, 1)]), after=("a",))]
    work = replace(workload_of(NO_CONTENTION, *stages, frames=40), in_flight=2)
    bound = derived_bound(work, "fps")
    assert bound is not None
    assert 1000 / 3 <= bound <= 1000 / 3 * 1.06
    together = replace(work, pipelined=False)
    assert derived_bound(together, "fps") == pytest.approx(250)
    assert derived_bound(together, "makespan_ms") == pytest.approx(120)
