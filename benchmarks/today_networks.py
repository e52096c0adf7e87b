"""Networks of today through three exporters and onnxruntime's tools: what is read, planned, fused, executed.

    python benchmarks/today_networks.py FOLDER [--forms script dynamo ...] [--seconds 8] [--execution 20]
    python benchmarks/today_networks.py FOLDER --table

Needs torch, onnx, onnxscript and onnxruntime. Files are written into FOLDER and kept; so are the answers, a
line of JSON each in FOLDER/answers.jsonl, so that a run goes on where the last one ended. `--table` prints
the tables of docs/today.md from them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent / "today"
BUDGETS, SHARES = ("512KiB", "2MiB"), ("1/8", "1/2")
"""Of small networks shares of all that the largest operator reads and makes."""

sys.path.insert(0, str(HERE))

Case = dict[str, Any]


def answers(paths: list[Path], seconds: float, execution: float, budgets: str) -> Iterator[Case]:
    """Yield what becomes of each file, asked in a child process; another one goes on where one ends."""
    rest = [str(path) for path in paths]
    while rest:
        command = [sys.executable, str(HERE / "case.py"), str(seconds), str(execution), budgets, *rest]
        # A process that torch has filled with threads cannot be forked to execute a plan.
        alone = {**os.environ, "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=alone
        ) as child:
            assert child.stdout is not None
            for line in child.stdout:
                rest.pop(0)
                yield dict(json.loads(line))
        if rest:
            yield {"file": Path(rest.pop(0)).name, "refused": f"CRASH exit code {child.returncode}"}


def asked_for() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--forms", nargs="*", default=None)
    parser.add_argument("--seconds", type=float, default=8, help="for a plan")
    parser.add_argument(
        "--execution", type=float, default=20, help="CPU seconds that running a plan may take; 0: none runs"
    )
    parser.add_argument("--budgets", default=",".join(BUDGETS))
    parser.add_argument("--shares", default=",".join(SHARES), help="the budgets of small networks")
    parser.add_argument("--table", action="store_true", help="print the tables of what was answered")
    return parser.parse_args()


def main() -> None:
    asked = asked_for()
    kept = asked.folder / "answers.jsonl"
    lines = kept.read_text().splitlines() if kept.exists() else []
    known: dict[str, Case] = {case["file"]: case for case in map(json.loads, lines)}
    if asked.table:
        from tables import tables

        print(tables(known))
        return
    from export import FAMILIES, FORMS, SMALL, export, path_of

    both = [(form, small) for form in asked.forms or FORMS for small in (False, True)]
    for form, small in both:
        paths = []
        for name in (name for family in FAMILIES if (family in SMALL) == small for name in FAMILIES[family]):
            path = path_of(asked.folder, name, form)
            if path.name in known:
                continue
            try:
                export(name, form, asked.folder)
                paths.append(path)
            except Exception as problem:
                line = str(problem).strip().splitlines() or [""]
                keep(kept, {"file": path.name, "unexported": f"{type(problem).__name__}: {line[0]}"})
        budgets = asked.shares if small else asked.budgets
        for case in answers(paths, asked.seconds, asked.execution, budgets):
            keep(kept, case)


def keep(path: Path, case: Case) -> None:
    with path.open("a") as file:
        print(json.dumps(case), file=file)
    print(json.dumps(case)[:300], flush=True)


if __name__ == "__main__":
    main()
