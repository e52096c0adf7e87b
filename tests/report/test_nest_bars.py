"""What the page's timeline and the times of a report say of nests is what the law of time says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import onchip
from nest_networks import nest_of, network_of
from onchip.machines.chip import Chip
from onchip.plans import Plan
from onchip.report import html, timeline
from onchip.report.times import bars, rows, sentence, times
from timed_plans import CHIP, TILES, WORDED, example, timed_plan

LONG = network_of(
    "m=4 d=4 f=600 y=4",
    ["up MatMul: h(m,f) = x(m,d) A(d,f)", "down MatMul: z(m,y) = h(m,f) B(f,y)"],
    ["x"],
    ["z"],
)


def long_plan() -> Plan:
    """300 turns of the worked example."""
    lines = "keep x z\nfor f 2\n  keep A:2 B:2\n  run up array m | f\n  run down array m | y"
    nest, _ = nest_of(LONG, lines.splitlines())
    return timed_plan(LONG.network, [nest], [["up", "down"]])


def drawn(plan: Plan) -> dict[str, Any]:
    """The bars of its page."""
    found = bars(plan, timeline(plan))
    assert found is not None
    return found


@pytest.mark.parametrize("copies", [{}, {"A": 2, "B": 2}])
def test_times_of_nests_are_those_of_their_steps_and_transfers(copies: dict[str, int]) -> None:
    """docs/nest-times.md: seven transfers, six steps of 9 ns each."""
    plan = timed_plan(WORDED.network, [example(**copies)], [["up", "down"]])
    found, page = times(plan), drawn(plan)
    assert found is not None
    assert found.computing == 54_000
    assert found.both is None
    assert page["lanes"] == ["Groups", "Steps", "DRAM copies"]
    lanes = Counter[int]()
    for lane, start, end, *_ in page["bars"]:
        lanes[lane] += end - start
    assert lanes == {0: found.latency, 1: found.computing, 2: found.copying[0]}
    assert sum(bar[6] for bar in page["bars"]) == plan.result.dram_bytes
    said = " ".join(f"{time} {what}" for time, what in rows(found))
    assert "54 ns operators run" in said
    assert "no operator runs" in said
    assert "DRAM copies go on" in sentence(found)
    assert "turns that repeat" in html(plan)


def test_turns_that_repeat_are_one_bar() -> None:
    plan = long_plan()
    page, found = drawn(plan), times(plan)
    assert found is not None
    periods = [bar for bar in page["bars"] if bar[4] == "period"]
    assert {bar[0] for bar in periods} == {1, 2}
    assert len(page["bars"]) < 60
    assert all("more turns of" in bar[3] for bar in periods)
    assert max(bar[2] for bar in page["bars"]) == found.latency
    assert found.computing == 600 * 9_000


def test_every_channel_has_a_lane() -> None:
    apart = onchip.plan(
        WORDED.network,
        Chip("two", 1, "int8", tiles=type(TILES)(TILES.clock_hertz, TILES.channels * 2, 1, TILES.sides)),
        72,
        fuse=True,
        objective="latency",
    )
    assert drawn(apart)["lanes"] == ["Groups", "Steps", "Channel 0", "Channel 1"]
    found = times(apart)
    assert found is not None
    assert len(found.copying) == 2
    assert "through channel 1" in " ".join(what for _, what in rows(found))
    assert CHIP.tiles == TILES
