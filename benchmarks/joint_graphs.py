"""Fusion, placement and both as one plan on the graphs of the Optimus paper: a table of docs/joint.md.

    python benchmarks/joint_graphs.py [--into docs/joint.md] [NAME ...]

Networks are the operator graphs of `fusion_graphs.py`, 8 bits, batch 1, chip `optimus` (T_c 16), budgets of
64 KB to 1 MB (KB = 1024 bytes). `none`, `fusion`, `placement`, `joint`: operators alone streamed, groups with
everything streamed, operators alone with tensors kept, both; in MB of 10^6 bytes by a reading that no machine
can run (whatever no sum forbids is streamed by channel, no halo, all weights resident or none, refilled
weights take no room). `ours` is what a machine can run: halo, weight tiles and an order of passes are
charged, weights resident one by one, blocks for operators alone, outputs over dying inputs. Some fifteen
seconds.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from fusion_graphs import drawn, fusion_graph
from page_marks import write

from onchip.machines.chip import load_chip
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.search import Fuser
from onchip.planners.joint.search import JointSearch, compulsory_bytes
from onchip.planners.placement.overwriting import overwritable

NAMES = ("vgg16", "mobilenet_v1", "squeezenet1_0", "resnet18", "resnet50", "googlenet")
BUDGETS = {"64 KB": 64 << 10, "128 KB": 128 << 10, "256 KB": 256 << 10, "512 KB": 512 << 10, "1 MB": 1 << 20}
DESIGN = FusionOptions("per-image", "sums", "paper", "all", "fallback", weight_tile=False)


def table(names: Sequence[str]) -> Iterator[str]:
    yield "| network | budget | none | fusion | placement | joint | ours: fusion | ours: joint | least |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for name in names:
        for label, budget in BUDGETS.items():
            yield f"| {name} | {label} | {' | '.join(f'{n / 1e6:.2f}' for n in figures(name, budget))} |"


def figures(name: str, budget: int) -> tuple[int, ...]:
    """Bytes of a row of the table, from left to right."""
    network = fusion_graph(drawn(name), 1, word=1)
    design = FusionProblem.of(network, load_chip("optimus"), DESIGN, budget)
    none = Fuser(design).best(largest=1).dram_bytes
    fused = Fuser(design).best().dram_bytes
    placed = best(design, largest=1, below=none)
    joint = best(design, below=min(fused, placed))
    ours = FusionProblem.of(network, load_chip("optimus"), FusionOptions(), budget)
    ours_fused = Fuser(ours).best().dram_bytes
    ours_joint = best(ours, below=ours_fused, over=True)
    least = compulsory_bytes(design) + network.weight_bytes
    return none, fused, placed, joint, ours_fused, ours_joint, least


def best(problem: FusionProblem, *, below: int, largest: int = 0, over: bool = False) -> int:
    """The least bytes, proved; `below` where nothing moves less."""
    found = JointSearch(problem, overwritable(problem.network) if over else (), largest=largest).best(below)
    if not found.complete:
        raise AssertionError("the search was not complete")
    return below if found.dram_bytes is None else found.dram_bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--into", type=Path, metavar="PAGE")
    args = parser.parse_args()
    write({"graphs": partial(table, args.names)}, args.into)


if __name__ == "__main__":
    main()
