"""Take a picture of a plan's report in a real browser: `scripts/screenshot.py PLAN OUT.png`.

Needs Chromium (Debian: `apt-get install chromium`). The pictures in the README are made by

    onchip plan zoo:nasnetalarge --budget MR -o plan.json
    python scripts/screenshot.py plan.json docs/images/memory-map.png --readme
    python scripts/screenshot.py plan.json docs/images/memory-map-dark.png --readme --dark
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from chromium import Chromium

from onchip.plan import read_plan
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
    parser.add_argument("--readme", action="store_true", help="the README's: --map, its size and steps")
    given = parser.parse_args()
    if given.readme:
        given.map, given.width, given.height, given.scale, given.steps = True, 1060, 860, 1.5, "1-72"

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(html(read_plan(given.plan)), "utf-8")
        with Chromium(given.width, given.height, dark=given.dark, scale=given.scale) as browser:
            browser.open(page, f"#steps={given.steps}" if given.steps else "")
            clip = None
            if given.map:
                frame, legend = (
                    browser.evaluate(
                        f"(({{x, y, width, height}}) => [x, y, width, height])("
                        f"document.getElementById('{name}').getBoundingClientRect())"
                    )
                    for name in ("frame", "legend")
                )
                bottom = legend[1] + legend[3]
                clip = (frame[0] - 8, frame[1] - 6, frame[2] + 16, bottom - frame[1] + 14)
            browser.screenshot(given.picture, clip=clip)


if __name__ == "__main__":
    main()
