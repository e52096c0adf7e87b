"""Legal plans, schedules and profiles changed at random: what the checker accepts, a referee confirms.

    python benchmarks/mutants.py [KIND ...] --count 1000 --seed 0

The referee (`tests/mutants`) executes plans byte by byte, and holds schedules to the laws of docs/corun.md.
It shares nothing with what it judges. For each kind the table has the mutants made, those that could be read
as a file at all, those that were accepted (with their own figures, or with those that the checker gives
them), those of these that the referee confirmed, and the differences: there must be none. Exits 1 if there is
one, with the seed that shows it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from mutants.campaign import ALL, tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", choices=[*ALL, []], metavar="KIND", help=", ".join(ALL))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print("| kind | mutants | read | accepted | confirmed | differences | CPU s |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    worst: list[tuple[str, int, str]] = []
    for kind in asked.kinds or ALL:
        began = time.process_time()
        found = tally(kind, asked.count, asked.seed)
        spent = time.process_time() - began
        print(
            f"| {kind} | {found.mutants:,} | {found.read:,} | {found.accepted:,} | {found.confirmed:,}"
            f" | {len(found.differences)} | {spent:.0f} |",
            flush=True,
        )
        worst += [(kind, seed, why) for seed, why, _ in found.differences]
    for kind, seed, why in worst[:20]:
        print(f"{kind} {seed}: {why}", file=sys.stderr)
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
