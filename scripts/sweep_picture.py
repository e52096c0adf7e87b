"""Take a picture of one network's curves on a sweep's page: `scripts/sweep_picture.py REPORT.html OUT.png`.

Needs Chromium (Debian: `apt-get install chromium`). Those in docs/sweep.md are made by

    onchip sweep examples/sweep.toml -o out/sweep
    python scripts/sweep_picture.py out/sweep/report.html docs/images/sweep.png
    python scripts/sweep_picture.py out/sweep/report.html docs/images/sweep-dark.png --dark
"""

from __future__ import annotations

import argparse
from pathlib import Path

from chromium import Chromium


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--section", type=int, default=1, help="of the page; the first is of all networks")
    parser.add_argument("--width", type=int, default=1160, help="of the window, in CSS pixels")
    parser.add_argument("--height", type=int, default=900)
    parser.add_argument("--whole", action="store_true", help="the window as it opens")
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    with Chromium(given.width, given.height, dark=given.dark, scale=1.5) as browser:
        browser.open(given.page.resolve(), "")
        clip = None
        if not given.whole:
            key, picture = (
                browser.evaluate(
                    f"(({{x, y, width, height}}) => [x + scrollX, y + scrollY, width, height])("
                    f"document.querySelector({selector!r}).getBoundingClientRect())"
                )
                for selector in ("#sweep .key", f"#sweep section:nth-of-type({given.section}) .wide")
            )
            clip = (picture[0] - 8, picture[1] - 6, picture[2] + 16, picture[3] + 4)
            if given.section == 1:  # with the key, which stands above the first
                clip = (clip[0], key[1] - 8, clip[2], picture[1] + picture[3] - key[1] + 6)
        browser.screenshot(given.picture, clip=clip)


if __name__ == "__main__":
    main()
