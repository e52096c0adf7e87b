"""docs/corun-profiles.md: its CSV is one, and its table of groups is what the networks have."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from onchip.multi_dnn.profile_file import profile_from_csv

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

from corun_profiles import SECTIONS  # noqa: E402
from page_marks import marks  # noqa: E402

PAGE = (ROOT / "docs" / "corun-profiles.md").read_text(encoding="utf-8")


def test_the_csv_is_a_profile() -> None:
    (text,) = re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)
    profile = profile_from_csv(
        text.encode(), "page.csv", network="own", soc="xavier-agx", units=("gpu", "dla")
    )
    assert [g.name for g in profile.groups] == ["stem", "body", "head"]
    assert profile.groups[2].ms == (0.31, None)
    assert profile.groups[0].gb_per_second == pytest.approx((57.3, 57.3 * 26 / 40))
    assert profile.transition_ms(0, 1, 0) == pytest.approx(0.15)


@pytest.mark.thorough
@pytest.mark.parametrize("name", SECTIONS)
def test_a_table_is_what_its_script_prints(name: str) -> None:
    begin, end = marks(name)
    assert PAGE.split(begin)[1].split(end)[0].strip("\n") == "\n".join(SECTIONS[name]())


def test_the_page_has_the_papers_networks() -> None:
    names = re.findall(r"^\| (\w+) \| \d+ \| \d+ \| \d+ \| \d+% \|$", PAGE, re.MULTILINE)
    assert {"alexnet", "caffenet", "densenet121", "fcn_resnet18", "googlenet"} <= {*names}
    assert len(names) == 12
