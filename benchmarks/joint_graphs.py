"""The design's table of joint planning, reproduced with its cost model, and what ours gives beside it.

    .venv/bin/python benchmarks/joint_graphs.py [--graphs FOLDER] [--page FILE] [NAME ...]

Networks are the operator graphs in a folder, 8 bits, batch 1, chip `optimus` (T_c 16), budgets of 64 KB to
1 MB (KB = 1024 bytes). `none`, `fusion`, `placement`, `joint`: operators alone streamed, groups with
everything streamed, operators alone with tensors kept, both; in MB of 10^6 bytes under the design's reading
(whatever no sum forbids is streamed by channel, no halo, all weights resident or none, refilled weights take
no room).
`page`: what the design page states, where the file is there; exit code 1 where a joint figure is another.
`ours` is what a machine can run: halo, weight tiles and an order of passes are charged, weights resident one
by one, blocks for operators alone, outputs over dying inputs.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import fusion_graphs

from onchip.machines.chip import load_chip
from onchip.network import Network
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.search import Fuser
from onchip.planners.joint.search import JointSearch, compulsory_bytes
from onchip.planners.placement.overwriting import overwritable

NAMES = ("vgg16", "mobilenet_v1", "squeezenet1_0", "resnet18", "resnet50", "googlenet")
BUDGETS = {"64 KB": 64 << 10, "128 KB": 128 << 10, "256 KB": 256 << 10, "512 KB": 512 << 10, "1 MB": 1 << 20}
DESIGN = FusionOptions("per-image", "sums", "paper", "all", "fallback", weight_tile=False)


def graph(path: Path) -> Network:
    fusion_graphs.WORD = 1
    return fusion_graphs.fusion_graph(path, 1)


def page_figures(path: Path) -> dict[str, list[str]]:
    """The page's table: by network, one cell a budget."""
    figures = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        cells = [cell.strip().replace("*", "") for cell in line.strip().strip("|").split("|")]
        if cells[0].split(" ")[0] in NAMES and len(cells) == 1 + len(BUDGETS):
            figures[cells[0].split(" ")[0]] = cells[1:]
    return figures


def best(problem: FusionProblem, *, largest: int = 0, below: int | None = None, over: bool = False) -> int:
    search = JointSearch(problem, overwritable(problem.network) if over else (), largest=largest)
    found = search.best(below)
    if not found.complete:
        raise AssertionError("the search was not complete")
    value = below if found.dram_bytes is None else found.dram_bytes
    assert value is not None
    return value


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--graphs", type=Path, default=Path("../shared/bench/fusion"))
    parser.add_argument("--page", type=Path, default=Path("../shared/design/25-joint.md"))
    args = parser.parse_args()
    stated = page_figures(args.page)
    different = 0
    head = "network budget none fusion placement joint page ours:_fusion ours:_joint least s"
    print(f"| {head.replace(' ', ' | ').replace('_', ' ')} |")
    print("|---|---|--:|--:|--:|--:|---|--:|--:|--:|--:|")
    for name in args.names:
        network = graph(args.graphs / f"{name}.json")
        for column, (label, budget) in enumerate(BUDGETS.items()):
            began = time.process_time()
            design = FusionProblem.of(network, load_chip("optimus"), DESIGN, budget)
            none = Fuser(design).best(largest=1).dram_bytes
            fused = Fuser(design).best().dram_bytes
            placed = best(design, largest=1, below=none)
            joint = best(design, below=min(fused, placed))
            ours = FusionProblem.of(network, load_chip("optimus"), FusionOptions(), budget)
            ours_fused = Fuser(ours).best().dram_bytes
            ours_joint = best(ours, below=ours_fused, over=True)
            least = compulsory_bytes(design) + network.weight_bytes
            page = stated[name][column] if name in stated else "-"
            if page != "-" and page.split("/")[-1] != f"{joint / 1e6:.2f}":
                different += 1
                page += " (!)"
            figures = [f"{n / 1e6:.2f}" for n in (none, fused, placed, joint)]
            figures += [page, f"{ours_fused / 1e6:.2f}", f"{ours_joint / 1e6:.2f}", f"{least / 1e6:.2f}"]
            print(
                f"| {name} | {label} | {' | '.join(figures)} | {time.process_time() - began:.1f} |",
                flush=True,
            )
    if different:
        print(f"{different} joint figures differ from the page's", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
