"""`python -m hostile`: run the cases whose names or tables are given, or all, and print a table.

`python -m hostile FOLDER` with a path that has a slash writes the files there.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from hostile.case import FILES, lay
from hostile.judge import shortcomings
from hostile.run import run
from hostile.tried import CASES


def main() -> None:
    wanted = sys.argv[1:]
    if len(wanted) == 1 and "/" in wanted[0] and not any(case.name == wanted[0] for case in CASES):
        lay(Path(wanted[0]), list(FILES))
        return
    short = 0
    print("| case | table | exit | CPU s | s | MB | falls short |\n|---|---|--:|--:|--:|--:|---|")
    for case in CASES:
        if wanted and not {case.name, case.table} & set(wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            ended = run(case, Path(folder))
            found = shortcomings(case, ended, Path(folder))
        short += bool(found)
        code = "none" if ended.code is None else ended.code
        figures = f"{code} | {ended.cpu:.1f} | {ended.elapsed:.1f} | {ended.resident / 1e6:,.0f}"
        print(f"| `{case.name}` | {case.table} | {figures} | {'; '.join(found)} |", flush=True)
    print(f"\n{short} fall short")


main()
