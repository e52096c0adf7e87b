"""Schedules while networks change: swaps at frames, dropped searches, no thread left, and what is found."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workloads import profile_of, workload_of

from corun_workloads import workloads
from onchip.base.errors import ProfileError, UsageError, WorkerLost
from onchip.machines.contention import NO_CONTENTION
from onchip.multi_dnn.baselines import baselines
from onchip.multi_dnn.dispatch import first_come
from onchip.multi_dnn.dynamic import DynamicScheduler, StaticScheduler, frames_of
from onchip.multi_dnn.improvements import Stopped, improvements, naive
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.schedule import Schedule, Step
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solution import Claim, Solution
from onchip.multi_dnn.solve import solve
from onchip.multi_dnn.workload import Job, Workload
from onchip.papers.hax_conn.enumerate import best_by_enumeration


def work(*names: str, frames: int = 1) -> Workload:
    """Networks of two groups, the first fast on unit a, the second on b: best split at once."""
    rows = [(1, 4), (4, 1)]
    return workload_of(NO_CONTENTION, *(Job(n, profile_of(n, rows)) for n in names), frames=frames)


def solution(workload: Workload, schedule: Schedule, solver: str, *, proved: bool = False) -> Solution:
    timeline = simulate(workload, schedule)
    return Solution(schedule, timeline, Objective.LATENCY, Claim("any order", proved), 0.0, 0.0, solver)


def mapped(workload: Workload, *rows: tuple[int, ...]) -> Schedule:
    return first_come(workload, [[row] for row in rows])


BEST = ((0, 1), (0, 1))


def better(workload: Workload) -> Schedule:
    """The best one, but the second network begins later."""
    return replace(mapped(workload, *BEST), idle_ms=((Step(1, 0, 0), 1.0),))


def scripted(
    workload: Workload, objective: Objective, known: Schedule, stopped: Stopped
) -> Iterator[Solution]:
    yield solution(workload, better(workload), "first")
    yield solution(workload, mapped(workload, *BEST), "second", proved=True)


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "onchip-corun"]


def test_better_schedules_take_effect_at_the_next_frame_only() -> None:
    go = threading.Event()

    def held(
        workload: Workload, objective: Objective, known: Schedule, stopped: Stopped
    ) -> Iterator[Solution]:
        go.wait()
        yield from scripted(workload, objective, known, stopped)

    with DynamicScheduler(improver=held) as scheduler:
        first = scheduler.change(work("x", "y"))
        assert scheduler.frame() is first
        assert first.solver == "naive"
        running = scheduler.frame()
        go.set()
        assert scheduler.settle()
        assert running is first  # the frame that was handed out goes on as it is
        after = scheduler.frame()
        assert (after.solver, after.proved) == ("second", True)
        assert after.cost_ms() < first.cost_ms()
        costs = [answer.cost_ms() for answer in scheduler.history]
        assert [answer.solver for answer in scheduler.history] == ["naive", "first", "second"]
        assert costs == sorted(costs, reverse=True)


def test_a_known_set_is_answered_with_the_best_known_and_not_searched_again() -> None:
    searches: list[Workload] = []

    def counted(
        workload: Workload, objective: Objective, known: Schedule, stopped: Stopped
    ) -> Iterator[Solution]:
        searches.append(workload)
        yield from scripted(workload, objective, known, stopped)

    with DynamicScheduler(improver=counted) as scheduler:
        scheduler.change(work("x", "y"))
        scheduler.settle()
        scheduler.change(work("x", "z"))
        scheduler.settle()
        again = scheduler.change(work("x", "y"))
        assert scheduler.settle()
        assert (again.solver, again.proved) == ("known", True)
        assert again.schedule == mapped(work("x", "y"), *BEST)
        assert scheduler.frame() is again
    assert searches == [work("x", "y"), work("x", "z")]


def test_a_change_drops_the_search_but_keeps_what_it_had_found() -> None:
    found, dropped = threading.Event(), threading.Event()

    def endless(
        workload: Workload, objective: Objective, known: Schedule, stopped: Stopped
    ) -> Iterator[Solution]:
        if workload.jobs[1].name == "z":
            return
        yield solution(workload, better(workload), "first")
        found.set()
        while not stopped():
            threading.Event().wait(0.001)
        dropped.set()
        yield solution(workload, mapped(workload, *BEST), "late")

    with DynamicScheduler(improver=endless) as scheduler:
        scheduler.change(work("x", "y"))
        found.wait()
        other = scheduler.change(work("x", "z"))
        scheduler.settle()
        assert dropped.is_set()
        assert scheduler.frame() is other  # nothing of the first set is handed out for the second
        back = scheduler.change(work("x", "y"))
        assert (back.solver, back.proved) == ("known", False)
        assert back.schedule == mapped(work("x", "y"), *BEST)


def test_closing_ends_the_search_and_leaves_no_thread() -> None:
    begun = threading.Event()

    def endless(
        workload: Workload, objective: Objective, known: Schedule, stopped: Stopped
    ) -> Iterator[Solution]:
        begun.set()
        while not stopped():
            threading.Event().wait(0.001)
        yield from ()

    scheduler = DynamicScheduler(improver=endless)
    scheduler.change(work("x", "y"))
    begun.wait()
    assert len(threads()) == 1
    scheduler.close()
    scheduler.close()
    assert not threads()
    with pytest.raises(UsageError, match="is closed"):
        scheduler.change(work("x", "y"))


def test_the_thread_ends_by_itself_when_nothing_is_left_and_comes_back_for_a_change() -> None:
    with DynamicScheduler(improver=scripted) as scheduler:
        for name in ("y", "z", "v"):
            scheduler.change(work("x", name))
            assert scheduler.settle()
            for thread in threads():
                thread.join()
            assert not threads()
            assert scheduler.frame().solver == "second"


def test_what_the_search_raises_is_raised_to_the_caller() -> None:
    def broken(
        workload: Workload, objective: Objective, known: Schedule, stopped: Stopped
    ) -> Iterator[Solution]:
        raise UsageError("cannot", where="search")

    scheduler = DynamicScheduler(improver=broken)
    scheduler.change(work("x", "y"))
    with pytest.raises(UsageError, match="search: cannot"):
        scheduler.settle()
    assert scheduler.frame().solver == "naive"
    scheduler.close()


def test_what_is_no_set_of_networks_is_refused() -> None:
    with DynamicScheduler() as scheduler:
        with pytest.raises(UsageError, match="has no networks yet"):
            scheduler.frame()
        with pytest.raises(ProfileError, match="one frame at a time"):
            scheduler.change(work("x", "y", frames=2))
    with pytest.raises(UsageError, match="no sets"):
        StaticScheduler({})


def test_three_changes_end_where_the_planner_does() -> None:
    sets = [work("x", "y"), work("x"), work("x", "y", "z"), work("x", "y")]
    with DynamicScheduler() as scheduler:
        for workload in sets:
            scheduler.change(workload)
            assert scheduler.settle()
            answer = scheduler.frame()
            assert answer.workload == workload
            assert answer.cost_ms() <= solve(workload).solution.cost_ms * (1 + 1e-9)
    assert not threads()


@settings(max_examples=12)
@given(workloads(groups=3), st.sampled_from([Objective.LATENCY, Objective.RATES]))
def test_improvements_only_get_better_and_end_at_the_best_of_all(
    workload: Workload, objective: Objective
) -> None:
    known = naive(workload)
    found = list(improvements(workload, objective, known, lambda: False))
    costs = [objective.cost_ms(simulate(workload, known)), *(one.cost_ms for one in found)]
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(costs))
    assert costs[-1] == pytest.approx(best_by_enumeration(workload, objective).cost_ms, rel=1e-9)


@settings(max_examples=8)
@given(workloads(jobs=3, groups=3))
def test_three_networks_are_never_worse_than_a_baseline(workload: Workload) -> None:
    *_, last = improvements(workload, Objective.LATENCY, naive(workload), lambda: False)
    assert last.cost_ms <= min(one.cost_ms(Objective.LATENCY) for one in baselines(workload)) * (1 + 1e-9)


@settings(max_examples=6)
@given(workloads(jobs=3, groups=2))
def test_three_small_networks_end_at_the_proved_best_of_all(workload: Workload) -> None:
    *_, last = improvements(workload, Objective.LATENCY, naive(workload), lambda: False)
    assert last.claim.proved
    assert last.cost_ms == pytest.approx(best_by_enumeration(workload).cost_ms, rel=1e-9)


@settings(max_examples=8)
@given(workloads(jobs=2, groups=3))
def test_the_first_answer_is_legal_and_as_good_as_whole_networks(workload: Workload) -> None:
    first = simulate(workload, naive(workload)).makespan_ms
    for one in baselines(workload):
        if one.name.endswith("alone") or one.name == "whole networks":
            assert first <= one.timeline.makespan_ms * (1 + 1e-9)


def test_a_stopped_search_finds_nothing_more() -> None:
    assert list(improvements(work("x", "y"), Objective.LATENCY, naive(work("x", "y")), lambda: True)) == []


def test_latency_over_time_swaps_at_frame_boundaries() -> None:
    ticks = count()
    with DynamicScheduler(improver=scripted, clock=lambda: next(ticks) * 0.003) as scheduler:
        for name in ("y", "z"):
            scheduler.change(work("x", name))
            scheduler.settle()
        history = scheduler.history
    first, mid, best = (answer.cost_ms() for answer in history[:3])
    frames = frames_of(history, 0.05)
    for set_began in (0.0, next(f.seconds for f in frames if f.seconds >= 0.05)):
        own = [f for f in frames if set_began <= f.seconds < set_began + 0.05]
        assert own[0].milliseconds == first
        assert own[-1].milliseconds == best
        assert {f.milliseconds for f in own} <= {first, mid, best}
    for one, other in pairwise(frames):
        assert other.seconds == pytest.approx(one.seconds + one.milliseconds / 1000)
        if one.answer.workload == other.answer.workload:
            assert other.milliseconds <= one.milliseconds


def test_static_sets_are_solved_beforehand_and_switched_at_frames() -> None:
    sets = {"track": work("x", "y"), "find": work("x", "z", "v")}
    static = StaticScheduler(sets)
    assert static.frame() == solve(sets["track"]).solution.schedule
    static.select("find")
    assert static.running == "track"
    schedule = static.frame()
    assert static.running == "find"
    assert simulate(sets["find"], schedule).makespan_ms == static.results["find"].solution.cost_ms
    with pytest.raises(UsageError, match="has no set 'land'; there are track, find"):
        static.select("land")


def test_a_search_that_never_comes_back_ends_with_a_line() -> None:
    told = threading.Event()

    def deaf(*_: object) -> Iterator[Solution]:
        told.wait(60)  # whatever it is told
        yield from ()

    scheduler = DynamicScheduler(improver=deaf, patience=0.1)
    first, second = work("one", "two"), work("one")
    scheduler.change(first)
    assert not scheduler.settle(0.01)  # it may take its time, as long as nobody has told it to stop
    scheduler.change(second)
    with pytest.raises(WorkerLost, match=r"did not come back within 0\.1 s"):
        scheduler.settle()
    assert scheduler.frame().workload == second  # frames go on
    with pytest.raises(WorkerLost, match=r"did not come back within 0\.1 s"):
        scheduler.close()
    told.set()
