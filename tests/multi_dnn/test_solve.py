"""The planner as a whole: against its baselines, and what it claims."""

from __future__ import annotations

import signal
import sys
import threading
from itertools import pairwise
from random import Random

import pytest
from workloads import Fixed, profile_of, random_workload, workload_of

from onchip.base.errors import UsageError
from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn import published
from onchip.multi_dnn.baselines import baselines, herald, mensa
from onchip.multi_dnn.classes import parse_class
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.polish import polish
from onchip.multi_dnn.profile import Group, Profile
from onchip.multi_dnn.result.corunned import corunned_of
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solve import SolveOptions, solve
from onchip.multi_dnn.workload import Job, Workload
from onchip.planners.limits import Limits

near = pytest.approx
objectives = pytest.mark.parametrize("objective", Objective)
QUICK = SolveOptions(tries=200, nodes=2000)


def googlenet_twice(contention: str = "light", **options: object) -> Workload:
    soc = load_soc("xavier-agx")
    jobs = (Job("first", published.googlenet()), Job("second", published.googlenet()))
    return Workload(soc, jobs, soc.model(contention), **options)  # type: ignore[arg-type]


@objectives
def test_never_worse_than_the_best_baseline_and_never_below_the_bound(objective: Objective) -> None:
    rng = Random(21)
    for _ in range(40):
        workload = random_workload(rng)
        result = solve(workload, objective, QUICK)
        assert result.solution.cost_ms <= result.best_baseline.cost_ms(objective) * (1 + 1e-9)
        assert result.gain >= -1e-9
        again = simulate(workload, result.solution.schedule)
        assert objective.cost_ms(again) == near(result.solution.cost_ms)
        if objective != "throughput" or workload.frames == 1 or not workload.pipelined:
            assert result.solution.lower_bound_ms <= result.solution.cost_ms * (1 + 1e-9)


@pytest.mark.thorough
def test_of_what_costs_the_same_the_one_whose_networks_wait_least() -> None:
    """No baseline of the claim's class has the same makespan and lets the networks end sooner in all."""
    rng, ties = Random(8), 0
    for _ in range(60):
        workload = random_workload(rng)
        result = solve(workload, "latency", QUICK)
        mine, named = result.solution, parse_class(str(result.solution.claim))
        assert named is not None
        for rival in result.baselines:
            if rival.cost_ms(Objective.LATENCY) > mine.cost_ms * (1 + 1e-9):
                continue
            if named.why_not(rival.schedule, rival.timeline) is None:
                ties += 1
                assert sum(mine.timeline.latency_ms) <= sum(rival.timeline.latency_ms) * (1 + 1e-6)
    assert ties > 10


@pytest.mark.parametrize("switches", [0, 1, 2])
def test_few_switches_means_no_run_has_more(switches: int) -> None:
    """Not even a baseline that is better is taken then: the claim speaks of schedules of that class."""
    rng = Random(5)
    found = 0
    for _ in range(60):
        workload = random_workload(rng)
        if workload.frames > 1:
            continue
        try:
            result = solve(workload, "latency", SolveOptions(tries=100, nodes=2000, switches=switches))
        except UsageError:
            continue
        found += 1
        for runs in result.solution.schedule.units:
            for run in runs:
                assert sum(a != b for a, b in pairwise(run)) <= switches
    assert found > 10


def test_googlenet_twice_and_every_baseline() -> None:
    result = solve(googlenet_twice())
    by_name = {one.name: one.cost_ms(Objective.LATENCY) for one in result.baselines}
    assert by_name["gpu alone"] == near(4.640)
    assert by_name["whole networks"] == near(4.2124, abs=1e-3)
    assert set(by_name) == {
        "gpu alone",
        "dla alone",
        "whole networks",
        "Mensa-like",
        "Herald-like",
        "H2H-like",
        "contention-blind",
    }
    assert result.solution.claim.proved
    assert result.solution.cost_ms <= 3.598
    assert result.solution.cost_ms <= min(by_name.values())


@pytest.mark.parametrize("contention", ["medium", "heavy"])
def test_contention_makes_the_blind_optimum_lose_or_tie(contention: str) -> None:
    result = solve(googlenet_twice(contention))
    blind = next(one for one in result.baselines if one.name == "contention-blind")
    assert result.solution.cost_ms <= blind.cost_ms(Objective.LATENCY) * (1 + 1e-9)
    if contention == "heavy":
        assert result.gain > 0.02


def test_a_stream_of_a_serial_pair_gains_from_working_on_two_frames() -> None:
    serial = (Job("first", published.googlenet()), Job("second", published.googlenet(), after=("first",)))
    soc = load_soc("xavier-agx")
    streamed = Workload(soc, serial, soc.model("light"), frames=8)
    waiting = Workload(soc, serial, soc.model("light"), frames=8, pipelined=False)
    fast, slow = (solve(w, "throughput", QUICK).solution for w in (streamed, waiting))
    assert slow.cost_ms == near(4.640)  # one network at a time: the GPU does all
    assert fast.cost_ms < 3.6


def test_frames_that_wait_repeat_the_best_frame() -> None:
    once, often = googlenet_twice(), googlenet_twice(frames=3, pipelined=False)
    one, three = solve(once).solution, solve(often).solution
    assert three.cost_ms == near(one.cost_ms)
    assert three.timeline.makespan_ms == near(3 * one.cost_ms)
    assert three.claim == one.claim


def test_one_network_alone_is_solved_to_the_optimum() -> None:
    profile = profile_of("n", [(1, 5), (5, 2), (3, 9)], transition=0.5)
    solution = solve(workload_of(NO_CONTENTION, Job("n", profile))).solution
    assert solution.cost_ms == near(7.0)
    assert solution.claim.proved


def test_three_networks_share_two_units() -> None:
    jobs = [Job(n, profile_of(n, [(2, 2), (2, 2)])) for n in "abc"]
    solution = solve(workload_of(NO_CONTENTION, *jobs)).solution
    assert solution.cost_ms == near(6.0)  # 12 ms of work on two units
    assert solution.claim.proved
    assert solution.lower_bound_ms == near(6.0)


def test_mappings_with_few_switches_can_be_asked_for() -> None:
    one = solve(googlenet_twice(), options=SolveOptions(switches=1)).solution
    assert str(one.claim) == "optimal among schedules of at most 1 switches a run"
    assert one.cost_ms < 3.598


def test_delays_never_make_it_worse_and_are_said() -> None:
    plain = solve(googlenet_twice()).solution
    delayed = solve(googlenet_twice(), options=SolveOptions(delays=True)).solution
    assert delayed.cost_ms <= plain.cost_ms
    assert delayed.cost_ms >= plain.lower_bound_ms
    if delayed.schedule != plain.schedule:
        assert delayed.schedule.idle_ms
        assert str(delayed.claim) == "best found"


def test_a_delay_lets_a_group_meet_a_better_neighbour() -> None:
    # a's second group and b's second ruin each other; a millisecond of waiting keeps them apart.
    def group(name: str, ms: tuple[float | None, float | None], gb: float) -> Group:
        return Group(name, ms, (gb, gb), (0.0, 0.0), (0.0, 0.0))

    class Loud:
        def slowdown(self, unit: int, requested: float, external: float) -> float:
            return 10.0 if requested > 1 and external > 1 else 1.0

    a = Profile("a", "small", ("a", "b"), (group("quiet", (1.0, None), 0.0), group("loud", (2.0, None), 5.0)))
    b = Profile("b", "small", ("a", "b"), (group("loud", (None, 2.0), 5.0), group("long", (None, 9.0), 0.0)))
    result = solve(workload_of(Loud(), Job("a", a), Job("b", b)))
    assert result.solution.cost_ms > 11.5
    better = polish(result.solution, share=0.5)
    assert better.cost_ms == near(11.0)
    assert better.solver.endswith("and delays")


def long_pair() -> Workload:
    rng = Random(3)
    rows = [[(rng.uniform(1, 3), rng.uniform(1, 3)) for _ in range(n)] for n in (60, 10)]
    jobs = [Job(n, profile_of(n, row, transition=0.1)) for n, row in zip("ab", rows, strict=True)]
    return workload_of(Fixed(1.3, 1.2), *jobs)


def test_delays_obey_the_time_limit() -> None:
    plain = solve(long_pair()).solution
    polished = polish(plain, Limits(0.0))
    assert polished.ended == "time"
    assert polished.schedule == plain.schedule
    assert polished.claim == plain.claim


def test_ctrl_c_while_delays_are_tried_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[polish.__module__]
    judged = 0

    def pressed(*args: object) -> object:
        nonlocal judged
        judged += 1
        if judged == 5:
            signal.raise_signal(signal.SIGINT)
        return simulate(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "simulate", pressed)
    plain = solve(long_pair()).solution
    found = solve(long_pair(), options=SolveOptions(delays=True)).solution
    assert judged == 5
    assert found.ended == "stopped"
    assert found.cost_ms <= plain.cost_ms


def test_ctrl_c_during_baselines_gives_the_best_of_those_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*args: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(sys.modules[baselines.__module__], "mensa", pressed)
    result = solve(googlenet_twice())
    assert [one.name for one in result.baselines] == ["gpu alone", "dla alone", "whole networks"]
    assert not result.every_baseline
    assert result.solution.ended == "stopped"
    assert result.solution.cost_ms == near(result.best_baseline.cost_ms(Objective.LATENCY))


def test_without_time_there_is_one_baseline_and_that_is_said() -> None:
    result = solve(googlenet_twice(frames=20), "throughput", SolveOptions(time_limit=0.0, tries=100))
    assert [one.name for one in result.baselines] == ["gpu alone"]
    assert not result.every_baseline
    assert "no time for all baselines" in corunned_of(result, "light").note
    assert solve(googlenet_twice()).every_baseline


def test_baselines_leave_out_units_that_cannot_run_everything() -> None:
    jobs = [Job("a", profile_of("a", [(1, None), (1, 2)])), Job("b", profile_of("b", [(2, 1)]))]
    names = {one.name for one in baselines(workload_of(Fixed(1, 1), *jobs))}
    assert "a alone" in names
    assert "b alone" not in names


def test_mensa_looks_back_and_not_ahead() -> None:
    # Going to b for the second group costs 1 each way, and there is nothing to win there after it.
    profile = profile_of("n", [(1, 9), (4, 2.5), (1, 9)], transition=1.0)
    assert mensa(profile) == (0, 1, 0)
    assert sum((1, 1, 2.5, 1, 1)) > sum((1, 4, 1))


def test_herald_balances_load_and_forgets_transitions() -> None:
    jobs = [Job(n, profile_of(n, [(2, 2), (2, 2)], transition=50.0)) for n in "ab"]
    rows = herald(workload_of(Fixed(1, 1), *jobs))
    assert sorted(sum(rows, ())) == [0, 0, 1, 1]


@pytest.mark.thorough
def test_ctrl_c_in_the_middle_of_a_search_gives_the_best_so_far_with_its_bound() -> None:
    rows = [(1.0, 1.5), (2.0, 1.0), (1.5, 1.5), (1.0, 2.0), (1.2, 1.9)] * 4
    workload = workload_of(Fixed(1.3, 1.2), *(Job(n, profile_of(n, rows, transition=0.1)) for n in "abcd"))
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    # Without Ctrl-C it looks at so many states for hours.
    result = solve(workload, options=SolveOptions(tries=500, nodes=10**12))
    timer.join()
    assert result.solution.ended == "stopped"
    assert not result.solution.claim.proved
    assert result.gain >= -1e-9
    assert 0 < result.solution.lower_bound_ms <= result.solution.cost_ms


class Pressed:
    """A model in which every meeting slows down a little differently; Ctrl-C is pressed while it is asked."""

    def __init__(self, at: int = -1, times: int = 1) -> None:
        self.calls, self.at, self.times = 0, at, times

    def slowdown(self, unit: int, requested: float, external: float) -> float:
        self.calls += 1
        if self.at >= 0 and self.at <= self.calls < self.at + self.times:
            signal.raise_signal(signal.SIGINT)
        return 1 + 0.004 * requested * external / (unit + 20)


def three_on_three(model: Pressed) -> Workload:
    rng = Random(4)
    jobs = []
    for name in "abc":
        groups = tuple(
            Group(
                f"g{n}",
                tuple(rng.uniform(0.5, 2) for _ in range(3)),
                tuple(rng.uniform(5, 40) for _ in range(3)),
                (0.05,) * 3,
                (0.0,) * 3,
            )
            for n in range(10)
        )
        jobs.append(Job(name, Profile(name, "small", ("a", "b", "c"), groups)))
    return workload_of(model, *jobs)


def test_ctrl_c_while_a_search_asks_the_model_keeps_what_was_found() -> None:
    counted = Pressed()
    baselines(three_on_three(counted))
    model = Pressed(counted.calls + 2_000)
    result = solve(three_on_three(model), options=SolveOptions(tries=20_000, nodes=2000))
    assert result.solution.ended == "stopped"
    assert result.solution.solver == "local search"
    assert not result.solution.claim.proved
    assert 0 < result.solution.lower_bound_ms <= result.solution.cost_ms
    assert result.gain >= 0
    # The question is asked once more, then the search ends at once; the judge asks a few times as well.
    assert model.at < model.calls < model.at + 1_500


def test_ctrl_c_between_local_search_and_branch_and_bound_keeps_what_was_found() -> None:
    counted = Pressed()
    found = solve(three_on_three(counted), options=SolveOptions(tries=2000, nodes=0)).solution
    model = Pressed(counted.calls + 10)
    result = solve(three_on_three(model), options=SolveOptions(tries=2000, nodes=2000))
    assert result.solution.ended == "stopped"
    assert result.solution.cost_ms <= found.cost_ms


def test_ctrl_c_again_and_again_gives_the_best_baseline() -> None:
    counted = Pressed()
    baselines(three_on_three(counted))
    result = solve(
        three_on_three(Pressed(counted.calls + 2000, times=5)), options=SolveOptions(tries=20_000, nodes=2000)
    )
    assert result.solution.ended == "stopped"
    assert result.gain >= 0


def test_ctrl_c_between_two_searches_gives_the_best_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*args: object, **kwargs: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(sys.modules[solve.__module__], "solve_pair", pressed)
    result = solve(googlenet_twice())
    assert result.solution.ended == "stopped"
    assert str(result.solution.claim) == "best found"
    assert result.gain == near(0)
    assert 0 < result.solution.lower_bound_ms <= result.solution.cost_ms


@pytest.mark.parametrize("members", ["ab", "abc"])
def test_without_time_the_best_baseline_comes_with_its_bound(members: str) -> None:
    rows = [(1.0, 2.0), (2.0, 1.0), (1.5, 1.5)] * 60
    workload = workload_of(Fixed(1.3, 1.2), *(Job(n, profile_of(n, rows)) for n in members))
    result = solve(workload, options=SolveOptions(time_limit=0.0, tries=10**9, nodes=10**12))
    assert result.solution.ended == "time"
    assert not result.solution.claim.proved
    assert result.gain >= -1e-9
    assert 0 < result.solution.lower_bound_ms <= result.solution.cost_ms


def test_objectives_have_names() -> None:
    assert Objective.parse("rates") == "rates"
    with pytest.raises(UsageError, match="latency, throughput, rates"):
        Objective.parse("speed")
