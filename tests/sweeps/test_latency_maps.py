"""Maps of latency over bandwidth and scratchpad, with lines of equal latency between their cells."""

from __future__ import annotations

import re
from typing import Any

import pytest

from onchip.sweeps.latency_maps import drawn, maps_of

RATE = "chip.channel_bytes_per_second"
LABELS = (RATE, "joint.objective")


def row(rate: int, budget: int, latency: int | None, **more: Any) -> dict[str, Any]:
    """A row of a sweep's table."""
    found = {"network": "n", "chip": "<c>", "planner": "joint", RATE: rate, "joint.objective": "latency"}
    return {**found, "budget_bytes": budget, "latency_picoseconds": latency, **more}


TABLE = [
    row(10**9, 1024, 9_000_000),
    row(10**9, 2048, 6_000_000),
    row(2 * 10**9, 1024, 4_500_000),
    row(2 * 10**9, 2048, 3_000_000),
]


def test_a_map_has_a_cell_for_every_plan_and_lines_at_round_times() -> None:
    [one] = maps_of(TABLE, LABELS, "n")
    assert (one.bandwidths, one.budgets) == ((2e9, 1e9), (1024, 2048))
    svg = str(drawn(one))
    assert svg.count('class="heat"') == 4
    assert re.findall(r">(\S+ us)</text>", svg) == ["9 us", "6 us", "4.5 us", "3 us"]
    # 5 us alone lies between 3 and 9: below the upper row, and nowhere between columns
    [line] = re.findall(r'<path[^>]*class="iso"[^>]*>', svg) or re.findall(r'<path[^>]* d="[^"]*"[^>]*>', svg)
    assert line.count("H") == 2
    assert "V" not in line
    assert "<title>5 us</title>" in svg
    assert "2 GB/s" in svg
    assert "&lt;c&gt;" in svg


def test_a_cell_has_the_least_of_plans_for_smaller_scratchpads_and_slower_channels() -> None:
    """A search that ends with its time may find less in a larger one. Other objectives stay as found."""
    slow, fast = 10**9, 2 * 10**9
    found = {(slow, 1024): 9_000_000, (slow, 2048): 6_000_000, (fast, 1024): 10**7, (fast, 2048): 7_000_000}
    unlucky = [row(rate, budget, latency) for (rate, budget), latency in found.items()]
    [one] = maps_of(unlucky, LABELS, "n")
    assert one.latency == {**found, (fast, 1024): 9_000_000, (fast, 2048): 6_000_000}
    [other] = maps_of([{**one, "joint.objective": "edp"} for one in unlucky], LABELS, "n")
    assert other.latency[fast, 1024] == 10_000_000


@pytest.mark.parametrize(
    "rows",
    [
        TABLE[:2],  # one bandwidth
        [TABLE[0], TABLE[2]],  # one scratchpad
        [{**one, "latency_picoseconds": None} for one in TABLE],
        [{**one, RATE: None} for one in TABLE],
        [{**one, "network": "other"} for one in TABLE],
    ],
)
def test_no_map_is_drawn_of_less_than_two_by_two(rows: list[dict[str, Any]]) -> None:
    assert maps_of(rows, LABELS, "n") == []


def test_points_of_other_objectives_have_maps_of_their_own() -> None:
    more = [{**one, "joint.objective": "edp", "latency_picoseconds": 10**7} for one in TABLE]
    assert [one.series for one in maps_of([*TABLE, *more], LABELS, "n")] == [
        "<c>, joint, latency",
        "<c>, joint, edp",
    ]
