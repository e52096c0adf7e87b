"""The notebook fragment: well-formed, quiet, and safe beside others of its kind."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from greedy import greedy
from hypothesis import given, settings
from test_page import Page, chain

from onchip.network import Network
from onchip.report import notebook, timeline
from strategies import hostile_networks


def test_many_can_share_a_page() -> None:
    page = Page(notebook(greedy(chain(40))))
    for tag, attrs in page.elements:
        assert tag not in ("script", "style", "link", "img", "iframe")
        assert not {"id", "class", "href", "src"} & attrs.keys()
    assert "url(" not in notebook(greedy(chain(40)))


def test_every_residency_is_drawn_inside_the_map() -> None:
    plan = greedy(chain(40))
    page = Page(notebook(plan))
    titled = page.text.count(" bytes at ")
    assert titled == len(timeline(plan).residencies)
    for tag, attrs in page.elements:
        if tag == "rect":
            x, width = float(attrs["x"] or 0), float(attrs["width"] or 0)
            assert 43 <= x <= x + width <= 645


@pytest.mark.thorough
def test_a_large_plan_stays_small_and_says_what_is_left_out() -> None:
    fragment = notebook(greedy(chain(2500)))
    assert len(fragment) < 500_000
    assert "smaller residencies are not drawn" in fragment


@pytest.mark.thorough
@given(hostile_networks())
@settings(max_examples=30, deadline=None)
def test_hostile_names_leave_the_fragment_well_formed(network: Network) -> None:
    fragment = notebook(greedy(network))
    tags = {element.tag for element in ElementTree.fromstring(fragment).iter()}
    assert tags <= {"div", "span", "b", "svg", "rect", "text", "path", "title"}
