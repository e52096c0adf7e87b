"""Hold the law of time against a simulation that shares no code with it, on random plans of nests.

    python benchmarks/time_oracle.py 50000          # 50,000 plans, from seed 0
    python benchmarks/time_oracle.py 5000 --first 7000

A plan is up to six groups one after the other, many beside the one before, on channels up to 10,000 times
apart, with up to four copies, rings and spilled sums. Time, bytes, steps, work and transfers are compared
between the law with periods, the law that walks every turn, and the simulation, which also checks slots and
that no more bytes are in use than the scratch has. Prints how many plans of each kind there were; stops at
the first seed with a difference.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from oracles.nest_clock_trial import time_trial


def main() -> None:
    """Run the trials and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, nargs="?", default=50_000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    found = Counter[str]()
    for seed in range(asked.first, asked.first + asked.count):
        found += time_trial(seed)
    for kind, number in sorted(found.items()):
        print(f"{number:8,}  {kind}")
    print(f"{asked.count:8,}  plans, no difference")


if __name__ == "__main__":
    main()
