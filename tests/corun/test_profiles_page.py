"""docs/corun-profiles.md: its CSV is one, and its table of groups is what the networks have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from onchip.corun.grouping import layer_groups
from onchip.corun.profile_file import profile_from_csv
from onchip.readers import load

PAGE = (Path(__file__).parents[2] / "docs" / "corun-profiles.md").read_text(encoding="utf-8")


def test_the_csv_is_a_profile() -> None:
    (text,) = re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)
    profile = profile_from_csv(
        text.encode(), "page.csv", network="own", soc="xavier-agx", units=("gpu", "dla")
    )
    assert [g.name for g in profile.groups] == ["stem", "body", "head"]
    assert profile.groups[2].ms == (0.31, None)
    assert profile.groups[0].gb_per_second == pytest.approx((57.3, 57.3 * 26 / 40))
    assert profile.transition_ms(0, 1, 0) == pytest.approx(0.15)


ROWS = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \| \d+% \|$", PAGE, re.MULTILINE)


def test_the_page_has_the_papers_networks() -> None:
    assert {"alexnet", "caffenet", "densenet121", "fcn_resnet18", "googlenet"} <= {row[0] for row in ROWS}
    assert len(ROWS) == 12


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_groups_are_as_many_as_the_page_says(row: tuple[str, str, str, str]) -> None:
    name, *counts = row
    network = load(f"zoo:{name}").network
    most = len(layer_groups(network, most=len(network.operators)))
    assert [*map(int, counts)] == [len(network.operators), most, len(layer_groups(network))]
