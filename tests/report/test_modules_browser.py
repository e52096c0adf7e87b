"""The figures of modules in a real browser: they log nothing, ask for nothing, answer mouse and keyboard."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from module_plans import module_plan, wide_plan
from test_browser import HOSTILE, requests, tip

from onchip.plans import Plan
from onchip.report import html

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from chromium import Chromium, find_chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_chromium() is None, reason="no chromium is installed"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as opened:
        yield opened


def shown(browser: Chromium, plan: Plan, folder: Path) -> None:
    path = folder / "report.html"
    path.write_text(html(plan), "utf-8")
    browser.open(path)


def middle(browser: Chromium, selector: str) -> tuple[float, float]:
    """The middle of an element, scrolled into the window."""
    x, y = browser.evaluate(
        "(e => { e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
        f" return [r.x + r.width / 2, r.y + r.height / 2]; }})(document.querySelector({selector!r}))"
    )
    return float(x), float(y)


def open_modules(browser: Chromium) -> Any:
    return browser.evaluate(
        "[...document.querySelectorAll('[data-region]:not([hidden])')].map(e => e.dataset.region)"
    )


def test_it_asks_for_nothing_and_logs_nothing(browser: Chromium, tmp_path: Path) -> None:
    shown(browser, wide_plan(30), tmp_path)
    assert requests(browser) == []
    assert browser.complaints == []


def test_one_module_is_open_and_a_click_opens_another(browser: Chromium, tmp_path: Path) -> None:
    shown(browser, module_plan(), tmp_path)
    assert open_modules(browser) == ["2"]  # the one by processing II
    browser.point(*middle(browser, "#choose button:last-child"), click=True)
    assert open_modules(browser) == ["3"]
    browser.point(*middle(browser, "#module-drawing [data-module='1'] text"), click=True)
    assert open_modules(browser) == ["1"]
    assert browser.complaints == []


def test_pointing_tells_of_layers_and_regions(browser: Chromium, tmp_path: Path) -> None:
    shown(browser, module_plan(), tmp_path)
    browser.point(*middle(browser, "#module-drawing .op[data-step='3'] rect"))
    assert "net.a.two.2" in tip(browser)
    browser.point(*middle(browser, "#module-required [data-step='3'] .hit"))
    assert "available" in tip(browser)
    browser.point(*middle(browser, "[data-region='2'] [data-box] rect"))
    assert "MIFM" in tip(browser)
    browser.point(4, 4)
    assert tip(browser) == ""


def test_the_arrows_walk_a_picture(browser: Chromium, tmp_path: Path) -> None:
    shown(browser, module_plan(), tmp_path)
    browser.evaluate("document.querySelector('#module-required svg').focus()")
    told = set()
    for _ in range(6):
        browser.key("ArrowRight")
        told.add(tip(browser))
    assert len(told) == 6
    browser.key("Escape")
    assert tip(browser) == ""


def test_hostile_names_run_nothing(browser: Chromium, tmp_path: Path) -> None:
    shown(browser, module_plan(HOSTILE), tmp_path)
    browser.point(*middle(browser, "#module-drawing .op rect"))
    assert browser.evaluate("document.title") != "owned"
    assert browser.complaints == []
