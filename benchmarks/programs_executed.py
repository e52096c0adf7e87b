"""Run random plans of nests over maps by every executor, and hold outputs and bytes against onnxruntime's.

    python benchmarks/programs_executed.py 400          # 400 models, from seed 0
    python benchmarks/programs_executed.py 50 --first 7000
    python benchmarks/programs_executed.py 200 --planned 1      # plans, each searched for a second

Small models of convolutions, pools, resizes, concats and sums, in random groups of random nests with rings,
copies and late stores: by `onchip run`, by the C of one thread, and by the program of two threads with a
channel that comes as late, or as early, as the steps let it. With `--planned` they are in plans for the
least time or the fewest bytes, on chips and in rooms that are drawn. Needs gcc and
`pip install 'onchip[run]'`. Prints a line for each difference (its seed is enough to repeat it), then how
many plans there were and what was in them; exit code 1 where one was wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from oracles.program_trial import program_trial


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int, nargs="?", default=400)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--planned", type=float, metavar="SECONDS", help="of the search for each plan")
    asked = parser.parse_args()
    found, wrong = Counter[str](), 0
    for seed in range(asked.first, asked.first + asked.count):
        with tempfile.TemporaryDirectory() as made:
            try:
                found += program_trial(seed, Path(made), asked.planned)
            except Exception as problem:  # whatever is wrong, the next seed goes on
                wrong += 1
                print(f"seed {seed}: {type(problem).__name__}: {str(problem).splitlines()[:1]}", flush=True)
    for kind, number in sorted(found.items()):
        print(f"{number:8,}  {kind}")
    print(f"{wrong:8,}  wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
