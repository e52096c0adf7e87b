"""The page of a schedule: all that the judge found is in the picture, and names stay names."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_page import Page

from multi_dnn.made import crossing, random_judged
from onchip.multi_dnn.judged import Judged
from onchip.multi_dnn.report import html
from onchip.multi_dnn.report.words import claim_sentence, milliseconds
from onchip.multi_dnn.result.corunned_table import table
from onchip.multi_dnn.schedule_json import Claim
from strategies import hostile_names

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from chromium import Chromium, find_chromium


@given(st.randoms(use_true_random=False))
@settings(max_examples=12, deadline=None)
def test_every_group_its_contention_and_every_change_of_units_is_drawn(rng: Random) -> None:
    made = random_judged(rng)
    page = Page(html(made))
    segments = made.timeline.segments
    drawn = [attrs for tag, attrs in page.elements if "data-segment" in attrs]
    assert len(drawn) == 2 * len(segments)  # once by unit, once by network
    assert {(a["data-segment"], a["data-unit"]) for a in drawn} == {
        (str(n), str(s.unit)) for n, s in enumerate(segments)
    }
    slowed = sum(p.slowdown > 1 + 1e-12 and p.end > p.start for s in segments for p in s.pieces)
    assert sum(attrs.get("class") == "slow" for _, attrs in page.elements) == 2 * slowed
    assert sum(attrs.get("class") == "loss" for _, attrs in page.elements) == slowed
    at = {s.step: s.unit for s in segments}
    changes = sum(at.get(step._replace(group=step.group + 1), unit) != unit for step, unit in at.items())
    assert sum(attrs.get("marker-end") == "url(#arrow)" for _, attrs in page.elements) == changes


def lost_area(made: Judged) -> float:
    return sum((p.end - p.start) * (1 - 1 / p.slowdown) for s in made.timeline.segments for p in s.pieces)


def test_boxes_are_as_long_as_the_time_they_stand_for() -> None:
    made = crossing()
    page = Page(html(made))
    boxes = [a for _, a in page.elements if (a.get("class") or "").startswith("box ")]
    first = boxes[: len(made.timeline.segments)]
    width = sum(float(a["width"] or 0) for a in first)
    scale = (1400 - 118 - 14) / made.timeline.makespan_ms
    assert width == pytest.approx(sum(made.timeline.busy_ms) * scale, rel=1e-3)
    assert f"{lost_area(made):.3f} ms" in page.text


def test_times_of_any_size_are_written_out() -> None:
    assert [milliseconds(ms) for ms in (0.0, 12.3456, 0.00912, 0.00044, 1.449e-05, 2.7e-06, 1e-12)] == [
        "0.000", "12.346", "0.0091", "0.00044", "0.000014", "0.0000027", "0.000",
    ]  # fmt: skip


def test_others_stand_beside_best_first_and_the_sentence_names_the_best() -> None:
    made = crossing()
    page = Page(html(made)).text
    assert page.index("one on each") < page.index("gpu alone")
    assert "4.212" in page
    assert "4.640" in page
    assert "every schedule has at least 3.200" in claim_sentence(made)
    assert "Best of the others: one on each, 4.212" in claim_sentence(made)
    slow = replace(made.claim.rivals[0], name="slow", value=100.0)
    rates = replace(made, claim=Claim("best found", "fps", 400.0, None, (slow,), "light"))
    assert "at most 400.000" in claim_sentence(rates)
    assert f"slow, 100.000 ({100 * (made.timeline.fps / 100 - 1):.1f} % worse)" in claim_sentence(rates)


def test_the_page_needs_nothing_else() -> None:
    page = Page(html(crossing()))
    for tag, attrs in page.elements:
        assert tag not in ("iframe", "object", "embed", "base")
        for key in ("src", "href"):
            assert (attrs.get(key) or "data:").startswith("data:")
        assert not any(key.startswith("on") or key == "style" for key in attrs)


@pytest.mark.thorough
@given(hostile_names)
@settings(max_examples=8, deadline=None)
def test_hostile_names_stay_text(name: str) -> None:
    plain, hostile = (
        Page(html(crossing(first, second))) for first, second in (("a", "b"), (name, name + " #2"))
    )
    kinds = {tag for tag, _ in plain.elements}
    assert {tag for tag, _ in hostile.elements} <= kinds
    assert [r[:2] for r in hostile.raw] == [r[:2] for r in plain.raw]
    from rich.console import Console

    console = Console(width=100, no_color=True)
    with console.capture() as capture:
        console.print(table(crossing(name, name + " #2"), 100))
    assert all(c.isprintable() or c == "\n" for c in capture.get())


@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="no chromium is installed")
def test_in_a_browser_it_answers_mouse_and_keyboard_and_asks_for_nothing(tmp_path: Path) -> None:
    hostile = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    path = tmp_path / "schedule.html"
    path.write_text(html(crossing(hostile, "second")), "utf-8")
    with Chromium() as browser:
        browser.open(path)
        assert [url for url in browser.requests if not url.endswith("/schedule.html")] == []
        tip = "document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText"
        box = browser.evaluate(
            "(({x, y, width, height}) => [x + width / 2, y + height / 2])("
            "document.querySelector('svg.sheet [data-unit=\"1\"]').getBoundingClientRect())"
        )
        browser.point(*box)
        assert "onerror" in browser.evaluate(tip)
        assert "unit\ndla" in browser.evaluate(tip)
        browser.evaluate("document.querySelector('svg.sheet').focus()")
        browser.key("ArrowUp")
        assert "second: 0-9" in browser.evaluate(tip)
        browser.key("ArrowRight")
        assert "second: 10-24" in browser.evaluate(tip)
        browser.key("Escape")
        assert browser.evaluate(tip) == ""
        browser.evaluate("document.getElementById('theme').click()")
        assert browser.evaluate("document.documentElement.dataset.theme") in ("light", "dark")
        assert browser.evaluate("document.title") != "owned"
        browser.page.set_viewport_size({"width": 390, "height": 844})
        browser.settle()
        assert browser.evaluate("document.documentElement.scrollWidth") <= 390
        assert browser.complaints == []
