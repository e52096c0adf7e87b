"""The page in a real browser: opened from disk, it asks for nothing, logs nothing and answers the mouse."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fused_plans import diamond, diamond_plan, fused, kept_plan, row
from greedy import greedy
from test_page import chain

from onchip.network import Network, OperatorSpec
from onchip.plans import Plan
from onchip.report import html

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))

from chromium import Chromium, find_chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_chromium() is None, reason="no chromium is installed"),
]

HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as opened:
        yield opened


def shown(browser: Chromium, what: Network | Plan, folder: Path) -> None:
    path = folder / "report.html"
    path.write_text(html(what if isinstance(what, Plan) else greedy(what)), "utf-8")
    browser.open(path)


def tip(browser: Chromium) -> str:
    return str(
        browser.evaluate(
            "document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText"
        )
    )


def inside(browser: Chromium, across: float, down: float) -> tuple[float, float]:
    """A point of the window by its share of the canvas."""
    box = browser.evaluate(
        "(({x, y, width, height}) => [x, y, width, height])("
        "document.getElementById('canvas').getBoundingClientRect())"
    )
    return box[0] + box[2] * across, box[1] + 62 + (box[3] - 70) * down


def requests(browser: Chromium) -> list[str]:
    """What the page asked for beside itself."""
    return [url for url in browser.requests if not url.endswith("/report.html")]


def test_it_draws_asks_for_nothing_and_logs_nothing(browser: Chromium, tmp_path: Path) -> None:
    shown(browser, chain(1000), tmp_path)
    assert requests(browser) == []
    assert browser.complaints == []
    painted = browser.evaluate(
        "(() => { const c = document.getElementById('canvas'), seen = new Set();"
        " const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " for (let i = 0; i < p.length; i += 4) seen.add(p[i] << 16 | p[i + 1] << 8 | p[i + 2]);"
        " return seen.size; })()"
    )
    assert painted > 12  # a blank canvas has one colour, an empty map three or four


def test_hovering_names_the_tensor_and_the_operator_and_clicking_pins(
    browser: Chromium, tmp_path: Path
) -> None:
    shown(browser, chain(5), tmp_path)
    browser.point(*inside(browser, 0.25, 0.02))
    assert "layer/t" in tip(browser)
    assert "read by" in tip(browser)
    browser.point(*inside(browser, 0.05, 0.25))
    assert "layer/op1" in tip(browser)
    assert "inputs" in tip(browser)
    browser.point(*inside(browser, 0.05, 0.25), click=True)
    browser.point(5, 5)
    assert "layer/op1" in tip(browser)
    browser.key("Escape")
    assert tip(browser) == ""


def test_the_keyboard_reaches_every_tensor(browser: Chromium, tmp_path: Path) -> None:
    shown(browser, chain(5), tmp_path)
    browser.evaluate("document.getElementById('canvas').focus()")
    browser.key("Home")
    assert "layer/op0" in tip(browser)
    browser.key("ArrowDown")
    assert "layer/op1" in tip(browser)
    browser.key("ArrowRight")
    assert "addresses" in tip(browser)
    assert browser.evaluate("document.getElementById('spoken').textContent").startswith("layer/t")


def test_search_and_tables_lead_to_the_map(browser: Chromium, tmp_path: Path) -> None:
    shown(browser, chain(200), tmp_path)
    browser.evaluate(
        "(() => { const f = document.getElementById('find'); f.value = 'op150';"
        " f.dispatchEvent(new Event('input'));"
        " f.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'})); })()"
    )
    browser.settle()
    assert "1 operator" in browser.evaluate("document.getElementById('found').textContent")
    assert "layer/op150" in tip(browser)
    browser.evaluate("document.querySelector('button.link[data-tensor]').click()")
    browser.settle()
    assert "layer/t" in tip(browser)
    assert browser.complaints == []


def rows_at(browser: Chromium, down: float) -> str:
    """The step that the tooltip names at a height of the map's label column, which may be below the fold."""
    browser.evaluate("document.getElementById('canvas').scrollIntoView({block: 'center'})")
    browser.point(*inside(browser, 0.05, down))
    return tip(browser).splitlines()[0]


def test_a_link_and_a_button_lead_to_the_steps_that_matter(browser: Chromium, tmp_path: Path) -> None:
    shown(browser, chain(200), tmp_path)
    browser.open(tmp_path / "report.html", "#steps=101-110")
    assert rows_at(browser, 0.05) == "layer/op100"
    assert rows_at(browser, 0.95) == "layer/op109"
    browser.evaluate("document.getElementById('fit').click()")
    browser.settle()
    assert rows_at(browser, 0.001) == "layer/op0"
    browser.evaluate("document.getElementById('spills').click()")
    browser.settle()
    assert browser.complaints == []


def test_the_systems_theme_is_followed_and_can_be_overruled(tmp_path: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    with Chromium(dark=True) as browser:
        shown(browser, chain(5), tmp_path)
        dark = browser.evaluate(background)
        browser.evaluate("document.getElementById('theme').click()")
        browser.settle()
        light = browser.evaluate(background)
        assert browser.complaints == []
    assert light == "rgb(255, 255, 255)"
    assert dark != light


def test_a_hostile_model_runs_nothing(browser: Chromium, tmp_path: Path) -> None:
    network = Network.build(
        HOSTILE, [("x", 90, "input"), (HOSTILE, 90, "activation")],
        [OperatorSpec(HOSTILE, HOSTILE, ["x"], [HOSTILE])], [HOSTILE], source=HOSTILE,
    )  # fmt: skip
    shown(browser, network, tmp_path)
    browser.point(*inside(browser, 0.25, 0.2))
    browser.point(*inside(browser, 0.05, 0.2), click=True)
    assert "<img src=x" in tip(browser)
    assert browser.evaluate("document.title") != "owned"
    assert browser.evaluate("document.querySelectorAll('img, script').length") == 2
    assert browser.complaints == []


def on_graph(browser: Chromium, x: float, y: float) -> tuple[float, float]:
    """A point of the window, by its place in the drawing, once the whole graph is fitted into the canvas."""
    at = browser.evaluate(
        "(() => { const c = document.getElementById('graph'); c.scrollIntoView({block: 'center'});"
        " const {x, y, width, height} = c.getBoundingClientRect(); const [w, h] = JSON.parse("
        "document.getElementById('plan').textContent).graph.size;"
        " const k = Math.min((width - 24) / w, (height - 24) / h, 1.1);"
        " return [x + width / 2 - (w / 2) * k, y + height / 2 - (h / 2) * k, k]; })()"
    )
    return at[0] + x * at[2], at[1] + y * at[2]


def test_the_graph_answers_the_mouse_and_a_click_opens_a_group(browser: Chromium, tmp_path: Path) -> None:
    plan = diamond_plan()
    shown(browser, plan, tmp_path)
    data = browser.evaluate("JSON.parse(document.getElementById('plan').textContent).graph")
    op = next(o for o in data["operators"] if o[3] == "net/add")
    unit = data["units"][op[0]]
    browser.point(*on_graph(browser, op[1] + 20, op[2] + 10))
    assert tip(browser).startswith("net/add")
    assert "reads" in tip(browser)
    browser.point(*on_graph(browser, unit[2] + 8, unit[3] + 4))
    assert tip(browser).startswith(unit[0])
    assert "DRAM in all" in tip(browser)
    browser.point(*on_graph(browser, unit[2] + 8, unit[3] + 4), click=True)
    panel = browser.evaluate("document.getElementById('group').innerText")
    assert panel.startswith(unit[0])
    assert "In the scratchpad while it runs" in panel
    assert "Names are those within net/" in panel  # in the nest that the group runs as
    assert {"a", "b", "s", "add"} <= set(panel.split())
    assert browser.complaints == []
    assert requests(browser) == []


def test_a_group_shows_its_whole_operands_beside_its_scratch(browser: Chromium, tmp_path: Path) -> None:
    plan = kept_plan()
    shown(browser, plan, tmp_path)
    assert "on chip, whole" in browser.evaluate("document.getElementById('graph-legend').innerText")
    browser.evaluate("document.querySelectorAll('button.link[data-unit]')[1].click()")
    browser.settle()
    panel = browser.evaluate("document.getElementById('group').innerText")
    # All of the program's ranges, and of the scratch that the plan declares what its proof finds in it.
    stays = {"enters": 2048, "leaves": 4096, "kept for later": 4096, "scratch": 1024}
    assert (
        f"In the scratchpad while it runs: {sum(stays.values()):,} B (11.0 KiB) of 12,000 B (11.7 KiB),"
        " 1.00 KiB of it scratch, 16 B of that used"
    ) in panel
    for part in (
        *("enters 2.00 KiB", "leaves 4.00 KiB", "kept for later 4.00 KiB"),
        *("weight tile 16 B", "reserved, not used 1008 B"),
    ):
        assert part in panel
    assert all(name in panel for name in ("net/x", "net/b"))
    browser.evaluate("document.querySelectorAll('button.link[data-unit]')[2].click()")
    browser.settle()
    panel = browser.evaluate("document.getElementById('group').innerText")
    assert "whole, 4.00 KiB under the output" in panel
    assert browser.complaints == []


def test_the_keyboard_walks_the_groups_in_running_order(browser: Chromium, tmp_path: Path) -> None:
    plan = fused(row(12))
    shown(browser, plan, tmp_path)
    browser.evaluate("document.getElementById('graph').focus()")
    names = [g.name for g in plan.groups]
    browser.key("Home")
    heading = "document.querySelector('#group h3').innerText"
    assert browser.evaluate(heading).startswith(names[0])
    browser.key("ArrowRight")
    assert browser.evaluate(heading).startswith(names[1])
    assert names[1] in browser.evaluate("document.getElementById('spoken').textContent")
    browser.key("End")
    assert browser.evaluate(heading).startswith(names[-1])
    for key in ("Enter", "+", "-", "0"):
        browser.key(key)
    browser.key("Escape")
    assert tip(browser) == ""
    assert browser.complaints == []


def test_groups_can_be_closed_and_shaded_and_reached_from_the_table(
    browser: Chromium, tmp_path: Path
) -> None:
    plan = fused(row(12))
    shown(browser, plan, tmp_path)
    picture = "document.getElementById('graph').toDataURL()"
    seen = {browser.evaluate(picture)}
    browser.evaluate("document.getElementById('graph-open').click()")
    browser.settle()
    seen.add(browser.evaluate(picture))
    browser.evaluate(
        "(() => { const s = document.getElementById('graph-shade'); s.value = 'scratch';"
        " s.dispatchEvent(new Event('change')); })()"
    )
    browser.settle()
    seen.add(browser.evaluate(picture))
    browser.evaluate("document.querySelectorAll('button.link[data-unit]')[2].click()")
    browser.settle()
    seen.add(browser.evaluate(picture))
    assert len(seen) == 4
    assert browser.evaluate("document.querySelector('#group h3').innerText").startswith(plan.groups[2].name)
    assert browser.complaints == []


def test_a_hostile_fused_model_runs_nothing(browser: Chromium, tmp_path: Path) -> None:
    shown(browser, fused(diamond(HOSTILE)), tmp_path)
    browser.evaluate("document.querySelector('button.link[data-unit]').click()")
    browser.settle()
    assert "<img src=x" in browser.evaluate("document.getElementById('group').innerText")
    assert browser.evaluate("document.title") != "owned"
    assert browser.evaluate("document.querySelectorAll('img, script').length") == 2
    assert browser.complaints == []
