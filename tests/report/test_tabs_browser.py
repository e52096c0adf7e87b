"""The views of a report in a real browser: reached by mouse, keyboard and address, and none of them asks for
anything."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fused_plans import diamond, fused
from test_browser import HOSTILE, Chromium, find_chromium, inside, requests, tip

from onchip import replanning
from onchip.machines.chip import Chip, Rates
from onchip.planners.placement import PlacementOptions, plan
from onchip.plans import Plan
from onchip.report import html
from onchip.report.what_if import WhatIf
from strategies import network_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_chromium() is None, reason="no chromium is installed"),
]


RATED = Chip("generic", 1, rates=Rates(dram_bytes_per_second=1e6, macs_per_second=1e6))


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as opened:
        yield opened


def timed_plan() -> Plan:
    network = network_of(
        {"x": 6, "a": 8, "b": 8, "c": 8, "y": 2}, ["x -> a", "a -> b", "b -> c", "a b c -> y"], "y"
    )
    operators = tuple(replace(op, macs=6, weight_bytes=3) for op in network.operators)
    return plan(replace(network, operators=operators), RATED, 27, PlacementOptions(objective="latency"))


def shown(browser: Chromium, made: Plan, folder: Path, beyond: WhatIf | None = None, at: str = "") -> None:
    path = folder / "report.html"
    path.write_text(html(made, beyond), "utf-8")
    browser.open(path, at)


def open_views(browser: Chromium) -> list[str]:
    """The panels that can be seen."""
    found: list[str] = browser.evaluate(
        "[...document.querySelectorAll('[role=tabpanel]')].filter(p => p.offsetParent).map(p => p.id)"
    )
    return found


def test_one_view_at_a_time_by_mouse_keyboard_and_address(browser: Chromium, tmp_path: Path) -> None:
    made = timed_plan()
    shown(browser, made, tmp_path, replanning.what_if(made, chip=RATED, budgets=[40]))
    assert open_views(browser) == ["panel-map"]
    browser.page.get_by_role("tab", name="Traffic by tensor").click()
    assert open_views(browser) == ["panel-traffic"]
    assert browser.evaluate("location.hash") == "#view=traffic"
    for key, panel in [
        ("ArrowRight", "panel-what-if"),
        ("ArrowRight", "panel-map"),
        ("ArrowLeft", "panel-what-if"),
        ("Home", "panel-map"),
        ("End", "panel-what-if"),
    ]:
        browser.key(key)
        assert open_views(browser) == [panel]
        assert browser.evaluate("document.activeElement.getAttribute('aria-controls')") == panel
    shown(browser, made, tmp_path, at="#view=times")
    assert open_views(browser) == ["panel-times"]
    shown(browser, made, tmp_path, at="#steps=2-3")
    assert open_views(browser) == ["panel-map"]
    assert browser.complaints == []
    assert requests(browser) == []


def test_rows_of_other_views_lead_to_the_map(browser: Chromium, tmp_path: Path) -> None:
    shown(browser, timed_plan(), tmp_path, at="#view=traffic")
    browser.page.locator("#panel-traffic button.link[data-tensor]").first.click()
    assert open_views(browser) == ["panel-map"]
    assert "addresses" in tip(browser)
    browser.page.get_by_role("tab", name="Traffic by tensor").click()
    assert tip(browser) == ""
    browser.page.locator("#panel-traffic button.link[data-step]").first.click()
    assert "live at most" in tip(browser)
    browser.point(*inside(browser, 0.05, 0.05))
    assert browser.complaints == []


def test_the_timeline_answers_mouse_and_keyboard(browser: Chromium, tmp_path: Path) -> None:
    shown(browser, timed_plan(), tmp_path, at="#view=times")
    x, y, width = browser.evaluate(
        "(({x, y, width}) => [x, y, width])(document.getElementById('clock').getBoundingClientRect())"
    )
    before = browser.evaluate("document.getElementById('clock').toDataURL()")
    browser.point(x + 112, y + 120)
    assert "compulsory copy" in tip(browser)
    assert "takes" in tip(browser)
    browser.point(5, 5)
    assert tip(browser) == ""
    browser.evaluate("document.getElementById('clock').focus()")
    browser.key("Home")
    assert "operator runs" in tip(browser)
    first = tip(browser).splitlines()[0]
    browser.key("ArrowRight")
    assert tip(browser).splitlines()[0] != first
    browser.key("ArrowDown")
    assert "operator runs" not in tip(browser)
    browser.key("Escape")
    assert tip(browser) == ""
    browser.key("+")
    assert browser.evaluate("document.getElementById('clock').toDataURL()") != before
    browser.key("0")
    browser.point(x + width / 2, y + 50, click=True)
    browser.point(5, 5)
    assert "operator runs" in tip(browser)
    assert browser.complaints == []


def test_hostile_names_run_nothing_in_any_view(browser: Chromium, tmp_path: Path) -> None:
    made = fused(diamond(HOSTILE))
    shown(browser, made, tmp_path, replanning.what_if(made, chip=Chip(made.chip.name, 1), budgets=[]))
    for tab in browser.page.get_by_role("tab").all():
        tab.click()
        browser.settle()
    assert "<img src=x" in browser.page.locator("#panel-traffic").text_content()  # type: ignore[operator]
    assert browser.evaluate("document.title") != "owned"
    assert browser.evaluate("document.querySelectorAll('img, script').length") == 2
    assert browser.complaints == []


def test_without_its_script_everything_is_there(browser: Chromium, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(html(timed_plan()), "utf-8")
    context = browser.browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert all(panel.is_visible() for panel in page.get_by_role("tabpanel").all())
    assert not page.locator("[role=tablist]").is_visible()
    context.close()
