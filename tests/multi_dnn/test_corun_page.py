"""docs/corun.md says what the judge says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from workloads import alone

from large_cases import with_campaign
from onchip.machines.soc_file import load_soc, parse_soc
from onchip.multi_dnn.published import googlenet
from onchip.multi_dnn.schedule_json import schedule_json
from onchip.multi_dnn.simulate import simulate
from onchip.multi_dnn.workload import Job, Workload

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

from corun_model import SECTIONS  # noqa: E402
from page_marks import marks  # noqa: E402

PAGE = (ROOT / "docs" / "corun.md").read_text(encoding="utf-8")

LONG = ("bandwidth", "equations", "orders", "sets")
"""Tables of some seconds: `benchmarks/corun_model.py` prints them again."""


@pytest.mark.slow
@pytest.mark.parametrize("name", with_campaign(SECTIONS, LONG))
def test_a_table_is_what_its_script_prints(name: str) -> None:
    begin, end = marks(name)
    assert PAGE.split(begin)[1].split(end)[0].strip("\n") == "\n".join(SECTIONS[name]())


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


def test_the_pages_soc_can_be_read() -> None:
    soc = parse_soc(PAGE.split("```toml\n")[1].split("```")[0].encode(), "page")
    assert soc.unit_names == ("gpu", "npu")
    assert set(soc.contention) == {"light", "medium", "heavy", "mine"}


def test_the_page_names_the_keys_of_a_schedule() -> None:
    soc = load_soc("xavier-agx")
    work = Workload(soc, (Job("x", googlenet()),), soc.model())
    schedule = alone(work, [(0,) * 10])
    document = json.loads(schedule_json(schedule, simulate(work, schedule)))
    named = PAGE.split("## Schedule files")[1].split("## Errata")[0]
    for table in (
        document,
        document["networks"][0],
        document["networks"][0]["segments"][0],
        document["result"],
    ):
        for key in table:
            assert f"`{key}`" in named or key == "format", key
