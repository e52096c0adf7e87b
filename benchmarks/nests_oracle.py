"""Hold the law of nests against a machine that runs nests element by element, on random groups of operators.

    python benchmarks/nests_oracle.py 50000          # 50,000 nests, from seed 0
    python benchmarks/nests_oracle.py 5000 --first 7000

Prints how many nests of each kind there were. Stops at the first seed at which bytes, the worst moment,
values or legality differ. Takes about a minute for 15,000 nests on one core.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from oracles.nest_trial import trial


def main() -> None:
    """Run the trials and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=50_000)
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    found = Counter[str]()
    for seed in range(asked.first, asked.first + asked.count):
        found += trial(seed)
    for kind, number in sorted(found.items()):
        print(f"{number:8,}  {kind}")
    print(f"{asked.count:8,}  nests, no difference")


if __name__ == "__main__":
    main()
