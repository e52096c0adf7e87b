"""docs/corun.md says what the judge says."""

from __future__ import annotations

from pathlib import Path

import pytest
from workloads import alone

from onchip.corun.profile_file import profile_from_csv
from onchip.corun.published import googlenet
from onchip.corun.simulate import simulate
from onchip.corun.soc_file import load_soc
from onchip.corun.workload import Job, Workload

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "corun.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["light", "medium", "heavy"])
def test_the_pages_figures_are_the_judges(name: str) -> None:
    soc = load_soc("xavier-agx")
    work = Workload(soc, (Job("x", googlenet()), Job("y", googlenet())), soc.model(name))
    both, split = (simulate(work, alone(work, [(0,) * 10, (unit,) * 10])) for unit in (0, 1))
    slowest = max(piece.slowdown for segment in split.segments for piece in segment.pieces)
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| {name} | 4.640"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:3] == [f"{both.makespan_ms:.3f}", f"{split.makespan_ms:.3f}"]
    assert cells[5] == f"{slowest:.3f}"


def test_the_pages_profile_can_be_read() -> None:
    text = PAGE.split("```csv\n")[1].split("```")[0]
    profile = profile_from_csv(text.encode(), "page", network="n", soc="xavier-agx", units=("gpu", "dla"))
    assert profile.groups[0].gb_per_second[1] == pytest.approx(57.3 * 25 / 42)
    assert not profile.groups[1].runs_on(1)
