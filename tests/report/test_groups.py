"""A plan of fused groups on the page and on the terminal: its figures are the program's and the checker's."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, get_args

import pytest
from fused_plans import diamond, diamond_plan, fused, kept_plan, row, streamed_plan
from greedy import greedy
from hypothesis import given, settings
from rich.console import Console
from test_page import Page, chain

from onchip.base.errors import IllegalPlan
from onchip.check import certify
from onchip.machines.chip import Chip
from onchip.network import mask
from onchip.plans import Alloc, Group, Load, Plan, Run, Scratch, Store
from onchip.report import html, summary, timeline
from onchip.report.findings import How, absence_reason, absences, room_needed_by
from onchip.report.graph import picture
from onchip.report.grouped import MOST_ROWS, group_rows, group_table
from strategies import hostile_names


def drawn(plan: Plan) -> dict[str, Any]:
    found = Page(html(plan)).data["graph"]
    assert isinstance(found, dict)
    return found


def test_rows_add_up_to_the_plans_figures() -> None:
    for plan in (diamond_plan(), fused(row(12))):
        rows = group_rows(plan, timeline(plan))
        assert sum(r.dram_bytes for r in rows) == plan.result.dram_bytes
        assert sum(r.weight_bytes for r in rows) == plan.result.weight_bytes
        assert max(r.scratch_bytes for r in rows) == plan.result.peak_bytes
        assert [name for r in rows for name in r.operators] == [
            name for g in plan.groups for name in g.operators
        ]


def test_the_drawing_has_every_operator_once_inside_its_group() -> None:
    plan = diamond_plan()
    graph = drawn(plan)
    assert sorted(op[3] for op in graph["operators"]) == sorted(op.name for op in plan.network.operators)
    wide, high = graph["operator"]
    for op in graph["operators"]:
        _, _, x, y, w, h = graph["units"][op[0]][:6]
        assert x < op[1] < op[1] + wide < x + w
        assert y < op[2] < op[2] + high < y + h


def test_links_between_groups_carry_what_crosses() -> None:
    for plan in (diamond_plan(), fused(row(12))):
        graph, traffic = drawn(plan), timeline(plan).traffic
        read = sum(link[3] for link in graph["outer"])
        assert read == traffic.compulsory_in + traffic.reload
        written = {link[0]: link[4] for link in graph["outer"]}
        assert sum(written.values()) == traffic.compulsory_out + traffic.spill
        ends = {tensor for _, tensor, *_ in graph["terminals"]}
        assert mask(ends) == plan.network.input_roots | plan.network.output_roots


def test_the_buffers_of_a_group_fit_its_scratch_and_fill_it() -> None:
    plan = diamond_plan()
    assert any(g.subgroups > 1 for g in plan.groups)
    for unit in drawn(plan)["units"]:
        buffers = unit[-1]
        assert buffers
        assert 0 < sum(b[7] for b in buffers) <= unit[8] <= plan.budget
        for _, tensor, _, *_, size, _, _ in buffers:
            assert tensor < 0 or size <= plan.network.tensors[tensor].bytes


def test_whole_operands_lie_beside_the_scratch_and_fill_the_scratchpad_with_it() -> None:
    plan = kept_plan()
    line, graph = timeline(plan), drawn(plan)
    names = [t.name for t in plan.network.tensors]
    whole = {u[0]: {names[b[1]] for b in u[-1] if b[8] and b[1] >= 0} for u in graph["units"]}
    assert whole == {
        "g0": {"net/x", "net/a"},
        "g1": {"net/x", "net/b"},
        "net/add": {"net/a", "net/b", "net/s"},
        "g2": {"net/s"},
    }
    for unit, step in zip(graph["units"], line.steps, strict=True):
        buffers = unit[-1]
        assert sum(b[7] for b in buffers if not b[8]) <= unit[8]  # what the scratch holds
        # What shares its bytes with the output over it counts once.
        filled = unit[8] + sum(b[7] - b[9] for b in buffers if b[8])
        assert filled == step.occupancy_bytes
        kept = [(b[2], b[7]) for b in buffers if graph["what"][b[0]] == "kept for later"]
        assert kept == ([("1 tensor", 4096)] if unit[0] == "g1" else [])
    rows = group_rows(plan, line)
    assert [r.whole_bytes for r in rows] == [2048 + 4096, 2048 + 4096, 3 * 4096, 4096]


def test_a_link_says_what_its_reader_fetches_and_a_page_says_what_is_whole() -> None:
    plan = kept_plan()
    graph = drawn(plan)
    names = [t.name for t in plan.network.tensors]
    read = {(names[t], reader): n for t, _, reader, n, *_ in graph["outer"] if reader >= 0}
    # Loaded once, for the first that reads it.
    assert {key for key, n in read.items() if n} == {("net/x", 0)}
    heads = [text.strip() for text in re.findall(r"<th[^>]*>([^<]*)</th>", html(plan))]
    assert "whole operands" in heads
    assert "whole operands" not in html(diamond_plan()).split("<script")[0]


def test_a_tensor_loaded_ahead_of_time_is_counted_where_it_is_read() -> None:
    plan = kept_plan()
    x, a, scratch, _, *rest = plan.program
    # `left` streams what was loaded for `right`, which has it whole.
    program = [x, a, scratch, Run("g0", (("net/x", 2048),)), *rest]
    groups = [replace(g, scratch_bytes=4096) if g.name == "g0" else g for g in plan.groups]
    streamed = certify(
        plan.network, plan.chip, plan.budget, program,
        status="feasible", lower_bound_bytes=0, seconds=0, groups=groups,
    )  # fmt: skip
    assert {link[2]: link[3] for link in drawn(streamed)["outer"] if link[0] == 0} == {0: 2048, 1: 2048}


def test_a_wrong_plan_is_not_drawn() -> None:
    plan = diamond_plan()
    wrong = replace(plan, groups=tuple(replace(g, subgroups=g.subgroups + 1) for g in plan.groups))
    with pytest.raises(IllegalPlan):
        html(wrong)


def test_a_plan_without_groups_has_no_drawing_and_none_of_its_script() -> None:
    page = Page(html(greedy(chain(5))))
    assert page.data["graph"] is None
    assert "graph" not in {attrs.get("id") for _, attrs in page.elements}
    assert not any("paintUnit" in text for _, _, text in page.raw)


def test_a_group_that_runs_whole_is_drawn_too() -> None:
    plan = greedy(diamond(), 100_000)
    assert picture(plan, timeline(plan)) is None
    network = row(2)
    pair = Group("pair", tuple(op.name for op in network.operators), 8192)
    program = [
        Load("layer/t0", 0), Alloc("layer/t2", 2048), Scratch("pair", 4096), Run("pair"), Store("layer/t2"),
    ]  # fmt: skip
    grouped = certify(
        network, Chip("small", 1), 16_384, program,
        status="feasible", lower_bound_bytes=0, seconds=0, groups=[pair],
    )  # fmt: skip
    (unit,) = drawn(grouped)["units"]
    assert unit[-1] != []


@pytest.mark.thorough
@given(hostile_names)
@settings(max_examples=20, deadline=None)
def test_hostile_names_stay_text(name: str) -> None:
    source = html(fused(diamond(name)))
    assert "<script>alert" not in source
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f\x00\x1b]", source)
    assert elements(source) == elements(html(diamond_plan()))


def elements(source: str) -> list[tuple[str, list[str]]]:
    """Every element and its attributes; a nest hides how its names begin where they share nothing."""
    return sorted((tag, [name for name in names if name != "hidden"]) for tag, names in Page(source).shape)


@pytest.mark.parametrize("width", [80, 140])
def test_the_terminal_lists_the_groups_within_its_width(width: int) -> None:
    plan = diamond_plan()
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(summary(plan))
    text = capture.get()
    assert max(map(len, text.splitlines())) <= width
    assert "Groups" in text
    assert "no partition into groups" in " ".join(text.split())
    assert f"{plan.result.dram_bytes:,}" in text
    assert "zero traffic" not in text


def test_of_very_many_groups_the_costliest_are_listed_and_the_rest_summed() -> None:
    plan = diamond_plan()
    first = group_rows(plan, timeline(plan))[0]
    rows = [replace(first, name=f"g{i}", dram_bytes=first.dram_bytes + i) for i in range(MOST_ROWS + 60)]
    table = group_table(rows, 100, element=1)
    assert len(table.rows) == MOST_ROWS + 2
    names = [str(row[0]) for row in table.rows]
    assert "g0" not in names
    assert names[0] == "g60"
    assert "60 more" in [str(row[1]) for row in table.rows]


def test_what_is_read_in_pieces_after_it_left_is_not_called_moved() -> None:
    plan = streamed_plan()
    line = timeline(plan)
    (away,) = absences(line)
    assert (away.name, away.how, away.left, away.back, away.crowded) == ("layer/t1", "streamed", 1, 1, None)
    assert (away.written, away.reloaded) == (2048, 2048)
    assert room_needed_by(line, away) == "none (read in pieces)"
    assert absence_reason(line, away) == "read from DRAM in pieces, not brought back"
    console = Console(width=120, no_color=True)
    with console.capture() as capture:
        console.print(summary(plan))
    assert "none (read in pieces)" in capture.get()
    assert "moved" not in capture.get()
    assert "none (read in pieces)" in html(plan)


@pytest.mark.parametrize("how", get_args(How))
def test_every_way_out_has_words_of_its_own(how: How) -> None:
    line = timeline(streamed_plan())
    (away,) = absences(line)
    said = {room_needed_by(line, replace(away, how=other)) for other in get_args(How) if other != how}
    assert room_needed_by(line, replace(away, how=how)) not in said
    crowded = replace(away, how=how, crowded=0)
    assert room_needed_by(line, crowded) == "1 layer/op0"
    assert absence_reason(line, crowded).startswith("needs 2.00 KiB, ")
