"""The judge against closed forms worked out by hand, its own laws, and a judge that steps through time."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from workloads import Fixed, alone, profile_of, random_schedule, random_workload, soc_of, workload_of

from onchip.base.errors import IllegalSchedule
from onchip.machines.contention import NO_CONTENTION, ThreeRegions
from onchip.machines.soc import SoC, Unit
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Job, Workload
from oracles.corun import stepped

# -- closed forms ------------------------------------------------------------------------------------------


def test_one_network_alone_takes_its_own_time_and_its_transitions() -> None:
    work = workload_of(Fixed(9, 9), Job("n", profile_of("n", [(1, 5), (5, 2), (3, 9)], transition=0.5)))
    timeline = simulate(work, alone(work, [(0, 1, 0)]))
    assert timeline.makespan_ms == pytest.approx(1 + 0.5 + 2 + 0.5 + 3)
    assert timeline.busy_ms == pytest.approx((4, 2))
    assert timeline.latency_ms == pytest.approx((7,))


def test_who_shares_the_memory_progresses_at_one_over_slowdown() -> None:
    """4 ms at slowdown 2 beside 3 ms at 1.5: b ends at 4.5, when a has done 2.25; the rest runs alone."""
    work = workload_of(
        Fixed(2, 1.5), Job("x", profile_of("x", [(4, 9)])), Job("y", profile_of("y", [(9, 3)]))
    )
    timeline = simulate(work, alone(work, [(0,), (1,)]))
    assert timeline.latency_ms == pytest.approx((4.5 + (4 - 2.25), 4.5))
    first = timeline.segments[0]
    assert [p.slowdown for p in first.pieces] == [2, 1]
    assert timeline.makespan_ms == pytest.approx(4 + 4.5 * (1 - 1 / 2))  # t + overlap * (1 - 1 / slowdown)


def test_a_transition_slows_nobody_down_and_occupies_no_unit() -> None:
    """x leaves unit a for 1 ms; y takes a over meanwhile and has the memory to itself."""
    work = workload_of(
        Fixed(3, 3),
        Job("x", profile_of("x", [(1, 9), (9, 1)], transition=1.0)),
        Job("y", profile_of("y", [(1, 9)])),
    )
    timeline = simulate(work, alone(work, [(0, 1), (0,)]))
    assert timeline.latency_ms == pytest.approx((3, 2))


def test_a_unit_waits_for_the_next_in_its_order() -> None:
    """y's only group could run at 0, but the order puts x's second group first."""
    x, y = profile_of("x", [(9, 2), (1, 9)]), profile_of("y", [(1, 9)])
    work = workload_of(NO_CONTENTION, Job("x", x), Job("y", y))
    units = (((1, 0),), ((0,),))
    forced = Schedule(units, ((Step(0, 0, 1), Step(1, 0, 0)), (Step(0, 0, 0),)))
    free = Schedule(units, ((Step(1, 0, 0), Step(0, 0, 1)), (Step(0, 0, 0),)))
    assert simulate(work, forced).latency_ms == pytest.approx((3, 4))
    assert simulate(work, free).latency_ms == pytest.approx((3, 1))


def test_a_serial_pair_has_no_concurrency_in_one_frame_and_has_it_in_a_stream() -> None:
    a, b = Job("a", profile_of("a", [(2, 9)])), Job("b", profile_of("b", [(9, 3)]), after=("a",))
    one = workload_of(Fixed(5, 5), a, b)
    assert simulate(one, alone(one, [(0,), (1,)])).makespan_ms == pytest.approx(5)
    for pipelined, makespan in ((True, 2 + 4 * 3), (False, 4 * 5)):
        work = workload_of(NO_CONTENTION, a, b, frames=4, pipelined=pipelined)
        rows = ((((0,),) * 4), (((1,),) * 4))
        order = tuple(tuple(Step(j, f, 0) for f in range(4)) for j in (0, 1))
        timeline = simulate(work, Schedule(rows, order))
        assert timeline.makespan_ms == pytest.approx(makespan)
        assert timeline.fps == pytest.approx(1000 / 3 if pipelined else 200)


def test_frames_in_flight_keep_a_fast_network_with_the_slow_one() -> None:
    """a takes 1 ms a frame and b 3: with two frames at once, a begins frame f when b has ended f - 2."""
    a, b = Job("a", profile_of("a", [(1, 9)])), Job("b", profile_of("b", [(9, 3)]), after=("a",))
    rows = ((((0,),) * 4), (((1,),) * 4))
    order = tuple(tuple(Step(j, f, 0) for f in range(4)) for j in (0, 1))
    begins = {}
    for most in (0, 1, 2):
        work = replace(workload_of(NO_CONTENTION, a, b, frames=4), in_flight=most)
        timeline = simulate(work, Schedule(rows, order))
        begins[most] = [s.start for s in timeline.segments if s.step.job == 0]
        assert timeline.makespan_ms == pytest.approx(16 if most == 1 else 13)
    assert begins[0] == pytest.approx([0, 1, 2, 3])
    assert begins[1] == pytest.approx([0, 4, 8, 12])
    assert begins[2] == pytest.approx([0, 1, 4, 7])


def test_iterations_of_a_network_follow_each_other_and_who_waits_waits_for_the_last() -> None:
    a = Job("a", profile_of("a", [(1, 9)]), iterations=3)
    work = workload_of(NO_CONTENTION, a, Job("b", profile_of("b", [(9, 1)]), after=("a",)))
    order = (tuple(Step(0, r, 0) for r in range(3)), (Step(1, 0, 0),))
    timeline = simulate(work, Schedule((((0,),) * 3, ((1,),)), order))
    assert timeline.latency_ms == pytest.approx((3, 4))
    assert timeline.sum_of_rates == pytest.approx(1000 / 3 + 250)


def test_epsilon_lets_the_next_group_begin_that_much_of_work_early() -> None:
    """x has 1 ms of 4 left at 3 ms; then both run at half speed: x ends at 5, y with 1 of 2 left at 6."""
    work = workload_of(Fixed(2), Job("x", profile_of("x", [(4,)])), Job("y", profile_of("y", [(2,)])))
    schedule = alone(work, [(0,), (0,)])
    assert simulate(work, schedule).latency_ms == pytest.approx((4, 6))
    timeline = simulate(work, schedule, epsilon_ms=1.0)
    assert timeline.latency_ms == pytest.approx((5, 6))
    assert max(s.start for s in timeline.segments) == pytest.approx(3)


def test_an_inserted_wait_begins_when_the_step_could() -> None:
    work = workload_of(NO_CONTENTION, Job("x", profile_of("x", [(1,), (1,)])))
    schedule = replace(alone(work, [(0, 0)]), idle_ms=((Step(0, 0, 1), 0.25),))
    assert simulate(work, schedule).makespan_ms == pytest.approx(2.25)


def test_energy_is_power_times_time_where_every_unit_states_it() -> None:
    work = workload_of(NO_CONTENTION, Job("x", profile_of("x", [(1, 2), (2, 1)])))
    assert simulate(work, alone(work, [(0, 1)])).millijoules is None
    units = (Unit("a", busy_watts=10.0, idle_watts=1.0), Unit("b", busy_watts=5.0, idle_watts=0.5))
    stated = replace(work, soc=SoC("small", units, 100.0, 100.0))
    assert simulate(stated, alone(stated, [(0, 1)])).millijoules == pytest.approx(10 + 1 + 5 + 0.5)


# -- laws --------------------------------------------------------------------------------------------------

SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_group_does_all_its_work_and_units_do_one_thing_at_a_time(seed: int) -> None:
    rng = Random(seed)
    work = random_workload(rng)
    timeline = simulate(work, random_schedule(rng, work, idle=True))
    free_at = [0.0] * len(work.soc.units)
    for s in timeline.segments:
        group = work.jobs[s.step.job].profile.groups[s.step.group]
        assert sum((p.end - p.start) / p.slowdown for p in s.pieces) == pytest.approx(group.ms[s.unit])
        assert (s.pieces[0].start, s.pieces[-1].end) == (s.start, s.end)
        assert all(a.end == b.start for a, b in zip(s.pieces, s.pieces[1:], strict=False))
        assert s.ready <= s.start
        assert free_at[s.unit] <= s.start
        free_at[s.unit] = s.end
    assert len(timeline.segments) == sum(
        work.runs(j) * len(m.profile.groups) for j, m in enumerate(work.jobs)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_units_may_be_renamed_and_reordered(seed: int) -> None:
    rng = Random(seed)
    work = random_workload(rng)
    schedule = random_schedule(rng, work)
    new = list(range(len(work.soc.units)))  # old unit -> new unit
    rng.shuffle(new)
    old = [new.index(u) for u in range(len(new))]

    def turned(profile: Profile) -> Profile:
        groups = tuple(
            type(g)(
                g.name, *(tuple(row[u] for u in old) for row in (g.ms, g.gb_per_second, g.out_ms, g.in_ms))
            )
            for g in profile.groups
        )
        return replace(profile, groups=groups, units=tuple(f"u{u}" for u in range(len(new))))

    assert isinstance(work.model, ThreeRegions)
    other = Workload(
        SoC("turned", tuple(Unit(f"u{u}") for u in range(len(new))), 100.0, 100.0),
        tuple(replace(job, profile=turned(job.profile)) for job in work.jobs),
        ThreeRegions(tuple(work.model.units[u] for u in old), 100.0),
        work.frames,
        work.pipelined,
        work.in_flight,
    )
    moved = Schedule(
        tuple(tuple(tuple(new[u] for u in row) for row in rows) for rows in schedule.units),
        tuple(schedule.order[u] for u in old),
    )
    expected, found = simulate(work, schedule), simulate(other, moved)
    assert found.latency_ms == pytest.approx(expected.latency_ms)
    assert found.fps == pytest.approx(expected.fps)


@pytest.mark.parametrize("seed", SEEDS)
def test_without_contention_it_is_the_longest_path(seed: int) -> None:
    rng = Random(seed)
    work = replace(random_workload(rng), model=NO_CONTENTION)
    schedule = random_schedule(rng, work)
    timeline = simulate(work, schedule)
    by_step = {s.step: s for s in timeline.segments}
    for order in schedule.order:
        for at, step in enumerate(order):
            earliest = by_step[order[at - 1]].end if at else 0.0
            segment = by_step[step]
            group = work.jobs[step.job].profile.groups[step.group]
            assert segment.start == pytest.approx(max(earliest, segment.ready))
            assert segment.end - segment.start == pytest.approx(group.ms[segment.unit])
            if step.group:
                before = by_step[Step(step.job, step.run, step.group - 1)]
                away = work.jobs[step.job].profile.transition_ms(step.group - 1, before.unit, segment.unit)
                assert segment.ready == pytest.approx(before.end + away)


@pytest.mark.parametrize("epsilon", [0.0, 0.15])
def test_it_agrees_with_a_judge_that_steps_through_time(epsilon: float) -> None:
    for seed in range(4):
        _compare(seed, epsilon, 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 24))
@pytest.mark.parametrize("epsilon", [0.0, 0.15])
def test_it_agrees_with_a_judge_in_finer_steps(seed: int, epsilon: float) -> None:
    _compare(seed, epsilon, 0.005)


def _compare(seed: int, epsilon: float, dt: float) -> None:
    rng = Random(1000 + seed)
    work = random_workload(rng)
    schedule = random_schedule(rng, work, idle=epsilon == 0)
    timeline = simulate(work, schedule, epsilon_ms=epsilon)
    ends = stepped(work, schedule, dt, epsilon)
    for segment in timeline.segments:
        assert ends[segment.step] == pytest.approx(segment.end, abs=dt * 2 * len(ends) + 1e-6)


# -- what is refused ---------------------------------------------------------------------------------------


def test_orders_that_wait_for_each_other_are_refused_by_name() -> None:
    work = workload_of(
        NO_CONTENTION,
        Job("x", profile_of("x", [(1, 1), (1, 1)])),
        Job("y", profile_of("y", [(1, 1), (1, 1)])),
    )
    crossed = Schedule(
        (((0, 1),), ((1, 0),)),
        ((Step(1, 0, 1), Step(0, 0, 0)), (Step(0, 0, 1), Step(1, 0, 0))),
    )
    with pytest.raises(IllegalSchedule, match="wait for each other: next are y run 0 g1, x run 0 g1"):
        simulate(work, crossed)


X, Y = Step(0, 0, 0), Step(0, 0, 1)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (Schedule((), ((), ())), "maps 0 networks"),
        (Schedule((((0, 0),),), ((X, Y),)), "orders 1 units"),
        (Schedule((((0, 0), (0, 0)),), ((X, Y), ())), "has 2 runs, not 1"),
        (Schedule((((0,),),), ((X,), ())), "maps 1 groups of 2"),
        (Schedule((((0, 2),),), ((X, Y), ())), "is on unit 2"),
        (Schedule((((0, 1),),), ((X,), (Y,))), "group g1 does not run on b"),
        (Schedule((((0, 0),),), ((X, Step(0, 0, 2)), ())), "not in the workload"),
        (Schedule((((0, 0),),), ((X, Step(-1, 0, 0)), ())), "not in the workload"),
        (Schedule((((0, 0),),), ((X,), (Y,))), "in the order of a unit that it does not run on"),
        (Schedule((((0, 0),),), ((X, X, Y), ())), "is ordered twice"),
        (Schedule((((0, 0),),), ((X,), ())), "is in no unit's order"),
        (Schedule((((0, 0),),), ((X, Y), ()), ((X, -1.0),)), "an idle time of -1.0 ms"),
        (Schedule((((0, 0),),), ((X, Y), ()), ((Step(0, 0, 7), 1.0),)), "an idle time"),
        (Schedule((((0, 0),),), ((X, Y), ()), ((X, 1.0), (X, 0.0))), "two idle times"),
        (Schedule((((0, 0),),), ((Y, X), ())), "wait for each other"),
    ],
)
def test_what_is_no_schedule_is_refused(schedule: Schedule, message: str) -> None:
    work = Workload(soc_of(2), (Job("n", profile_of("n", [(1, 1), (1, None)])),), NO_CONTENTION)
    with pytest.raises(IllegalSchedule, match=message) as caught:
        simulate(work, schedule)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("epsilon", [-1.0, float("nan"), float("inf")])
def test_an_epsilon_that_is_no_time_is_refused(epsilon: float) -> None:
    work = workload_of(NO_CONTENTION, Job("n", profile_of("n", [(1,)])))
    with pytest.raises(IllegalSchedule, match="epsilon"):
        simulate(work, alone(work, [(0,)]), epsilon_ms=epsilon)
