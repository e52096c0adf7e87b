"""Nests on the page: every loop, operator and buffer has its row, with its figures; names are text."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from nest_shown_plans import layers, plan_in, products_plan, windows_plan
from test_page import Page

from onchip.network import Network, OperatorSpec, Reach, Side
from onchip.planners.fused_group import TIMES
from onchip.plans import Leaf, Loop, Nest, Plan
from onchip.plans.nest import MOST_DEEP
from onchip.report import html
from onchip.report.nest.drawing import MOST_RAILS
from strategies import hostile_names

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from chromium import Chromium, find_chromium


def rows(plan: Plan) -> list[tuple[str, str]]:
    """The rows of the first nest on the page: kind and text."""
    source = html(plan).partition('data-nest="0"')[2].partition("</section>")[0]
    found = re.findall(r'<div class="n-row n-(\w+)" role="row">(.*?)\n  </div>', source, re.DOTALL)
    texts = [(kind, re.sub(r"\s+", " ", Page(text).text).strip()) for kind, text in found]
    assert texts[0][0] == "head"
    return texts[1:]


def test_the_worked_example_row_by_row() -> None:
    found = rows(products_plan())
    assert [kind for kind, _ in found] == [
        "nest", "loop", "buffer", "leaf", "buffer", "buffer", "leaf", "buffer", "buffer",
    ]  # fmt: skip
    nest, loop, h, up, x, a, down, b, z = (text for _, text in found)
    assert nest.startswith("nest runs once")
    assert "for hidden features 6 in 3 turns of 2" in loop
    assert "axis 1 of up, axis 2 of down" in loop
    assert f"4 {TIMES} 2 of 4 {TIMES} 6" in h
    assert "8 B of 24 B" in h
    assert "stays, anew in 3 turns" in h
    assert "run up" in up
    assert "in slices: sum 4 by 1, rows 4 by 1" in up
    assert "11 B peak" in up + down
    assert f"1 B {TIMES} 48 = 48 B" in x
    assert f"{TIMES}3" in x
    assert f"{TIMES}1" in a
    assert f"{TIMES}1" in b
    assert f"= 80 B {TIMES}5 partial sums come back" in z


def test_what_is_whole_stands_beside_the_scratch() -> None:
    found = rows(products_plan(whole=("x", "z")))
    assert [text for kind, text in found if kind == "whole"] == [
        "x whole on chip, read here beside the scratch16 B stays",
        "z whole on chip, made here beside the scratch16 B stays",
    ]


def test_rings_and_windows_are_named() -> None:
    found = rows(windows_plan(("h",)))
    assert any("windows slide" in text for kind, text in found if kind == "loop")
    (ring,) = (text for kind, text in found if kind == "buffer" and text.startswith("h ring"))
    assert "stays, from turn to turn" in ring
    assert any("makes 1.38" in text for kind, text in rows(windows_plan()) if kind == "leaf")


def test_equal_nests_are_drawn_once_and_the_script_knows_the_names_of_all() -> None:
    page = Page(html(layers(4)))
    assert sum(tag == "section" and attrs.get("class") == "nest" for tag, attrs in page.elements) == 1
    nests = page.data["graph"]["nests"]
    assert [nests[str(n)][0] for n in range(4)] == [0] * 4
    assert nests["2"][1] == "layer2."
    assert nests["2"][2][:2] == ["up", "down"]
    assert "t3" in nests["2"][2]
    assert "4 groups run alike" in page.text


@pytest.mark.thorough
@given(hostile_names)
@settings(max_examples=20, deadline=None)
def test_hostile_names_stay_text(name: str) -> None:
    plain = Page(html(layers(2, ("tame.{}u", "tame.{}d", "t{}"))))
    page = Page(html(layers(2, (f"{name}.{{}}u", f"{name}.{{}}d", "t{}"))))
    assert page.shape == plain.shape


def large(count: int) -> Plan:
    """A chain of `count` element-wise operators, each with a second operand from outside, in one loop."""
    side = (Side(64, 0), Side(32, 1))
    tensors = [("t0", 2048, "input")]
    operators = []
    for i in range(count):
        tensors += [
            (f"a_rather_long_name_of_an_operand_{i}", 2048, "input"),
            (f"t{i + 1}", 2048, "activation"),
        ]
        reads = [f"t{i}", f"a_rather_long_name_of_an_operand_{i}"]
        reach = Reach((64, 32), (side, side))
        operators.append(OperatorSpec(f"op{i}", "Add", reads, [f"t{i + 1}"], reach=reach))
    network = Network.build("large", tensors, operators, [f"t{count}"])  # type: ignore[arg-type]
    over = tuple((f"op{i}", 0) for i in range(count))
    body = tuple(Leaf(f"op{i}") for i in range(count))
    return plan_in(network, Nest((Loop(over, 4, body),)), budget=10_000)


def test_a_nest_of_many_buffers_has_a_row_for_each() -> None:
    found = rows(large(24))
    assert sum(kind == "buffer" for kind, _ in found) == 49
    assert sum(kind == "leaf" for kind, _ in found) == 24
    (loop,) = (text for kind, text in found if kind == "loop")
    assert "for rows 64 in 16 turns of 4" in loop
    assert len(loop) < 100  # the axes of so many operators are not all named


def test_the_deepest_nest_says_how_deep_its_loops_are() -> None:
    body: tuple[Leaf | Loop, ...] = (Leaf("up"), Leaf("down"))
    for _ in range(MOST_DEEP):
        body = (Loop((("up", 0), ("down", 0)), 1, body),)
    source = html(products_plan(Nest(body)))
    assert f"{MOST_DEEP} deep" in source
    assert max(line.count('class="n-rail') for line in source.splitlines()) == MOST_RAILS


@pytest.mark.slow
@pytest.mark.skipif(find_chromium() is None, reason="no chromium is installed")
@pytest.mark.parametrize("width", [360, 1200])
def test_the_panel_of_a_group_shows_its_nest_in_any_width(width: int, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    with Chromium(width, 800) as browser:
        for plan, group, name in ((layers(3), 2, "up"), (large(24), 0, "op7")):
            path.write_text(html(plan), "utf-8")
            browser.open(path)
            browser.evaluate(f"document.querySelectorAll('[data-unit]')[{group}].click()")
            browser.settle()
            text = str(browser.evaluate("document.querySelector('#group .nest').innerText"))
            assert f"run {name}" in text
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            assert browser.evaluate("getComputedStyle(document.getElementById('nests')).display") == "none"
            assert not browser.complaints
