"""`python -m fuzz [TARGET ...] --seconds N`: search for what breaks a reader, with coverage as the guide.

libFuzzer (by way of atheris: `pip install atheris`) keeps every input that reaches new code of onchip and
goes on from there; the damage done to each is that of `mutate`. Each target has a process of its own with
bounded memory; a failure is written to FOLDER/findings with its traceback, once for each place, and the
search goes on. Exit code 1 when anything was found.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import pkgutil
import re
import resource
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from random import Random

MEMORY = 2 << 30
"""Bytes that a target may take beyond what it begins with."""
MOST_BYTES = 128 << 10
"""Longer inputs than this only take longer: the readers have limits of their own."""
ROOMS = ("check", "corun", "mcu", "packing", "plan", "readers", "sweep")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="default: all that can run here")
    parser.add_argument("--seconds", type=float, default=120, help="for all targets together")
    parser.add_argument("--runs", type=int, default=-1, help="inputs for each target, in place of --seconds")
    parser.add_argument(
        "--folder", type=Path, default=Path("build/fuzz"), help="inputs worth keeping, findings"
    )
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--history", action="store_true", help="print what all runs have done, as Markdown")
    given = parser.parse_args()
    given.folder = given.folder.resolve()
    if given.history:
        history(given.folder)
        return
    if given.child:
        child(given.child, given.seconds, given.runs, given.folder)
        return
    try:
        import atheris  # noqa: F401
    except ImportError:
        sys.exit("atheris is not installed: pip install atheris")
    from fuzz.targets import TARGETS

    if unknown := [name for name in given.targets if name not in TARGETS]:
        sys.exit(f"no such target: {unknown[0]}; there are {', '.join(TARGETS)}")
    chosen = [TARGETS[name] for name in given.targets or TARGETS]
    for target in chosen:
        if target.missing:
            print(f"{target.name:10} left out: {target.needs} is not installed")
    chosen = [target for target in chosen if not target.missing]
    whole = sum(target.share for target in chosen)
    rows = []
    for target in chosen:
        row = campaign(target.name, given.seconds * target.share / whole, given.runs, given.folder)
        rows.append(row)
        with (given.folder / "history.jsonl").open("a") as record:
            record.write(json.dumps(row) + "\n")
    total = sum(row["cpu_seconds"] for row in rows)
    findings = sorted((given.folder / "findings").glob("*/trace.txt"))
    inputs = sum(row["inputs"] for row in rows)
    print(f"{inputs:,} inputs in {total / 60:.1f} minutes of processor time; {len(findings)} findings")
    for found in findings:
        print(f"  {found.parent}: {found.read_text().strip().splitlines()[-1][:150]}")
    sys.exit(1 if findings else 0)


def history(folder: Path) -> None:
    """A table of all that was run in the folder."""
    rows: dict[str, list[float]] = {}
    for line in (folder / "history.jsonl").read_text().splitlines():
        row = json.loads(line)
        sums = rows.setdefault(row["target"], [0, 0, 0, 0])
        sums[0] += row["inputs"]
        sums[1] += row["cpu_seconds"]
        sums[2], sums[3] = max(sums[2], row["edges"]), row["kept"]
    print("| target | inputs | processor seconds | branches reached | inputs kept |")
    print("|---|--:|--:|--:|--:|")
    for name, (inputs, seconds, edges, kept) in rows.items():
        print(f"| {name} | {inputs:,} | {seconds:,.0f} | {edges:,} | {kept:,} |")
    inputs, seconds = (sum(row[i] for row in rows.values()) for i in (0, 1))
    print(f"| all | {inputs:,} | {seconds:,.0f} ({seconds / 60:.1f} minutes) | | |")


def campaign(name: str, seconds: float, runs: int, folder: Path) -> dict[str, float | str]:
    """Fuzz one target in processes of its own until the time is over; a process that died is one finding."""
    end = time.monotonic() + seconds
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    log = folder / f"{name}.log"
    inputs = edges = features = 0
    log.parent.mkdir(parents=True, exist_ok=True)
    while True:
        left = max(1.0, end - time.monotonic())
        command = [sys.executable, "-m", "fuzz", "--child", name, "--folder", str(folder)]
        command += ["--seconds", str(left), "--runs", str(runs)]
        with log.open("wb") as output:
            done = subprocess.run(command, stdout=output, stderr=output)
        said = log.read_text(errors="replace")
        inputs += int(
            (
                re.findall(r"number_of_executed_units: (\d+)", said)
                or re.findall(r"^#(\d+)", said, re.M)
                or [0]
            )[-1]
        )
        edges = max([edges, *map(int, re.findall(r"cov: (\d+)", said))])
        features = max([features, *map(int, re.findall(r"ft: (\d+)", said))])
        if done.returncode != 0:
            keep(folder, name, b"", f"the process ended with {done.returncode}:\n{said[-3000:]}")
        if done.returncode == 0 or runs >= 0 or time.monotonic() > end - 2:
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    kept = len(list((folder / "corpus" / name).iterdir()))
    row = {
        "target": name, "inputs": inputs, "cpu_seconds": round(cpu, 1), "edges": edges, "features": features,
        "kept": kept,
    }  # fmt: skip
    print(f"{name:10} {inputs:9,} inputs  {cpu:7.1f} s  {edges:6,} edges  {kept:6,} kept", flush=True)
    return row


def keep(folder: Path, name: str, content: bytes, trace: str) -> None:
    """Write a finding down, unless one of the same place is there already."""
    places = re.findall(r'File "([^"]*)", line (\d+)', trace)
    ours = [f"{Path(file).name}:{line}" for file, line in places if "/onchip/" in file][-2:]
    last = trace.strip().splitlines()[-1].split(":")[0]
    digest = hashlib.sha256(" ".join([*ours, last]).encode()).hexdigest()[:8]
    place = folder / "findings" / f"{name}-{digest}"
    if not place.exists():
        place.mkdir(parents=True)
        (place / "input").write_bytes(content)
        (place / "trace.txt").write_text(trace)


def child(name: str, seconds: float, runs: int, folder: Path) -> None:
    """Fuzz one target in this process; does not return."""
    import atheris

    found = find_spec("onchip")
    assert found is not None
    assert found.origin is not None
    # Only what Python's own loader loads is instrumented, and an editable install has another.
    sys.path.insert(0, str(Path(found.origin).parents[1]))
    sys.meta_path.sort(key=lambda finder: "editable" in type(finder).__module__)
    with atheris.instrument_imports(include=["onchip"]):
        import onchip

        for room in ROOMS:
            package = importlib.import_module(f"{onchip.__name__}.{room}")
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                if not module.name.endswith("__main__"):
                    with suppress(ModuleNotFoundError):  # an extra that is not installed, as torch
                        importlib.import_module(module.name)
        from fuzz.targets import TARGETS, survives
    from fuzz.guard import TooSlow, limit_memory

    target = TARGETS[name]
    corpus = folder / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for content in target.seeds():
        (corpus / hashlib.sha1(content).hexdigest()).write_bytes(content)
    accepted = [0, 0]

    def one(content: bytes) -> None:
        try:
            accepted[survives(target, content)] += 1
        except (Exception, TooSlow):
            keep(folder, name, content, traceback.format_exc())

    def other(content: bytes, most: int, seed: int) -> bytes:
        made = target.mutate(Random(seed), content)
        return made if len(made) <= most else content

    os.chdir(folder)  # where libFuzzer leaves what killed it
    limit_memory(MEMORY)
    options = [
        f"-max_len={MOST_BYTES}",
        "-print_final_stats=1",
        "-timeout=300",
        "-rss_limit_mb=4096",
        "-len_control=0",
    ]
    options.append(f"-runs={runs}" if runs >= 0 else f"-max_total_time={max(1, int(seconds))}")
    atheris.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=other)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
