"""The exact search for two networks against enumeration, its twin, and itself with its rules off."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corun_workloads import Shared, profiles, soc_of, workloads
from onchip.base.errors import UsageError
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn import published
from onchip.multi_dnn.bound import alone_ms
from onchip.multi_dnn.chains import chains_of, contention_table
from onchip.multi_dnn.dp import Pair, PairOptions, Rules, pairable, solve_pair
from onchip.multi_dnn.objective import Objective
from onchip.multi_dnn.profile import Group, Profile
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.solution import Claim
from onchip.multi_dnn.workload import Job, Workload
from onchip.papers.hax_conn.enumerate import best_by_enumeration
from oracles.corun_twin import ends

near = pytest.approx


def searched(workload: Workload, **options: object) -> float:
    chains = chains_of(workload)
    assert chains is not None
    units = len(workload.soc.units)
    table = contention_table(workload.model, *chains, units)
    return Pair(*chains, table, units).search(**options).value  # type: ignore[arg-type]


def twin(workload: Workload, *, any_order: bool) -> list[tuple[float, float]]:
    chains = chains_of(workload)
    assert chains is not None
    units = len(workload.soc.units)
    table = contention_table(workload.model, *chains, units)
    return list(ends(*chains, table, units, any_order=any_order))


@pytest.mark.thorough
@settings(max_examples=30)
@given(workloads(groups=3), st.sampled_from([Objective.LATENCY, Objective.RATES]))
def test_the_proved_best_is_the_best_of_every_mapping_and_order(workload: Workload, objective: str) -> None:
    every = best_by_enumeration(workload, objective)  # type: ignore[arg-type]
    found = solve_pair(workload, objective)  # type: ignore[arg-type]
    assert found.claim.proved
    assert found.cost_ms == near(every.cost_ms, rel=1e-9)
    assert found.lower_bound_ms <= every.cost_ms * (1 + 1e-9)


@pytest.mark.slow
@settings(max_examples=25)
@given(workloads(groups=4), st.sampled_from([Objective.LATENCY, Objective.RATES]))
def test_with_four_groups_each_too(workload: Workload, objective: str) -> None:
    every = best_by_enumeration(workload, objective)  # type: ignore[arg-type]
    assert solve_pair(workload, objective).cost_ms == near(every.cost_ms, rel=1e-9)  # type: ignore[arg-type]


@pytest.mark.thorough
@settings(max_examples=30)
@given(workloads(units=3, groups=2))
def test_three_units_are_searched_like_two(workload: Workload) -> None:
    assert solve_pair(workload).cost_ms == near(best_by_enumeration(workload).cost_ms, rel=1e-9)


@pytest.mark.thorough
@settings(max_examples=60)
@given(workloads(groups=4), st.booleans())
def test_the_twin_finds_the_same_in_both_spaces(workload: Workload, any_order: bool) -> None:
    least = min(max(both) for both in twin(workload, any_order=any_order))
    exact = Rules(dominance=False)
    assert searched(workload, any_order=any_order, rules=exact) == near(least, rel=1e-9)


@settings(max_examples=40)
@given(workloads(groups=4), st.booleans())
def test_bounds_change_nothing_and_dominance_never_makes_it_better(
    workload: Workload, any_order: bool
) -> None:
    plain = searched(workload, any_order=any_order, rules=Rules(dominance=False, bounds=False))
    assert searched(workload, any_order=any_order, rules=Rules(dominance=False)) == near(plain, rel=1e-8)
    quick = searched(workload, any_order=any_order)
    assert quick == near(searched(workload, any_order=any_order, rules=Rules(bounds=False)), rel=0.2)
    assert quick >= plain * (1 - 1e-8)


@pytest.mark.thorough
@settings(max_examples=40)
@given(workloads(groups=5))
def test_more_freedom_never_costs(workload: Workload) -> None:
    wide, narrow = (solve_pair(workload, options=PairOptions(any_order=free)) for free in (True, False))
    assert wide.cost_ms <= narrow.cost_ms * (1 + 1e-9)
    assert str(narrow.claim) == "optimal among non-delay schedules"


@pytest.mark.thorough
@settings(max_examples=40)
@given(workloads(groups=3))
def test_the_search_and_the_judge_agree_on_what_a_schedule_costs(workload: Workload) -> None:
    found = solve_pair(workload)
    exact = searched(workload, rules=Rules(dominance=False))
    assert simulate(workload, found.schedule).makespan_ms == near(exact, rel=1e-9)


@st.composite
def in_series(draw: st.DrawFn) -> Workload:
    a, b, c = (draw(profiles(2, groups, name)) for name, groups in (("a", 2), ("b", 1), ("c", 1)))
    jobs = (Job("a", a), Job("b", b, after=("a",)), Job("c", c, draw(st.integers(1, 2))))
    return Workload(soc_of(2), jobs, Shared(0.5))


@pytest.mark.thorough
@settings(max_examples=25)
@given(in_series())
def test_networks_in_series_and_repeated_ones_are_chains(workload: Workload) -> None:
    found = solve_pair(workload)
    assert found.claim.proved
    assert found.cost_ms == near(best_by_enumeration(workload).cost_ms, rel=1e-9)


def line(name: str, *ms: tuple[float | None, float | None], gb: float = 0.0) -> Profile:
    nothing = (0.0, 0.0)
    groups = tuple(Group(f"g{n}", times, (gb, gb), nothing, nothing) for n, times in enumerate(ms))
    return Profile(name, "tiny", ("u0", "u1"), groups)


def two(a: Profile, b: Profile, strength: float = 0.0) -> Workload:
    return Workload(soc_of(2), (Job("a", a), Job("b", b)), Shared(strength))


def test_waiting_for_a_better_unit_pays_only_where_orders_are_free() -> None:
    # b is ready for u0 at 1, a only at 2: who lets a go first is done at 9, who does not at 12.
    a = line("a", (None, 2.0), (1.0, None), (None, 6.0))
    b = line("b", (1.0, None), (4.0, None))
    workload = two(a, b)
    assert solve_pair(workload).cost_ms == near(9.0)
    assert solve_pair(workload, options=PairOptions(any_order=False)).cost_ms == near(12.0)


def test_dominance_can_cost_and_the_proof_mends_it() -> None:
    # Waiting for u1 although u0 is free keeps the two second groups apart, which slow each other down.
    def profile(name: str, second: tuple[float, float], gb: tuple[float, float]) -> Profile:
        nothing = (0.0, 0.0)
        groups = (
            Group("g0", (1.0, 1.0), nothing, nothing, nothing),
            Group("g1", second, gb, nothing, nothing),
        )
        return Profile(name, "tiny", ("u0", "u1"), groups)

    workload = two(profile("a", (1.0, 3.0), (0.5, 0.0)), profile("b", (2.0, 1.0), (0.0, 0.75)), strength=2.0)
    assert searched(workload) > 3.04
    assert searched(workload, rules=Rules(dominance=False)) == near(3.0)
    assert solve_pair(workload, options=PairOptions(prove=False)).cost_ms > 3.04
    assert solve_pair(workload).cost_ms == near(3.0)


def test_strong_contention_keeps_networks_from_running_at_once() -> None:
    one = line("one", (2.0, 2.0), gb=10.0)
    apart = solve_pair(two(one, replace(one, network="other"), strength=1.0))
    beside = solve_pair(two(one, replace(one, network="other"), strength=0.0))
    assert beside.cost_ms == near(2.0)
    assert apart.cost_ms == near(4.0)
    assert len(set(apart.schedule.units)) == 1


def test_a_known_schedule_is_kept_where_nothing_is_better() -> None:
    workload = two(line("a", (1.0, 2.0)), line("b", (2.0, 1.0)))
    best = solve_pair(workload)
    again = solve_pair(workload, known=best.schedule)
    assert again.schedule == best.schedule
    assert again.claim.proved


def test_without_time_a_known_schedule_comes_back_unproved() -> None:
    workload = two(*(line(n, *[(1.0, 2.0), (2.0, 1.0), (1.5, 1.5)] * 80, gb=1.0) for n in "ab"), strength=0.3)
    known = solve_pair(workload, options=PairOptions(width=2, prove=False)).schedule
    ended = solve_pair(workload, options=PairOptions(time_limit=0.0), known=known)
    assert ended.ended == "time"
    assert not ended.claim.proved
    assert 0 < ended.lower_bound_ms <= ended.cost_ms


def test_a_narrow_search_says_so() -> None:
    workload = two(*(line(n, *[(1.0, 2.0), (2.0, 1.0), (1.5, 1.5)] * 5, gb=1.0) for n in "ab"), strength=0.3)
    narrow = solve_pair(workload, options=PairOptions(width=1))
    assert narrow.ended == "width"
    assert not narrow.claim.proved
    assert narrow.cost_ms < inf


def test_what_is_not_two_chains_is_refused() -> None:
    net = line("net", (1.0, 1.0))
    three = Workload(soc_of(2), tuple(Job(n, net) for n in "abc"), Shared())
    with pytest.raises(UsageError, match="two networks"):
        solve_pair(three)


def test_the_rates_of_networks_in_series_and_too_many_groups_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = line("net", (1.0, 1.0))
    series = Workload(soc_of(2), (Job("a", net), Job("b", net, after=("a",)), Job("c", net)), Shared())
    assert pairable(series, Objective.LATENCY)
    assert not pairable(series, Objective.RATES)
    with pytest.raises(UsageError, match="rates of networks in series"):
        solve_pair(series, Objective.RATES)
    monkeypatch.setattr(sys.modules[solve_pair.__module__], "MEETINGS", 3)
    with pytest.raises(UsageError, match="does not take so many groups"):
        solve_pair(two(net, net))


@pytest.mark.parametrize("name", ["light", "medium", "heavy"])
def test_googlenet_twice_on_xavier(name: str) -> None:
    soc = load_soc("xavier-agx")
    jobs = (Job("first", published.googlenet()), Job("second", published.googlenet()))
    workload = Workload(soc, jobs, soc.model(name))
    found = solve_pair(workload)
    assert found.claim == Claim("any order", True)
    assert found.lower_bound_ms <= found.cost_ms < 4.640
    if name == "light":
        assert found.cost_ms <= 3.598
    few = solve_pair(workload, options=PairOptions(any_order=False))
    assert few.claim.proved
    assert few.cost_ms >= found.cost_ms * (1 - 1e-9)


def relaxed(workload: Workload) -> float:
    """The linear program over prices that docs/corun-search.md describes, solved by others."""
    from ortools.linear_solver import pywraplp

    chains = chains_of(workload)
    assert chains is not None
    units = len(workload.soc.units)
    slow = contention_table(workload.model, *chains, units)
    solver = pywraplp.Solver.CreateSolver("CLP")
    of_move = [solver.NumVar(0, 1, "") for _ in chains]
    solver.Add(of_move[0] + of_move[1] <= 1)
    prices, total = [], []
    for n, chain in enumerate(chains):
        price = [solver.NumVar(0, 1, "") for _ in chain.work]
        rest = [solver.NumVar(0, solver.infinity(), "") for _ in chain.work]
        least = solver.NumVar(0, solver.infinity(), "")
        for i, work in enumerate(chain.work):
            if work == inf:
                continue
            solver.Add(price[i] + of_move[1 - n] <= 1)
            if i < units:
                solver.Add(least <= rest[i])
            after = range((i // units + 1) * units, min(len(rest), (i // units + 2) * units))
            if not after:
                solver.Add(rest[i] <= work * price[i])
            for k in after:
                if chain.work[k] < inf:
                    move = chain.move[i * units + k % units]
                    solver.Add(rest[i] <= work * price[i] + move * of_move[n] + rest[k])
        prices.append(price)
        total.append(least)
    columns = len(prices[1])
    for i, x in enumerate(prices[0]):
        for j, y in enumerate(prices[1]):
            if i % units != j % units and chains[0].work[i] < inf and chains[1].work[j] < inf:
                at = i * columns + j
                solver.Add(x * (1 / slow[0][at]) + y * (1 / slow[1][at]) <= 1)
    solver.Maximize(total[0] + total[1])
    assert solver.Solve() == solver.OPTIMAL
    return float(solver.Objective().Value())


@settings(max_examples=25)
@given(workloads(groups=5))
def test_prices_bound_what_a_linear_program_bounds(workload: Workload) -> None:
    chains = chains_of(workload)
    assert chains is not None
    found = solve_pair(workload, options=PairOptions(prove=False))
    best = max(relaxed(workload), *(alone_ms(job.profile) for job in workload.jobs))
    assert found.lower_bound_ms <= best * (1 + 1e-6)
    assert found.lower_bound_ms >= 0.8 * best
