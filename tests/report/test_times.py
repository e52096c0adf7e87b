"""What the report says of time is what the plan's timing says."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from onchip.machines.chip import Chip, Rates
from onchip.planners.placement import PlacementOptions, plan
from onchip.plans import Plan
from onchip.report import html, summary, timeline
from onchip.report.times import bars, times
from onchip.report.wording import short_time
from run.planner import random_plan, roomy
from strategies import network_of, random_network

RATED = Chip("c", 1, rates=Rates(dram_bytes_per_second=1e6, macs_per_second=1e6))


def text(made: Plan) -> str:
    console = Console(width=120, no_color=True)
    with console.capture() as capture:
        console.print(summary(made))
    return " ".join(capture.get().split())


@given(st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_busy_times_add_up(rng: Random) -> None:
    network = random_network(rng)
    made = random_plan(network, roomy(network), rng, RATED)
    found = times(made)
    assert found is not None
    [copying] = found.copying
    assert found.both is not None
    assert max(found.computing, copying) <= found.latency <= found.computing + copying - found.both
    # One byte takes a microsecond, whatever crosses.
    assert copying == made.result.dram_bytes * 10**6
    assert sum(wait for _, wait in found.stalls) <= found.latency - found.computing


def test_terminal_and_page_say_what_an_inference_takes() -> None:
    network = network_of({"x": 4, "a": 1, "w": 4, "y": 1}, ["x -> a", "a w -> y"], "y")
    network = replace(network, operators=tuple(replace(op, macs=6) for op in network.operators))
    made = plan(network, RATED, 10, PlacementOptions(objective="latency"))
    assert "17 us one inference, proven least" in text(made)
    assert "DRAM copies, 44 % of it while an operator runs" in text(made)
    assert "Proven fastest within 10 bytes" in text(made)
    page = html(made)
    assert "One inference takes 17 us, proven least, bound by its operators" in page
    assert 'id="clock"' in page
    untimed = html(plan(network, Chip("c", 1), 10))
    assert "One inference takes" not in untimed
    assert 'id="clock"' not in untimed
    assert "The chip states no rates" in untimed


@given(st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_what_is_drawn_over_time_is_what_runs_and_what_crosses(rng: Random) -> None:
    network = random_network(rng)
    made = random_plan(network, roomy(network), rng, RATED)
    drawn = bars(made, timeline(made))
    if not made.result.latency_picoseconds:  # neither bytes nor multiplications: no time passes
        assert drawn is None
        return
    assert drawn is not None
    runs = [bar for bar in drawn["bars"] if bar[0] == 0]
    assert len(runs) == len(network.operators)
    assert sum(end - start for _, start, end, *_ in runs) == found_computing(made)
    assert sum(bar[6] for bar in drawn["bars"]) == made.result.dram_bytes


def found_computing(made: Plan) -> int:
    found = times(made)
    assert found is not None
    return found.computing


def test_a_least_scratchpad_is_said_to_be_one() -> None:
    network = network_of({"x": 4, "y": 1}, ["x -> y"], "y")
    assert "needs 5 B; proven least" in text(
        plan(network, Chip("c", 1), None, PlacementOptions(objective="peak"))
    )


def test_times_are_short() -> None:
    assert [short_time(n) for n in (7, 1500, 10**6, 2_340_000_000, 10**12)] == [
        "7 ps", "1.5 ns", "1 us", "2.34 ms", "1 s",
    ]  # fmt: skip
