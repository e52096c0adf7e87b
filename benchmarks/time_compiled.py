"""Hold the compiled time of nests against the checker's, on random nests of random groups.

    python benchmarks/time_compiled.py 20000        # 20,000 groups, from seed 0
    python benchmarks/time_compiled.py 5000 --first 7000

A group has up to three operators, some with windows, on chips of one to three channels; a nest has any loops
and homes, rings, up to four copies, spilled and wide sums, outputs in the place of operands. What the checker
refuses the compiled code has to refuse; of all others time, bytes, scratch, work and the time of channels
have to be equal, with periods skipped and walked. Prints how many of each kind there were; stops at the first
seed with a difference.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from oracles.compiled_trial import compiled_trial


def main() -> None:
    """Run the trials and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, nargs="?", default=20_000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    found = Counter[str]()
    for seed in range(asked.first, asked.first + asked.count):
        found += compiled_trial(seed)
    for kind, number in sorted(found.items()):
        print(f"{number:8,}  {kind}")
    print(f"{asked.count:8,}  groups, no difference")


if __name__ == "__main__":
    main()
