"""What the report says of time is what the plan's timing says."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from nest_networks import nest_of
from onchip.machines.chip import Chip, Rates
from onchip.planners.placement import PlacementOptions, plan
from onchip.plans import Plan
from onchip.report import html, summary, timeline
from onchip.report.as_data import data
from onchip.report.times import bars, times
from onchip.report.wording import short_time
from run.planner import random_plan, roomy
from strategies import network_of, random_network
from timed_plans import CHIP, TILES, WORDED, chained, example, timed_plan

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


def test_the_times_of_a_nest_are_those_of_its_steps_and_of_each_channel() -> None:
    made = timed_plan(WORDED.network, [example(A=2, B=2)], [["up", "down"]])
    found = times(made)
    assert found is not None
    assert (found.latency, found.computing, found.copying) == (
        113_000,
        6 * 9_000,
        (2 * 19_000 + 6 * 11_000,),
    )
    assert "104 ns DRAM copies" in text(made)
    page = html(made)
    assert "bound by its DRAM copies: operators run 48 % of the time, DRAM copies go on 92 %." in page
    assert page.count(">2 copies<") == 2
    assert "array: rows | features" in page
    [nest] = data(made)["nests"]
    assert [buffer["copies"] for buffer in nest["body"][0]["buffers"]] == [2, 1, 2]


def test_a_nest_says_its_channels_its_late_stores_and_whether_it_is_beside() -> None:
    tiles = replace(TILES, channels=(TILES.channels[0], replace(TILES.channels[0], loads=False)))
    chip = replace(CHIP, tiles=tiles)
    assert "begins to fetch while the group before it runs" in html(chained(chip=chip))
    lines = ["for m 1", "  keep x:2@0 z:2@/1+2", "  run up array m | f", "  run down array m | y"]
    made = timed_plan(WORDED.network, [nest_of(WORDED, lines)[0]], [["up", "down"]], chip)
    page = html(made)
    assert "begins to fetch" not in page
    assert all(
        f">{words}<" in page for words in ("loads by channel 0", "stores by channel 1", "2 steps late")
    )
    assert "DRAM copies through channel 1" in text(made)
    found = times(made)
    assert found is not None
    assert found.copying[1] == 4 * 7_000  # a row of z: 2 for the transfer, 1 for its piece, 4 bytes


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
