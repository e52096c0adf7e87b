"""Fuse networks, execute the plans in tiles, and hold the words counted against the words modelled.

    python benchmarks/fusion_executed.py [--networks NAME ...] [--batches N ...] [--chip CHIP]

Everything through the command line, each step in a process of its own: `onchip fuse` models, `onchip run`
copies and counts. A group's accuracy is that of Optimus (eq. 5): 1 - |modelled - counted| / counted. Prints
the Markdown table in docs/execution.md, and how many groups move other words as nests, by the reasons; exits
1 when a group's words differ without a reason.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from onchip.check.as_nests import OF_BYTES

NETWORKS = ("vgg16", "squeezenet1_0", "googlenet", "resnet50", "mobilenet_v1", "mobilenet_v2")


def measured(*args: str) -> tuple[dict[str, Any], float]:
    """What `onchip ARGS --json` printed, and its CPU seconds."""
    command = [sys.executable, "-m", "onchip.cli", *args, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        printed = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(args)} exited {child.returncode}")
    return json.loads(printed), usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--networks", nargs="+", default=NETWORKS, metavar="NAME")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 2], metavar="N")
    parser.add_argument("--chip", default="optimus")
    args = parser.parse_args()
    print(f"<!-- {platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()} -->")
    print(
        "| network | batch | groups | tiles | words modelled | words counted | accuracy, least | mean"
        " | made again | largest difference | CPU s |"
    )
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    accuracies: list[float] = []
    reasons = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for name in args.networks:
            for batch in args.batches:
                accuracies += one(name, batch, args.chip, Path(folder) / "plan.json", reasons)
    mean = sum(accuracies) / len(accuracies)
    least, most = min(accuracies), max(accuracies)
    print(f"\n{len(accuracies)} groups: accuracy {least:.2%} to {most:.2%}, mean {mean:.2%}")
    for names, count in reasons.most_common():
        print(f"{count} groups move other words: {names or 'no reason'}")
    sys.exit(bool(reasons[""]))


def one(name: str, batch: int, chip: str, plan: Path, reasons: Counter[str]) -> list[float]:
    """The row of a network, and the accuracy of each of its groups; `reasons` counts why words differ."""
    fused, _ = measured("fuse", f"zoo:{name}", "--chip", chip, "--batch", str(batch), "-o", str(plan))
    report, seconds = measured("run", str(plan))
    width = {"int8": 1, "int16": 2}[fused["element"]]
    modelled = {group["name"]: group["dram_words"] for group in fused["groups"]}
    counted = {group["name"]: group["counted_bytes"] // width for group in report["tiled"]}
    if modelled.keys() != counted.keys():
        raise SystemExit(f"{name}: groups were not executed in tiles")
    reasons.update(
        ", ".join(sorted(OF_BYTES.intersection(group["why"])))
        for group in report["tiled"]
        if modelled[group["name"]] != counted[group["name"]]
    )
    found = [1 - abs(modelled[g] - counted[g]) / counted[g] for g in modelled]
    made = sum(group["elements"] for group in report["tiled"])
    again = sum(group["elements"] * group["recomputed"] for group in report["tiled"]) / made
    print(
        f"| {name} | {batch} | {len(found)} | {sum(g['subgroups'] for g in report['tiled']):,}"
        f" | {sum(modelled.values()):,} | {sum(counted.values()):,} | {min(found):.2%}"
        f" | {sum(found) / len(found):.2%} | {again:.1%} | {report['relative_difference']:.1e}"
        f" | {seconds:.1f} |",
        flush=True,
    )
    return found


if __name__ == "__main__":
    main()
