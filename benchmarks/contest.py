"""The public contest's problems under a named law: the table of docs/contest.md.

    python benchmarks/contest.py FOLDER [--law ruled] [--only 1,2,3] [--slack 1] [--proof 60]
                                 [--page docs/contest.md]

FOLDER holds `mlsys-2026-1.json` to `mlsys-2026-24.json`, as the contest published them; they are no part of
this project. Each is searched within the contest's own time limit, on one thread (times `--slack`, for a
machine with other work); where that proves nothing, the bound of a search that may take `--proof` seconds
more stands beside what was found. Seconds are processor time.
`prototype` is what the prototype behind the suite's design had found under the law `ruled`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from page_marks import write

from onchip.contest import LAWS, SolveOptions, read_problem, solve

PROTOTYPE = (
    *(367001.6, 26000.0, 65536.0, 13926.4, 544433.6, 183500.8, 124868.0, 75775.3, 44962939, 12215910),
    *(1464918, 3675219, 16284058, 2771789, 1455835, 7975643, 4966400, 1417600, 1993600, 5228800),
    *(2102400, 3120000, 3435200, 2526400),
)
LIMITS = ((4, 2.0), (8, 5.0), (12, 15.0), (16, 30.0), (20, 60.0), (24, 120.0))
"""The contest's limits in seconds, each up to this problem."""


def rows(folder: Path, law: str, only: list[int], slack: float, more: float) -> Iterator[str]:
    ours = law == "ruled"
    yield "| # | operators | latency | bound | gap | proof | s | bound, s |" + (
        " prototype | against it |" if ours else ""
    )
    yield "|--:|--:|--:|--:|--:|---|--:|--:|" + ("--:|--:|" if ours else "")
    optimal, spent, proving = 0, 0.0, 0.0
    for number in only:
        problem = read_problem(folder / f"mlsys-2026-{number}.json")
        limit = next(seconds for last, seconds in LIMITS if number <= last) * slack
        began = time.process_time()
        found = solve(problem, SolveOptions(law=law, time_limit=limit))
        spent += (seconds := time.process_time() - began)
        longer = "-"
        if not found.optimal and more:
            began = time.process_time()
            proved = solve(problem, SolveOptions(law=law, time_limit=limit + more))
            proving += (extra := time.process_time() - began)
            longer = f"{extra:.1f}"
            if proved.bound > found.bound:
                found = replace(found, bound=proved.bound, proof=proved.proof)
        optimal += found.optimal
        gap = "0" if found.optimal else f"{100 * found.gap:.2f} %"
        row = f"| {number} | {len(problem.outputs)} | {found.latency:,.1f} | {found.bound:,.1f} | {gap} |"
        row += f" {found.proof if found.optimal else '-'} | {seconds:.1f} | {longer} |"
        if ours:
            before = PROTOTYPE[number - 1]
            change = 100 * (found.latency / before - 1)
            row += f" {before:,.1f} | {change:+.2f} % |".replace("+0.00", "0").replace("-0.00", "0")
        yield row
    yield ""
    yield f"{optimal} of {len(only)} proved optimal under the law `{law}`."
    yield f"Searches took {spent:.0f} s of one processor, bounds {proving:.0f} s more."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--law", choices=LAWS, default="ruled")
    parser.add_argument("--only", default=",".join(map(str, range(1, 25))))
    parser.add_argument("--slack", type=float, default=1.0)
    parser.add_argument("--proof", type=float, default=60.0)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    only = [int(number) for number in options.only.split(",")]
    absent = [n for n in only if not (options.folder / f"mlsys-2026-{n}.json").is_file()]
    if absent:
        parser.error(f"no mlsys-2026-{absent[0]}.json in {options.folder}")
    write(
        {
            f"contest-{options.law}": lambda: rows(
                options.folder, options.law, only, options.slack, options.proof
            )
        },
        options.page,
    )


if __name__ == "__main__":
    main()
