"""The modules found in every built-in network, and what another limit for long skips would change.

    python benchmarks/branches_modules.py [--long-skips 4,5,6,7,8,9,10,12,16,24] [NAME ...]

The first table has the outermost modules, those within others, long skips, merges (concats and sums) that
close no module, and the operators outside of modules. Milliseconds are the best of five runs of detection
alone. The second one has the modules, nested ones included, and the long skips for each limit.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Sequence

from onchip import zoo
from onchip.network import Network
from onchip.planners.branches.detection import LONG_SKIP, detect
from onchip.planners.branches.modules import Detection, Module
from onchip.readers import load


def counted(modules: Sequence[Module]) -> int:
    """How many modules these are with all those in them."""
    inner = [[s for b in m.branches for s in b.steps if isinstance(s, Module)] for m in modules]
    return len(modules) + sum(counted(nested) for nested in inner)


def timed(network: Network) -> tuple[Detection, float]:
    """The detection and its milliseconds."""
    best, found = float("inf"), detect(network)
    for _ in range(5):
        began = time.perf_counter()
        found = detect(network)
        best = min(best, time.perf_counter() - began)
    return found, best * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--long-skips", default="4,5,6,7,8,9,10,12,16,24")
    args = parser.parse_args()
    limits = [int(limit) for limit in args.long_skips.split(",")]
    networks = {name: load(f"zoo:{name}").network for name in args.names or zoo.names()}
    machine = f"{platform.machine()}, {os.cpu_count()} cores shared; Python {platform.python_version()}"
    print(f"<!-- {machine}; long skips over {LONG_SKIP} layers -->")
    print("| network | operators | modules | nested | long skips | other merges | outside | ms |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, network in networks.items():
        found, ms = timed(network)
        inside = sum(m.operators.bit_count() for m in found.modules)
        nested = counted(found.modules) - len(found.modules)
        cells = [len(network.operators), len(found.modules), nested, len(found.long_skips)]
        cells += [len(found.rejected), len(network.operators) - inside]
        print(f"| {name} | {' | '.join(f'{n:,}' for n in cells)} | {ms:.1f} |")
    print("\nModules, nested ones included, and long skips by the layers that a skip may span:\n")
    print(f"| network | {' | '.join(map(str, limits))} |")
    print(f"|---|{'--:|' * len(limits)}")
    for name, network in networks.items():
        cells = []
        for limit in limits:
            found = detect(network, long_skip=limit)
            skips = f" ({len(found.long_skips)})" if found.long_skips else ""
            cells.append(f"{counted(found.modules)}{skips}")
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
