"""Hold the planner's fronts of bytes, time and scratch against force, on random small groups.

    python benchmarks/time_fronts.py 2000              # 2,000 groups, from seed 0
    python benchmarks/time_fronts.py 500 --first 7000

A group has one to four operators, some with windows, on a chip of one or two channels. By force: every tree
of at most 3 loops for one operator, 2 for two or three, 1 for four; every order, tile, home, ring; one or two
copies of every buffer, in some groups up to three; in some groups every channel for every buffer. The
planner's front has to have the same figures, with every rule that leaves nests out and with some switched
off, and so have the least energy and the least product of energy and time. The checker prices every nest of
the front, and some others. Groups with more than 6,000 plans are left out. Prints how many of each kind
there were; stops at the first seed with a difference.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from oracles.front_trial import front_trial


def main() -> None:
    """Run the trials and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, nargs="?", default=2_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, help="CPU seconds after which it ends with fewer groups")
    asked = parser.parse_args()
    found, seed = Counter[str](), asked.first
    while found["groups"] < asked.count:
        if asked.seconds is not None and time.process_time() > asked.seconds:
            break
        found += front_trial(seed)
        seed += 1
    for kind, number in sorted(found.items()):
        print(f"{number:10,}  {kind}")
    print(f"{found['groups']:10,}  groups of seeds {asked.first:,} to {seed - 1:,}, no difference")


if __name__ == "__main__":
    main()
