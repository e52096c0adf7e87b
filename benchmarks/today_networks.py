"""Networks of today through three exporters and onnxruntime's tools: what is read, planned, fused, executed.

    python benchmarks/today_networks.py FOLDER [--forms script dynamo ...] [--only TEXT] [--seconds 8]

Needs torch, onnx, onnxscript and onnxruntime. Files are written into FOLDER and kept; so are the answers, a
line of JSON each in FOLDER/answers.jsonl, so that a run goes on where the last one ended. Prints the tables
of docs/today.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent / "today"
BUDGETS = ("512KiB", "2MiB")
sys.path.insert(0, str(HERE))


def answer(path: Path, seconds: float) -> dict[str, Any]:
    """Read, plan, check and execute a file in a process of its own."""
    command = [sys.executable, str(HERE / "case.py"), str(path), str(seconds), *BUDGETS]
    with tempfile.TemporaryFile("w+") as out:
        try:
            done = subprocess.run(
                command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=180 + 8 * seconds
            )
        except subprocess.TimeoutExpired:
            return {"file": path.name, "refused": "CRASH takes too long"}
        out.seek(0)
        lines = out.read().splitlines()
    if not lines:
        return {"file": path.name, "refused": f"CRASH exit code {done.returncode}: {done.stderr[-300:]}"}
    return dict(json.loads(lines[-1]))


def main() -> None:
    from export import FORMS, NETWORKS, export, path_of

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--forms", nargs="*", default=FORMS)
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--again", action="store_true", help="ask again where an answer is kept")
    asked = parser.parse_args()
    kept = asked.folder / "answers.jsonl"
    known = {}
    if kept.exists():
        known = {case["file"]: case for case in map(json.loads, kept.read_text().splitlines())}
    for form in asked.forms:
        for name in NETWORKS:
            path = path_of(asked.folder, name, form)
            if asked.only.lower() not in name.lower() or (path.name in known and not asked.again):
                continue
            try:
                export(name, form, asked.folder)
                case = answer(path, asked.seconds)
            except Exception as problem:
                line = str(problem).strip().splitlines() or [""]
                case = {"file": path.name, "unexported": f"{type(problem).__name__}: {line[0]}"}
            known[path.name] = case
            with kept.open("a") as lines:
                print(json.dumps(case), file=lines)
            print(form, name, shown(case), flush=True)


def shown(case: dict[str, Any]) -> str:
    """Return a case in a line for who watches."""
    if "unexported" in case or "refused" in case:
        return case.get("unexported") or case["refused"]
    words = [f"{case['tiled']}/{case['operators']}"]
    for budget in BUDGETS:
        found = case[budget]
        done = (word for word in ("checked", "executed", "long") if word in found)
        how = found.get("refused") or " ".join(done)
        words.append(f"{budget}: {found.get('several')} groups of {found.get('fused')}, {how}")
    if case["untiled"]:
        words.append("untiled " + ", ".join(case["untiled"])[:300])
    return " | ".join(words)


if __name__ == "__main__":
    main()
