"""A figure in a record's reason stands on the page that the record names."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "benchmarks" / part) for part in ("paper", "")]

from exhibits import PAPERS, Exhibit  # noqa: E402

RECORDS = [(paper.title, one) for paper in PAPERS for one in paper.exhibits]
ELSEWHERE = {"5.3"}
"""Sections of the papers."""


def absent(one: Exhibit) -> list[str]:
    """Figures of the reason that the page does not have; 10.6 and 10.60 are one."""
    page = (ROOT / "docs" / one.page.partition("#")[0]).read_text("utf-8")
    said = [figure.rstrip(".,") for figure in re.findall(r"\d[\d,]*\.?\d*", one.reason)]
    return [
        figure
        for figure in said
        if figure not in ELSEWHERE and not re.search(rf"(?<![\d.]){re.escape(figure)}0?(?!\d)", page)
    ]


@pytest.mark.parametrize(("title", "one"), RECORDS, ids=lambda value: getattr(value, "name", value))
def test_a_reasons_figures_stand_on_its_page(title: str, one: Exhibit) -> None:
    assert absent(one) == [], title


ENDS = {
    "1 s, 0.296 s on average", "1.40x to 2.02x", "1.86-3.66 times", "17-75 %", "47.14 %", "Fig. 14",
    "Fig. 16, DNNVM stops", "NASNet-A at MH, greedy rule", "O(2^max succ V^2)", "O(T A) for MODeL",
    "O(T A^2)", "Table 2", "Table 5, on-line groups", "Table 5, top-down", "Table 7", "Table 8", "Table II",
    "always fewer", "order of least peak, same rule", "section 5.3", "section 7.2, im2col",
}  # fmt: skip
"""Exhibits whose ranges and counts are ends or sums of the page's cells, which no line of it has together."""


def apart(one: Exhibit) -> list[str]:
    """Ranges and counts, `1 to 2` and `3 of 4`, that the page does not have as such."""
    page = " ".join((ROOT / "docs" / one.page.partition("#")[0]).read_text("utf-8").split())
    pairs = re.findall(r"(\d[\d.,]*\d|\d) (to|of) (\d[\d.,]*\d|\d)(?![\d.]*\d)", one.reason)
    return [
        f"{a} {how} {b}"
        for a, how, b in pairs
        if not re.search(
            rf"(?<![\d.,]){re.escape(a)}0?(?: %|%| x)?(?: to |-| of |; | and ){re.escape(b)}0?(?!\d)", page
        )
    ]


@pytest.mark.parametrize(
    "one",
    [one for paper in PAPERS for one in paper.exhibits if one.name not in ENDS],
    ids=lambda one: f"{one.page}-{one.name}",
)
def test_a_reasons_ranges_and_counts_stand_on_its_page(one: Exhibit) -> None:
    assert apart(one) == []


def test_a_range_whose_ends_stand_apart_is_found() -> None:
    wrong = Exhibit("x", "y", page="optimus.md", reason="0.97 to 1.22, on 6 of 10 networks, and 0.97 to 1.23")
    assert apart(wrong) == ["0.97 to 1.22", "6 of 10"]


def test_a_figure_that_no_page_has_is_found() -> None:
    wrong = Exhibit("x", "y", page="hax-conn.md", reason="17.1 % here, and 987.654 there")
    assert absent(wrong) == ["987.654"]
