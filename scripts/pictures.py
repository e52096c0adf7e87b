"""Make the pictures of README and documentation again: `scripts/pictures.py` (`make pictures`).

One line for each picture in docs/images: the command that makes it. Most are pictures of reports in a
real browser (needs Chromium); plots of measured data are made with their pages, by `make bench`, and are
left alone here."""

from __future__ import annotations

import argparse
import fnmatch
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PLANS = {
    "nasnet": "plan zoo:nasnetalarge --budget MR",
    "squeezenet": "fuse zoo:squeezenet1_0 --chip optimus",
    "psram": "plan zoo:squeezenet1_0 --chip esp32-s3",
    "vit": "plan zoo:vit_b_16 --fuse --budget 512KiB",
    "inception": "branches zoo:inception_v3 --chip exynos-npu",
}
"""What the pictures are of: onchip's command, by the name of the plan below."""

PICTURES = {
    "overview.svg": "overview",
    "overview-dark.svg": "overview",
    "memory-map.png": "nasnet --readme",
    "memory-map-dark.png": "nasnet --readme --dark",
    "fusion.png": "squeezenet --readme",
    "fusion-dark.png": "squeezenet --readme --dark",
    "memories.png": "psram --map --width 1300 --height 760",
    "nest.png": "vit --nest 2 --width 1200",
    "modules.png": "inception --readme",
    "modules-dark.png": "inception --readme --dark",
    "module-overview.png": "inception --figure overview",
    "module-regions.png": "inception --figure regions --module Mixed_5d",
    "module-required.png": "inception --figure required",
    "cosma-human.svg": "make bench",
    **{f"vmcu-fig{n}.svg": "make bench" for n in range(7, 13)},
    "cosma-nas.svg": "make bench",
    "optimus-accuracy.svg": "make bench",
    "optimus-arrays.svg": "make bench",
    "optimus-batch.svg": "make bench",
    "optimus-breakdown.svg": "make bench",
    "hax-conn-fig1.svg": "make bench",
    "hax-conn-fig3.svg": "make bench",
    "hax-conn-fig4.svg": "make bench",
    "hax-conn-fig5.svg": "make bench",
    "hax-conn-fig6.svg": "make bench",
    "hax-conn-fig7.svg": "make bench",
    "hax-conn-table6.svg": "make bench",
    "ilp-growth.svg": "make bench",
    "optimus-buffer.svg": "make bench",
    "optimus-dataflow.svg": "make bench",
    "optimus-energy.svg": "make bench",
    "optimus-footprint.svg": "make bench",
    "optimus-latency.svg": "make bench",
    "optimus-maps.svg": "make bench",
    "optimus-parts.svg": "make bench",
    "optimus-words.svg": "make bench",
    "simple-accesses.svg": "make bench",
    "simple-layers.svg": "make bench",
    "simple-required.svg": "make bench",
}
"""Every picture: the plan and the options of scripts/screenshot.py, or what else makes it."""


def run(*command: str) -> None:
    subprocess.run([sys.executable, *command], check=True, cwd=ROOT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="*", metavar="PATTERN")
    wanted = fnmatch.filter(PICTURES, parser.parse_args().only)
    if any(PICTURES[name] == "overview" for name in wanted):
        run("scripts/overview.py")
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            plan, *options = shlex.split(PICTURES[name])
            if plan not in PLANS:
                continue
            file = Path(folder, f"{plan}.json")
            if not file.exists():
                run("-m", "onchip.cli", *PLANS[plan].split(), "-o", str(file))
            run("scripts/screenshot.py", str(file), f"docs/images/{name}", *options)
            print(f"docs/images/{name}")


if __name__ == "__main__":
    main()
