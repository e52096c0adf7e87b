"""A figure in a record's reason stands on the page that the record names."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "benchmarks" / part) for part in ("paper", "")]

from exhibits import PAPERS, Exhibit  # noqa: E402

RECORDS = [(paper.title, one) for paper in PAPERS if paper.title != "vMCU" for one in paper.exhibits]
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


def test_a_figure_that_no_page_has_is_found() -> None:
    wrong = Exhibit("x", "y", page="hax-conn.md", reason="17.1 % here, and 987.654 there")
    assert absent(wrong) == ["987.654"]
