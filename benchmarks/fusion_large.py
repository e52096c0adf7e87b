"""Networks whose groups cannot all be listed: what column generation reaches, and in what time.

    python benchmarks/fusion_large.py [--seconds 60] [--batch 4] [--option KEY=VALUE ...] [NETWORK ...]

Chip `optimus`: 128 KiB, 16 bits. Columns: operators, groups priced, bound and bytes found (MB), gap, groups,
seconds (wall clock and of the processor).
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from onchip.base.errors import NegativeAnswer
from onchip.machines.chip import load_chip
from onchip.planners.fusion import FusionOptions, FusionProblem
from onchip.planners.fusion.milp import solve_large
from onchip.planners.fusion.search import Fuser
from onchip.planners.limits import Limits
from onchip.readers import load
from onchip.readers.source import ReadOptions

NETWORKS = ("nasnetalarge", "nasnetamobile", "pnasnet5large", "amoebanet_d", "darts", "densenet121")
LISTED = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--option", action="append", default=[])
    given = parser.parse_args()
    options: dict[str, Any] = dict(text.split("=", 1) for text in given.option)
    if "weight_tile" in options:
        options["weight_tile"] = options["weight_tile"] == "True"
    chip = load_chip("optimus")
    print("| network | operators | priced | bound MB | found MB | gap | groups | s | cpu s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in given.networks:
        network = load(f"zoo:{name}", ReadOptions(dtype="int16", batch=given.batch)).network
        problem = FusionProblem.of(network, chip, FusionOptions(**options), 131_072)
        began, cpu = time.perf_counter(), time.process_time()
        try:
            fuser = Fuser(problem)
            found = fuser.best(limits=Limits(given.seconds / 4), most_groups=LISTED, most_states=LISTED)
            priced = found.figures.candidates
            if not found.complete:
                left = given.seconds - (time.perf_counter() - began)
                found = solve_large(problem, found, Limits(time_limit=left), fuser=fuser)
                priced = found.figures.candidates
        except NegativeAnswer as no:
            print(f"| {name} | {len(network.operators)} | {no} |", flush=True)
            continue
        gap = 100 * (1 - found.lower_bound_bytes / found.dram_bytes)
        print(
            f"| {name} | {len(network.operators)} | {priced:,} | {found.lower_bound_bytes / 1e6:.3f}"
            f" | {found.dram_bytes / 1e6:.3f} | {gap:.2f} % | {len(found.groups)}"
            f" | {time.perf_counter() - began:.1f} | {time.process_time() - cpu:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
