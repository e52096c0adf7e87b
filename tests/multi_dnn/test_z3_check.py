"""HaX-CoNN's formulation in Z3 against the exact search, which shares no line with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from workloads import profile_of, workload_of

from corun_workloads import workloads
from onchip.base.errors import MissingExtra, UsageError
from onchip.machines.contention import NO_CONTENTION
from onchip.machines.soc_file import load_soc
from onchip.multi_dnn import published
from onchip.multi_dnn.dp import solve_pair
from onchip.multi_dnn.profile import Profile
from onchip.multi_dnn.workload import Job, Workload
from onchip.papers.hax_conn.enumerate import best_by_enumeration
from onchip.papers.hax_conn.z3_check import solve_with_z3

near = pytest.approx


def needs_z3() -> None:
    pytest.importorskip("z3", reason="z3-solver is not installed")


@settings(max_examples=6)
@given(workloads(groups=2))
def test_z3_proves_what_the_exact_search_proves(workload: Workload) -> None:
    needs_z3()
    proved = solve_pair(workload)
    assert proved.claim.proved
    answer = solve_with_z3(workload)
    assert answer.proved
    assert answer.timeline is not None
    assert answer.makespan_ms == near(proved.cost_ms, rel=1e-9)
    assert answer.timeline.makespan_ms == near(answer.makespan_ms, rel=1e-9)


@pytest.mark.slow
@settings(max_examples=8)
@given(workloads(groups=2))
def test_idle_time_at_will_is_never_worse_and_never_below_the_bound(workload: Workload) -> None:
    needs_z3()
    proved = solve_pair(workload)
    answer = solve_with_z3(workload, idle=True)
    assert answer.timeline is not None
    assert answer.makespan_ms is not None
    assert proved.lower_bound_ms * (1 - 1e-9) <= answer.makespan_ms <= proved.cost_ms * (1 + 1e-9)
    assert answer.timeline.makespan_ms == near(answer.makespan_ms, rel=1e-9)


def shortened(groups: int) -> Profile:
    """The first groups of Table 2's GoogleNet."""
    whole = published.googlenet()
    return replace(whole, groups=whole.groups[:groups])


@pytest.mark.slow
@pytest.mark.parametrize("contention", ["light", "medium", "heavy"])
def test_the_start_of_googlenet_twice(contention: str) -> None:
    needs_z3()
    soc = load_soc("xavier-agx")
    jobs = (Job("x", shortened(2)), Job("y", shortened(2)))
    workload = Workload(soc, jobs, soc.model(contention))
    answer = solve_with_z3(workload)
    assert answer.proved
    assert answer.makespan_ms == near(solve_pair(workload).cost_ms, rel=1e-9)


def test_three_networks_without_contention() -> None:
    needs_z3()
    jobs = tuple(Job(name, profile_of(name, [(2, 3), (3, 1)], transition=0.5)) for name in ("x", "y", "z"))
    workload = workload_of(NO_CONTENTION, *jobs)
    answer = solve_with_z3(workload)
    assert answer.makespan_ms == near(best_by_enumeration(workload).cost_ms, rel=1e-9)


def test_more_than_two_chains_with_contention_are_refused() -> None:
    needs_z3()
    soc = load_soc("xavier-agx")
    jobs = tuple(Job(name, shortened(1)) for name in ("x", "y", "z"))
    with pytest.raises(UsageError, match="takes two chains"):
        solve_with_z3(Workload(soc, jobs, soc.model("light")))


@pytest.mark.thorough
def test_no_time_is_no_answer_or_no_proof() -> None:
    needs_z3()
    soc = load_soc("xavier-agx")
    workload = Workload(soc, (Job("x", shortened(10)), Job("y", shortened(10))), soc.model("light"))
    for limit in (0.001, 0.2):
        answer = solve_with_z3(workload, time_limit=limit)
        assert not answer.proved
        if answer.timeline is not None:
            assert answer.makespan_ms == answer.timeline.makespan_ms >= solve_pair(workload).lower_bound_ms


def test_without_z3_one_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "z3", None)
    jobs = (Job("x", profile_of("x", [(1, 1)])), Job("y", profile_of("y", [(1, 1)])))
    with pytest.raises(MissingExtra, match=r"z3-solver is not installed: pip install 'onchip\[corun\]'"):
        solve_with_z3(workload_of(NO_CONTENTION, *jobs))
