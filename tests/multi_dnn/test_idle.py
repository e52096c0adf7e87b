"""Why units stand idle: all of the idle time is accounted for, each by what really happens then."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made import crossing
from workloads import alone, profile_of, random_schedule, random_workload, workload_of

from onchip.machines.contention import NO_CONTENTION
from onchip.multi_dnn.idle import idle_times
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.report.words import idle_reason
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.schedule_json import Claim
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Job


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_busy_and_idle_times_fill_the_makespan(rng: Random) -> None:
    work = random_workload(rng)
    schedule = random_schedule(rng, work, idle=True)
    line = simulate(work, schedule)
    found = idle_times(schedule, line)
    for unit, busy in enumerate(line.busy_ms):
        mine = sorted([(s.start, s.end) for s in line.segments if s.unit == unit]
                      + [(i.start, i.end) for i in found if i.unit == unit])  # fmt: skip
        assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(mine))
        assert busy + sum(i.end - i.start for i in found if i.unit == unit) == pytest.approx(line.makespan_ms)
    made = Judged(schedule, line, Claim())
    for one in found:
        assert idle_reason(made, one)
        if one.why == "nothing left":
            assert all(s.end <= one.start + 1e-6 for s in line.segments if s.unit == one.unit)
        if one.why == "elsewhere" and one.cause is not None:
            (there,) = (s for s in line.segments if s.step == one.cause)
            assert there.end >= one.end - 1e-6
        if one.why == "another run" and one.cause is not None:
            assert any(abs(s.end - one.end) < 1e-6 for s in line.segments if s.step == one.cause)


def test_reasons_in_words() -> None:
    made = crossing()
    assert [idle_reason(made, one) for one in idle_times(made.schedule, made.timeline)] == [
        "googlenet #2 is at 53-66 on gpu", "googlenet #2 is changing units", "nothing left to do",
    ]  # fmt: skip
    work = workload_of(
        NO_CONTENTION, Job("x", profile_of("n", [(1, 2)])), Job("y", profile_of("m", [(9, 2)]), after=("x",))
    )
    plain = alone(work, [(0,), (1,)])
    waiting = Schedule(plain.units, plain.order, ((Step(1, 0, 0), 0.5),))
    judged = Judged(waiting, simulate(work, waiting), Claim())
    assert [(one.unit, idle_reason(judged, one)) for one in idle_times(waiting, judged.timeline)] == [
        (0, "nothing left to do"), (1, "until x ends"), (1, "y waits on purpose"),
    ]  # fmt: skip
