"""Take a picture of a plan's report in a real browser: `scripts/screenshot.py PLAN OUT.png`.

Needs Chromium (Debian: `apt-get install chromium`). The pictures in the README are made by

    onchip plan zoo:nasnetalarge --no-fuse --budget MR -o plan.json
    python scripts/screenshot.py plan.json docs/images/memory-map.png --readme
    python scripts/screenshot.py plan.json docs/images/memory-map-dark.png --readme --dark

and the one of fused groups, where a plan has them, by

    onchip fuse zoo:squeezenet1_0 --chip optimus -o plan.json
    python scripts/screenshot.py plan.json docs/images/fusion.png --readme
    python scripts/screenshot.py plan.json docs/images/fusion-dark.png --readme --dark

Those of modules, where a plan has them, are made by

    onchip branches zoo:inception_v3 --chip exynos-npu -o plan.json
    python scripts/screenshot.py plan.json docs/images/modules.png --readme
    python scripts/screenshot.py plan.json docs/images/modules-dark.png --readme --dark
    python scripts/screenshot.py plan.json docs/images/module-overview.png --figure overview
    python scripts/screenshot.py plan.json docs/images/module-regions.png --figure regions --module Mixed_5d
    python scripts/screenshot.py plan.json docs/images/module-required.png --figure required
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from chromium import Chromium

from onchip.plans import read_plan
from onchip.report import html


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--width", type=int, default=1400, help="of the window, in CSS pixels")
    parser.add_argument("--height", type=int, default=1000)
    parser.add_argument("--scale", type=float, default=1, help="picture pixels per CSS pixel")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--steps", metavar="A-B", help="zoom to these steps")
    parser.add_argument("--map", action="store_true", help="the memory map and its legend only")
    parser.add_argument("--graph", action="store_true", help="the graph of groups and its legend only")
    parser.add_argument("--group", type=int, metavar="N", help="with the N-th group opened")
    parser.add_argument("--nest", type=int, metavar="N", help="the loops of the N-th group only")
    parser.add_argument(
        "--figure",
        choices=["drawing", "overview", "regions", "required", "moved"],
        help="this figure of the modules and its legend only",
    )
    parser.add_argument("--module", metavar="NAME", help="with the regions of this module")
    parser.add_argument(
        "--readme", action="store_true", help="the README's: map, graph or modules, its size and steps"
    )
    given = parser.parse_args()
    plan = read_plan(given.plan)
    if given.readme:
        given.width, given.height, given.scale = 1060, 860, 1.5
        if plan.groups:
            given.graph, given.width = True, 1160
        elif any(section.merge for section in plan.sections):
            given.figure, given.width, given.scale = "drawing", 1400, 1
        else:
            given.map, given.steps = True, "1-72"

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(html(plan), "utf-8")
        with Chromium(given.width, given.height, dark=given.dark, scale=given.scale) as browser:
            browser.open(page, f"#steps={given.steps}" if given.steps else "")
            clip = None
            if given.group is not None:
                browser.evaluate(f"document.querySelectorAll('[data-unit]')[{given.group}].click()")
                browser.settle()
            if given.map or given.graph:
                last = "group" if given.group is not None else "graph-legend"
                frame, legend = (
                    browser.evaluate(
                        f"(({{x, y, width, height}}) => [x, y, width, height])("
                        f"document.getElementById('{name}').getBoundingClientRect())"
                    )
                    for name in (("graph-frame", last) if given.graph else ("frame", "legend"))
                )
                bottom = legend[1] + legend[3]
                clip = (frame[0] - 8, frame[1] - 6, frame[2] + 16, bottom - frame[1] + 14)
            if given.nest is not None:
                browser.evaluate(f"document.querySelectorAll('[data-unit]')[{given.nest}].click()")
                browser.settle()
                x, y, width, height = browser.evaluate(
                    "(({x, y, width, bottom}, end) => [x + scrollX, y + scrollY, width, end.bottom - y])("
                    "document.querySelector('#group .nest').getBoundingClientRect(),"
                    " document.querySelector('#group .n-key').getBoundingClientRect())"
                )
                clip = (x - 8, y - 6, width + 16, height + 14)
            if given.module is not None:
                names = [section.name for section in plan.sections]
                button = f"#choose [data-module='{names.index(given.module)}']"
                browser.evaluate(f'document.querySelector("{button}").click()')
                browser.settle()
            if given.figure is not None:
                x, y, width, height = browser.evaluate(
                    f"(({{x, y, width, height}}) => [x + scrollX, y + scrollY, width, height])("
                    f"document.getElementById('module-{given.figure}').getBoundingClientRect())"
                )
                clip = (x - 8, y - 6, width + 16, height + 14)
            browser.screenshot(given.picture, clip=clip)


if __name__ == "__main__":
    main()
