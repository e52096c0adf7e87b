"""A plan of modules on the page, on the terminal and in the memory map."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from greedy import greedy
from hypothesis import given, settings
from module_plans import KIB, module_plan, wide_plan
from rich.console import Console
from test_page import Page, chain

from onchip.planners.modules.table import module_table
from onchip.plans import Plan
from onchip.report import html, notebook, summary, timeline
from onchip.report.findings import absences
from onchip.report.modules.table import MOST_ROWS, kilobytes
from strategies import hostile_names


def test_the_tables_figures_stand_on_the_page() -> None:
    plan = module_plan()
    text = Page(html(plan)).text
    table = module_table(plan)
    for row in (*table.rows, table.total):
        for n in (row.weight_bytes, row.naive_fm_bytes, row.weight_bytes + row.fm_bytes):
            assert kilobytes(n) in text
        assert f"{row.naive_reads} + {row.naive_writes}" in text
        assert row.name in text
    assert f"{kilobytes(table.total.fm_bytes)} KiB of feature maps cross to DRAM" in text


def test_every_module_has_a_picture_and_a_button() -> None:
    plan = module_plan()
    elements = Page(html(plan)).elements
    wanted = {str(i) for i, s in enumerate(plan.sections) if s.merge}
    assert {a["data-region"] for t, a in elements if t == "figure" and "data-region" in a} == wanted
    assert {a["data-module"] for t, a in elements if t == "button" and "data-module" in a} == wanted


def test_nothing_of_modules_is_on_the_page_of_a_plan_without_any() -> None:
    page = Page(html(greedy(chain(5))))
    assert "modules" not in {attrs.get("id") for _, attrs in page.elements}
    assert not any("showModule" in text or ".r-mifm" in text for _, _, text in page.raw)


def test_nothing_points_outside_the_file_and_no_style_is_inline() -> None:
    source = html(module_plan())
    for tag, attrs in Page(source).elements:
        assert tag not in (
            "iframe",
            "img",
            "object",
            "embed",
            "base",
            "form",
            "image",
            "use",
            "foreignobject",
        )
        for key in ("src", "href", "xlink:href", "action", "srcset", "data"):
            assert attrs.get(key) in (None, "data:,"), (tag, attrs)
        assert not any(key.startswith("on") or key == "style" for key in attrs)
    assert "//" not in re.sub(r"^\s*//.*$|; // .*$", "", source, flags=re.M).replace("file://", "")


@pytest.mark.thorough
@given(hostile_names)
@settings(max_examples=12, deadline=None)
def test_hostile_names_stay_text(name: str) -> None:
    source = html(module_plan(name))
    assert "<script>alert" not in source
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f\x00\x1b]", source)
    source.encode("utf-8")
    page, tame = Page(source), Page(html(module_plan()))

    def kinds(of: Page) -> set[tuple[str, tuple[str, ...]]]:
        return set(of.shape)

    assert kinds(page) <= kinds(tame)
    assert sum(tag == "script" for tag, _ in page.elements) == sum(
        tag == "script" for tag, _ in tame.elements
    )


@pytest.mark.slow
def test_a_thousand_operators_stay_under_three_megabytes() -> None:
    plan = wide_plan(112)
    assert len(plan.network.operators) > 1000
    assert len(html(plan).encode()) < 3_000_000


def test_the_status_says_what_crosses_inside_the_modules_and_outside() -> None:
    plan = module_plan()
    table, text = module_table(plan), " ".join(printed(plan, 140).split())
    assert f"{table.total.fm_bytes:,} B" in text
    assert f"inside its 3 modules, {table.total_outside.fm_bytes:,} B" in text


def printed(plan: Plan, width: int) -> str:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(summary(plan))
    return capture.get()


@pytest.mark.parametrize("width", [80, 140])
def test_the_terminal_lists_the_modules_within_its_width(width: int) -> None:
    plan = module_plan()
    text = printed(plan, width)
    assert max(map(len, text.splitlines())) <= width
    assert "Modules" in text
    table = module_table(plan)
    for row in (*table.modules, table.total, table.total_outside):
        assert kilobytes(row.naive_fm_bytes) in text
        assert f"{row.reads}+{row.writes}" in text


def test_of_very_many_modules_those_that_move_most_are_listed() -> None:
    plan = wide_plan(MOST_ROWS + 5)
    text = printed(plan, 100)
    assert "5 more" in text
    assert kilobytes(module_table(plan).total.naive_fm_bytes) in text


def test_a_concat_in_place_is_one_stretch_in_the_memory_map() -> None:
    for plan in (module_plan(), wide_plan(4)):
        line = timeline(plan)
        for a, b in combinations(line.residencies, 2):
            together = min(a.end, b.end) - max(a.start, b.start) > 0
            shared = min(a.address + a.size, b.address + b.size) - max(a.address, b.address) > 0
            over = {a.name, b.name} & {"net.e.2"}  # written over by its sum
            assert not (together and shared) or over
        assert line.peak_bytes == max(s.occupancy_bytes for s in line.steps)


def test_a_joined_concat_is_a_step_that_moves_nothing() -> None:
    plan = module_plan()
    line = timeline(plan)
    (joined,) = (s for s in line.steps if s.joined)
    assert joined.name == "net.r.cat"
    assert joined.traffic.total == 0
    assert line.steps[joined.index + 1].traffic.reload == 32 * KIB
    assert [s.name for s in line.steps if s.operators] == [
        i.operator for i in plan.program if type(i).__name__ in ("Run", "Join")
    ]


def test_what_ends_in_a_concat_did_not_leave() -> None:
    line = timeline(module_plan())
    assert absences(line) == ()
    assert "net.a.cat" in notebook(module_plan())
