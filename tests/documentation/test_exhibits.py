"""The index of the papers' exhibits names pages, headings, tests and scripts that are there."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[2] / "benchmarks" / part) for part in ("paper", "")]

from exhibits import PAPERS
from exhibits_page import ROOT, index, wrong


def test_every_record_names_what_is_there_and_no_section_is_without_one() -> None:
    assert list(wrong()) == []


def test_the_page_is_what_the_records_say() -> None:
    assert "\n".join(index()) in (ROOT / "docs" / "exhibits.md").read_text("utf-8")


def test_nothing_of_the_papers_is_absent() -> None:
    every = [(paper.title, one) for paper in PAPERS for one in paper.exhibits]
    assert [(title, one.name) for title, one in every if one.outcome == "absent"] == []
    assert sum(one.complete for _, one in every) >= 60
