"""The terminal summary: what it says, and that it says it at the widths of real terminals without colour."""

from __future__ import annotations

from dataclasses import replace

import pytest
from greedy import greedy
from hypothesis import given, settings
from rich.console import Console
from test_page import chain

import onchip
from onchip.network import Network, OperatorSpec
from onchip.plans import Plan, PlanChip, bind
from onchip.report import summary
from strategies import hostile_networks

LONG = "cell_stem_0/comb_iter_0_left/separable_conv_3x3/" + "depthwise" * 6


def printed(plan: Plan, width: int) -> str:
    console = Console(width=width, no_color=True, force_terminal=False, legacy_windows=False)
    with console.capture() as capture:
        console.print(summary(plan))
    return capture.get()


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("name", ["l", LONG])
def test_every_number_is_whole_and_no_line_too_long(width: int, name: str) -> None:
    plan = greedy(chain(40, name))
    text = printed(plan, width)
    assert max(map(len, text.splitlines())) <= width
    r = plan.result
    for n in (r.compulsory_bytes, r.spill_bytes, r.reload_bytes, r.weight_bytes, r.dram_bytes, r.peak_bytes):
        assert f"{n:,}" in text
    assert "Spilled and reloaded" in text


def test_without_traffic_there_is_no_table_of_spills() -> None:
    network = chain(5)
    plan = greedy(network, 1_000_000)
    assert plan.result.traffic_bytes == 0
    text = printed(plan, 100)
    assert "Spilled" not in text
    assert f"at most {plan.result.extent_bytes:,} B" in text


def test_the_smallest_budget_with_zero_traffic_is_said_when_known() -> None:
    plan = greedy(chain(40))
    assert "not known" in " ".join(printed(plan, 140).split())
    known = replace(plan, options={"mp_bytes": 12_345})
    assert "at least 12,345 B" in printed(known, 140)
    exact = bind(replace(plan, options={"zero_traffic_bytes": 23_456}))
    assert "zero traffic: 23,456 B" in printed(exact, 140)


def test_time_and_energy_need_the_chips_figures() -> None:
    plan = greedy(chain(40))
    assert " ms" not in printed(plan, 100)
    costed = replace(plan, chip=PlanChip("c", 1, 1e6, 1000.0))
    text = printed(costed, 100)
    assert f"{plan.result.dram_bytes / 1e3:,.3g} ms" in text
    assert f"{plan.result.dram_bytes * 1e-6:,.3g} mJ" in text


def test_names_are_no_markup() -> None:
    network = Network.build(
        "[red]n[/red]", [("x", 9, "input"), ("[bold]y", 9, "activation")],
        [OperatorSpec("[/]", "t", ["x"], ["[bold]y"])], ["[bold]y"],
    )  # fmt: skip
    text = printed(greedy(network), 100)
    assert "[red]n[/red]" in text
    assert "[bold]y" in text


@given(hostile_networks())
@settings(max_examples=20, deadline=None)
def test_hostile_names_send_no_control_character(network: Network) -> None:
    text = printed(greedy(network), 80)
    assert all(c == "\n" or c.isprintable() for c in text)


def test_a_partition_without_tiles_claims_nothing_of_whole_tensors() -> None:
    """Everything would fit whole; the method sends what passes between operators through DRAM."""
    chained = [OperatorSpec("f", "Conv", ["x"], ["a"]), OperatorSpec("g", "Conv", ["a"], ["y"])]
    sizes = [("x", 400, "input"), ("a", 800, "activation"), ("y", 20, "activation")]
    plan = onchip.plan(Network.build("mine", sizes, chained, ["y"]), budget=2000, method="optimus")
    assert plan.result.traffic_bytes > 0
    text = " ".join(printed(plan, 140).split())
    assert "no partition into groups crosses to DRAM with fewer than" in text
    assert "as long as tensors stay whole" not in text
