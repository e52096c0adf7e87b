"""docs/hax-conn.md is what its script prints, and the script tells a schedule that is worse or wrong."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "paper")]

from hax_conn import SECTIONS  # noqa: E402
from hax_conn_acceptance import AT_MOST, every_choice, googlenet_twice  # noqa: E402
from hax_conn_cases import WRONG, XAVIER, pair, violations  # noqa: E402
from page_marks import marks, put_into  # noqa: E402

PAGE = (ROOT / "docs" / "hax-conn.md").read_text(encoding="utf-8")
OTHER = ("pairs", "fig6", "fig7", "planning", "searched", "z3")
"""Sections of times, and of one of several schedules that are as good."""
QUICK = ("table2", "readings", "table4", "table7", "fig1", "fig3", "fig4")
"""Sections that the quick run prints again; the whole one prints all but `OTHER`."""


def stands(name: str) -> str:
    """What the page has for a section."""
    begin, end = marks(name)
    return PAGE.split(begin)[1].split(end)[0].strip("\n")


def settled(text: str) -> str:
    """What does not hang on which of several schedules of the same cost was found."""
    text = text.split("| planned for |")[0]
    text = re.sub(r"^\| (Fig\. 6:|the same, planned for).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\b[GD]{7,}\b", "", text)


def test_the_page_has_every_section_once() -> None:
    assert sorted(re.findall(r"<!-- (\w+): begin -->", PAGE)) == sorted(SECTIONS)
    assert all(stands(name) for name in SECTIONS)


@pytest.mark.parametrize("name", QUICK)
def test_a_section_is_what_the_script_prints(name: str) -> None:
    assert settled(stands(name)) == settled("\n".join(SECTIONS[name]()))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SECTIONS if name not in (*OTHER, *QUICK)])
def test_every_other_section_is_what_the_script_prints(name: str) -> None:
    assert settled(stands(name)) == settled("\n".join(SECTIONS[name]()))
    assert not WRONG


def test_a_section_is_put_between_its_own_marks() -> None:
    page = "\n".join(("head", *marks("fig1"), "between", *marks("fig3"), "tail"))
    new = put_into(page, "fig3", "rows")
    assert new == page.replace(marks("fig3")[0], f"{marks('fig3')[0]}\nrows")
    with pytest.raises(SystemExit, match="no <!-- fig4: begin -->"):
        put_into(page, "fig4", "rows")


def test_googlenet_twice_is_as_good_as_every_choice() -> None:
    found = googlenet_twice()
    assert not WRONG
    assert found.cost <= AT_MOST
    workload = pair(XAVIER, "googlenet", "googlenet", "light")
    assert found.cost == pytest.approx(every_choice(workload, bounds=False))


def test_the_sweep_tells_a_schedule_that_is_worse_and_one_that_is_not_its_own() -> None:
    result = googlenet_twice().result
    assert [*violations(result, "light")] == []
    gpu = next(one for one in result.baselines if one.name == "gpu alone")
    worse = replace(result.solution, schedule=gpu.schedule, timeline=gpu.timeline, lower_bound_ms=0.0)
    assert "4.6400 ms, contention-blind is better" in violations(replace(result, solution=worse), "light")
    mixed = replace(result.solution, schedule=gpu.schedule)
    (refused,) = violations(replace(result, solution=mixed), "light")
    assert "illegal schedule" in refused
