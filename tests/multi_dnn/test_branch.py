"""Branch and bound against enumeration, the exact search for two chains, and its twin."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workloads import Fixed, profile_of, workload_of

from corun_workloads import workloads
from onchip.base.errors import UsageError
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn import published
from onchip.multi_dnn.branch import BranchOptions, branchable, solve_branching
from onchip.multi_dnn.chains import chains_of, contention_table
from onchip.multi_dnn.dp import PairOptions, solve_pair
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.solution import Claim
from onchip.multi_dnn.workload import Job, Workload
from onchip.papers.hax_conn.enumerate import best_by_enumeration
from oracles.corun_twin import ends

near = pytest.approx
aims = st.sampled_from([Objective.LATENCY, Objective.RATES])


@settings(max_examples=20)
@given(workloads(groups=3), aims)
def test_two_networks_in_every_mapping_and_order(workload: Workload, objective: str) -> None:
    found = solve_branching(workload, objective)  # type: ignore[arg-type]
    assert found.claim == Claim("any order", True)
    assert found.cost_ms == near(best_by_enumeration(workload, objective).cost_ms, rel=1e-9)  # type: ignore[arg-type]
    assert found.lower_bound_ms <= found.cost_ms * (1 + 1e-9)


@settings(max_examples=8)
@given(workloads(jobs=3, groups=2), aims)
def test_three_networks(workload: Workload, objective: str) -> None:
    found = solve_branching(workload, objective)  # type: ignore[arg-type]
    assert found.cost_ms == near(best_by_enumeration(workload, objective).cost_ms, rel=1e-9)  # type: ignore[arg-type]
    assert found.lower_bound_ms <= found.cost_ms * (1 + 1e-9)


@settings(max_examples=15)
@given(workloads(jobs=3, groups=1, units=3), aims)
def test_three_networks_on_three_units(workload: Workload, objective: str) -> None:
    found = solve_branching(workload, objective)  # type: ignore[arg-type]
    assert found.cost_ms == near(best_by_enumeration(workload, objective).cost_ms, rel=1e-9)  # type: ignore[arg-type]


@settings(max_examples=30)
@given(workloads(groups=3), st.integers(0, 2))
def test_few_switches(workload: Workload, switches: int) -> None:
    options = BranchOptions(switches=switches)
    try:
        every = best_by_enumeration(workload, switches=switches).cost_ms
    except UsageError:
        with pytest.raises(UsageError, match="more switches"):
            solve_branching(workload, options=options)
        return
    found = solve_branching(workload, options=options)
    assert found.claim == Claim("few switches", True, switches)
    assert found.cost_ms == near(every, rel=1e-9)


@settings(max_examples=15)
@given(workloads(groups=4))
def test_the_twin_agrees_on_non_delay_schedules(workload: Workload) -> None:
    chains = chains_of(workload)
    assert chains is not None
    table = contention_table(workload.model, *chains, 2)
    least = min(max(both) for both in ends(*chains, table, 2, any_order=False))
    assert solve_branching(workload, options=BranchOptions(any_order=False)).cost_ms == near(least, rel=1e-9)


@settings(max_examples=30)
@given(workloads(groups=5))
def test_the_exact_search_for_two_agrees(workload: Workload) -> None:
    assert solve_branching(workload).cost_ms == near(solve_pair(workload).cost_ms, rel=1e-8)


def test_googlenet_twice_with_one_switch_each() -> None:
    soc = load_soc("xavier-agx")
    jobs = (Job("first", published.googlenet()), Job("second", published.googlenet()))
    workload = Workload(soc, jobs, soc.model("light"))
    one = solve_branching(workload, options=BranchOptions(switches=1))
    assert one.claim.proved
    assert one.cost_ms >= solve_pair(workload, options=PairOptions(prove=False)).cost_ms * (1 - 1e-9)
    assert one.cost_ms < 3.598


def test_repeated_runs_may_each_change_their_unit() -> None:
    # Each run is fastest with one change; two runs make two, besides a free one between them.
    job = Job("n", profile_of("n", [(1, 9), (9, 1)]), 2)
    found = solve_branching(workload_of(Fixed(1, 1), job), options=BranchOptions(switches=1))
    assert found.cost_ms == near(4.0)


def test_when_the_states_run_out_a_known_schedule_stands() -> None:
    rows = [(1.0, 1.5), (2.0, 1.0), (1.5, 1.5), (1.0, 2.0), (1.2, 1.9)]
    jobs = [Job(n, profile_of(n, rows, transition=0.1)) for n in "abc"]
    workload = workload_of(Fixed(1.3, 1.2), *jobs)
    quick = solve_branching(workload, options=BranchOptions(nodes=2000))
    again = solve_branching(workload, options=BranchOptions(nodes=10), known=quick.schedule)
    assert again.ended == "nodes"
    assert not again.claim.proved
    assert again.schedule == quick.schedule


def test_what_it_takes() -> None:
    net = profile_of("n", [(1, 1)])
    nine = workload_of(Fixed(1, 1), *(Job(f"n{n}", net) for n in range(9)))
    assert not branchable(nine, Objective.LATENCY)
    with pytest.raises(UsageError, match="at most 8"):
        solve_branching(nine)
    assert not branchable(workload_of(Fixed(1, 1), Job("a", net), frames=2), Objective.LATENCY)


@pytest.mark.parametrize("objective", [Objective.LATENCY, Objective.RATES])
def test_very_many_ways_to_begin_obey_the_limits(objective: str) -> None:
    # 8 networks on 8 units: 8^8 first units, and for each who begins.
    units = 8
    jobs = [
        Job(f"n{n}", profile_of(f"n{n}", [tuple(1 + (3 * n + u) % 5 for u in range(units))] * 2))
        for n in range(8)
    ]
    workload = workload_of(Fixed(*[1.5] * units), *jobs)
    known = solve_branching(workload, options=BranchOptions(nodes=1000)).schedule
    asked: list[int] = []

    def stop(nodes: int) -> bool:
        asked.append(nodes)
        return len(asked) == 3

    found = solve_branching(workload, objective, BranchOptions(nodes=10**9), known=known, stop=stop)  # type: ignore[arg-type]
    assert found.ended == "stopped"
    assert not found.claim.proved
    limited = BranchOptions(nodes=10**9, time_limit=0.0)
    assert solve_branching(workload, objective, limited, known=known).ended == "time"  # type: ignore[arg-type]
    assert solve_branching(workload, objective, BranchOptions(nodes=5), known=known).ended == "nodes"  # type: ignore[arg-type]


def test_what_it_does_not_take_is_said() -> None:
    net = profile_of("n", [(1, 1)])
    a, b = Job("a", net), Job("b", net)
    joined = workload_of(Fixed(1, 1), a, b, Job("c", net, after=("a", "b")))
    with pytest.raises(UsageError, match="after several others"):
        solve_branching(joined, options=BranchOptions(switches=1))
    with pytest.raises(UsageError, match="rates of networks in series"):
        solve_branching(workload_of(Fixed(1, 1), a, Job("b", net, after=("a",))), Objective.RATES)
    with pytest.raises(UsageError, match="one frame only"):
        solve_branching(workload_of(Fixed(1, 1), a, b, frames=2))
    with pytest.raises(UsageError, match="at most 3000 groups over all runs, not 3002"):
        solve_branching(workload_of(Fixed(1, 1), Job("a", net, 3001), b))
