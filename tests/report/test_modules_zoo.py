"""The report of networks that the simple method plans: its figures are the program's, and the paper's."""

from __future__ import annotations

from itertools import combinations

import pytest
from rich.console import Console
from test_modules_figures import Drawn
from test_page import Page

import onchip
from onchip.machines.chip import load_chip
from onchip.planners.branches.plan import plan_branches
from onchip.plans import Plan
from onchip.report import html, summary, timeline
from onchip.report.modules.anatomy import parts
from onchip.report.modules.overview import addresses
from onchip.report.modules.regions import regions
from onchip.report.modules.required import wishes
from onchip.report.modules.roles import layers

pytestmark = pytest.mark.slow
CHIP = load_chip("exynos-npu")


def planned(name: str) -> Plan:
    assert CHIP.scratchpad_bytes
    found = plan_branches(onchip.api.load(f"zoo:{name}").network, CHIP, CHIP.scratchpad_bytes).plan
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["inception_v3", "googlenet", "resnet50", "inception_resnet_v2"])
def test_layers_need_what_lies_there_and_regions_lie_apart(name: str) -> None:
    plan = planned(name)
    line = timeline(plan)
    found = parts(plan, line)
    assert sum(p.is_module for p in found) > 5
    for part in found:
        for row in layers(part, line, ()) if part.is_module else ():
            taken = row.required + sum(row.held) + row.occupied + row.other
            assert taken <= line.steps[row.step].occupancy_bytes <= plan.budget
            assert row.required <= row.available(plan.budget)
    for picture in [addresses(found, line), *(regions(p, line) for p in found if p.is_module)]:
        boxes = sorted(Drawn(picture).rectangles("box"))
        for a, b in combinations(boxes, 2):
            if b[0] > a[2]:
                continue
            across, down = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
            assert across < 0.25 or down < 0.6, (a, b)


def test_inception_v3_has_the_papers_table_and_says_why_one_module_goes_to_dram() -> None:
    plan = planned("inception_v3")
    source = html(plan)
    text = Page(source).text
    for figure in ("21,073.5", "24,904", "45,977.5", "47.14", "2.41", "100 + 100", "1 + 3"):
        assert figure in text
    line = timeline(plan)
    (second,) = (p for p in parts(plan, line) if p.section.processing == "II")
    short = [w for w in wishes(second, line, layers(second, line, ())) if w.required > w.available]
    assert [plan.network.operators[w.operator].type for w in short] == ["MaxPool"]
    depths = {n.depth for p in parts(plan, line) for n in p.nested}
    assert depths == {2}
    assert sum(len(p.nested) for p in parts(plan, line)) == 4
    console = Console(width=100, no_color=True)
    with console.capture() as capture:
        console.print(summary(plan))
    assert "24,904" in capture.get()
    assert len(source.encode()) < 1_000_000
