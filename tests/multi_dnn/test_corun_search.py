"""Local search, its player and the bounds, against the judge and enumeration."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workloads import Fixed, profile_of, random_schedule, random_workload, workload_of

from corun_workloads import workloads as pairs
from onchip.multi_dnn.bound import alone_ms, alone_row, load_bound, lower_bound
from onchip.multi_dnn.dispatch import first_come
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.search import SearchOptions, improve, pattern_of, played_ms
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.tasks import one_frame, tasks_of
from onchip.multi_dnn.workload import Job, Workload
from onchip.papers.hax_conn.enumerate import best_by_enumeration

near = pytest.approx
objectives = pytest.mark.parametrize("objective", Objective)


def transposed(rng: Random, workload: Workload):  # type: ignore[no-untyped-def]
    """A pattern of a random schedule of one frame."""
    return pattern_of(workload, random_schedule(rng, one_frame(workload)))


@objectives
def test_the_player_and_the_judge_agree(objective: Objective) -> None:
    rng = Random(7)
    for _ in range(150):
        workload = random_workload(rng)
        pattern = transposed(rng, workload)
        judged = improve(workload, objective, [pattern], SearchOptions(tries=0))
        assert played_ms(workload, objective, pattern) == near(judged.cost_ms, rel=1e-9)


@objectives
def test_search_is_never_worse_than_where_it_began(objective: Objective) -> None:
    rng = Random(8)
    better = 0
    for _ in range(60):
        workload = random_workload(rng)
        patterns = [transposed(rng, workload) for _ in range(2)]
        least = min(played_ms(workload, objective, pattern) for pattern in patterns)
        found = improve(workload, objective, patterns, SearchOptions(tries=300))
        assert found.cost_ms <= least * (1 + 1e-9)
        assert not found.claim.proved
        better += found.cost_ms < least * 0.999
    assert better > 20


@pytest.mark.thorough
def test_a_long_stream_is_asked_about_its_limits_at_every_schedule() -> None:
    jobs = [Job(n, profile_of(n, [(1, 2), (2, 1), (1.5, 1.5)])) for n in "ab"]
    workload = workload_of(Fixed(1.2, 1.3), *jobs, frames=2000)
    start = transposed(Random(4), workload)
    asked: list[int] = []

    def stop(tries: int, best: float) -> bool:
        asked.append(tries)
        return len(asked) == 4

    found = improve(workload, Objective.THROUGHPUT, [start], SearchOptions(tries=1000), stop=stop)
    assert found.ended == "stopped"
    # 12,000 tasks a schedule; moves that change nothing count as tries, too.
    assert asked[0] == 1
    assert asked[-1] < 50
    limited = SearchOptions(tries=1000, time_limit=0.0)
    assert improve(workload, Objective.THROUGHPUT, [start], limited).ended == "time"
    assert improve(workload, Objective.THROUGHPUT, [start], SearchOptions(tries=3)).ended == "complete"


@pytest.mark.thorough
def test_search_finds_the_best_of_three_small_networks() -> None:
    rng = Random(9)
    for _ in range(4):
        rows = [[(rng.uniform(1, 3), rng.uniform(1, 3)) for _ in range(2)] for _ in range(3)]
        jobs = [Job(f"n{n}", profile_of(f"n{n}", row, transition=0.2)) for n, row in enumerate(rows)]
        workload = workload_of(Fixed(1.2, 1.4), *jobs)
        best = best_by_enumeration(workload).cost_ms
        found = improve(workload, Objective.LATENCY, [transposed(rng, workload)], SearchOptions(tries=6000))
        assert best * (1 - 1e-9) <= found.cost_ms <= best * 1.02
        assert found.lower_bound_ms <= best


def test_the_same_seed_gives_the_same_schedule() -> None:
    workload = random_workload(Random(11))
    pattern = transposed(Random(1), workload)
    one, two = (improve(workload, Objective.LATENCY, [pattern], SearchOptions(500, seed=3)) for _ in range(2))
    assert one.schedule == two.schedule


def test_a_search_can_be_stopped_and_says_so() -> None:
    rows = [(1.0, 2.0)] * 6
    workload = workload_of(Fixed(1.5, 1.5), *(Job(n, profile_of(n, rows)) for n in "abc"))
    pattern = transposed(Random(1), workload)
    found = improve(
        workload, Objective.LATENCY, [pattern], SearchOptions(10_000_000), stop=lambda tries, best: True
    )
    assert found.ended == "stopped"


def test_an_error_in_a_model_comes_through() -> None:
    class Broken:
        def slowdown(self, unit: int, requested: float, external: float) -> float:
            raise ZeroDivisionError("of the model")

    jobs = [Job(n, profile_of(n, [(1, 1), (1, 1)])) for n in "ab"]
    good = workload_of(Fixed(1, 1), *jobs)
    with pytest.raises(ZeroDivisionError, match="of the model"):
        first_come(workload_of(Broken(), *jobs), [[[0, 0]], [[1, 1]]])
    with pytest.raises(ZeroDivisionError, match="of the model"):
        played_ms(
            workload_of(Broken(), *jobs),
            Objective.LATENCY,
            pattern_of(good, first_come(good, [[[0, 0]], [[1, 1]]])),
        )


def test_first_come_takes_what_is_ready_first_and_never_waits() -> None:
    rng = Random(12)
    for _ in range(80):
        workload = random_workload(rng)
        units = random_schedule(rng, workload).units
        timeline = simulate(workload, first_come(workload, units))
        free = [0.0] * len(workload.soc.units)
        waited = [0.0] * len(workload.soc.units)
        for segment in timeline.segments:
            assert segment.start == near(max(segment.ready, free[segment.unit]), abs=1e-9)
            assert segment.ready >= waited[segment.unit] - 1e-9
            free[segment.unit], waited[segment.unit] = segment.end, segment.ready


@pytest.mark.thorough
@settings(max_examples=40)
@given(pairs(groups=3), st.sampled_from(Objective))
def test_bounds_are_below_the_best(workload: Workload, objective: Objective) -> None:
    assert lower_bound(workload, objective) <= best_by_enumeration(workload, objective).cost_ms * (1 + 1e-9)


def test_bounds_are_below_whatever_is_found() -> None:
    rng = Random(13)
    for _ in range(100):
        workload = random_workload(rng)
        schedule = random_schedule(rng, workload)
        timeline = simulate(workload, schedule)
        for objective in Objective:
            if objective == "throughput" and workload.frames > 1 and workload.pipelined:
                continue  # holds in the long run
            assert lower_bound(workload, objective) <= objective.cost_ms(timeline) * (1 + 1e-9)


@settings(max_examples=40)
@given(pairs(jobs=1, groups=5, units=3))
def test_a_network_alone_takes_its_shortest_way(workload: Workload) -> None:
    profile = workload.jobs[0].profile
    best = best_by_enumeration(workload).cost_ms
    assert alone_ms(profile) == near(best)
    assert simulate(workload, first_come(workload, [[alone_row(profile)]])).makespan_ms == near(best)


def test_the_load_bound_shares_work_out() -> None:
    # 6 ms of work that either unit does equally fast, for two units: 3 ms.
    jobs = [Job(n, profile_of(n, [(1, 1)] * 3)) for n in "ab"]
    assert load_bound(workload_of(Fixed(1, 1), *jobs)) == near(3.0)
    assert lower_bound(workload_of(Fixed(1, 1), *jobs), Objective.LATENCY) == near(3.0)


def test_a_serial_pair_streams_one_frame_apart() -> None:
    jobs = (Job("a", profile_of("a", [(2, 9)])), Job("b", profile_of("b", [(9, 2)]), after=("a",)))
    workload = workload_of(Fixed(1, 1), *jobs, frames=8)
    assert tasks_of(workload).lag == [0, 1]
    pattern = pattern_of(workload, first_come(one_frame(workload), [[[0]], [[1]]]))
    found = improve(workload, Objective.THROUGHPUT, [pattern], SearchOptions(tries=0))
    assert found.cost_ms == near(2.0)
    assert found.timeline.fps == near(500.0)
    assert found.lower_bound_ms == near(2.0)
