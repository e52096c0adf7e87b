"""Ctrl-C is remembered for the whole plan."""

from __future__ import annotations

import signal

import pytest

from onchip.base.interrupt import until_interrupted
from onchip.check import check
from onchip.machines.chip import Chip
from onchip.planners.limits import Limits
from onchip.planners.placement import PlacementOptions, Problem, minimum_traffic, plan
from strategies import network_of


def test_it_is_remembered_and_the_handler_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with until_interrupted() as pressed:
        assert not pressed()
        with pytest.raises(KeyboardInterrupt), until_interrupted() as inner:
            signal.raise_signal(signal.SIGINT)
        assert inner()
        assert pressed()  # who waits outside hears of it too
    assert signal.getsignal(signal.SIGINT) is before


def test_a_search_that_is_cancelled_before_it_begins_still_has_a_schedule() -> None:
    network = network_of({"x": 4, "a": 5, "b": 6, "c": 3}, ["x -> a", "x -> b", "a b -> c"], "c")
    problem = Problem.of(network)
    found = minimum_traffic(problem, problem.minimum_budget, limits=Limits(cancelled=lambda: True))
    assert len(found.steps) == 3


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", ["exact", "dnc", "beam"])
def test_what_was_found_by_then_is_the_plan(strategy: str) -> None:
    import onchip

    network = onchip.load("zoo:pnasnet5large").network
    seen: list[str] = []

    def press(now: str) -> None:
        seen.append(now)
        if len(seen) == 1:
            signal.raise_signal(signal.SIGINT)

    budget = Problem.of(network).minimum_budget
    made = plan(
        network, Chip("generic", 1), budget, PlacementOptions(strategy=strategy), Limits(progress=press)
    )
    assert check(made).lower_bound_bytes <= made.result.traffic_bytes
