"""The packer without Python as a process and behind a compiler's signature: the tables of docs/packing.md.

    cmake -S native -B build/native && cmake --build build/native
    .venv/bin/python benchmarks/packing_native.py --program build/native/minimalloc [--peer MINIMALLOC]
        [--files CSV ...]

The first table has the least CPU time of five runs of the whole process (of one run where it takes more than
a second), in milliseconds, on generated tables of buffers and on the given ones: onchip's drop-in, `onchip
pack`, and MiniMalloc itself if `--peer` names its program. A process ends after a minute by the clock.
Generated tables are cut from a full rectangle, so that their capacity is the least. The second table has the
extents of 500 random tables of a size over the least: of best fit in the order of beginnings, and of onchip.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from onchip.planners.packing import Buffer, minimise
from onchip.planners.packing.csv_file import read_buffers, write_buffers

TRIES, LONG = 5, 1.0


def cut(rng: random.Random, count: int, steps: int, capacity: int) -> list[Buffer]:
    """Return buffers that fill a rectangle of steps and bytes."""
    parts = [(0, steps, 0, capacity)]
    while len(parts) < count:
        at = max(range(len(parts)), key=lambda i: rng.random() * (parts[i][1] - parts[i][0]) * parts[i][3])
        begin, end, low, size = parts.pop(at)
        if end - begin > 1 and (rng.random() < 0.5 or size < 2):
            middle = rng.randrange(begin + 1, end)
            parts += [(begin, middle, low, size), (middle, end, low, size)]
        elif size > 1:
            first = rng.randrange(1, size)
            parts += [(begin, end, low, first), (begin, end, low + first, size - first)]
        else:
            parts.append((begin, end, low, size))
    return [Buffer(begin, end, size) for begin, end, _, size in parts]


def best_fit(buffers: Sequence[Buffer]) -> int:
    """Return the extent if each buffer, in the order of beginnings, takes the smallest gap that holds it."""
    placed: list[tuple[int, int, int]] = []  # offset, end, end of life
    for b in sorted(buffers, key=lambda b: b.lower):
        live = sorted((low, high) for low, high, until in placed if until > b.lower)
        top, choice = 0, None
        for low, high in live:
            at = -(-top // b.alignment) * b.alignment
            if low - at >= b.size and (choice is None or low - at < choice[1]):
                choice = at, low - at
            top = max(top, high)
        at = choice[0] if choice is not None else -(-top // b.alignment) * b.alignment
        placed.append((at, at + b.size, b.upper))
    return max(high for _, high, _ in placed)


def milliseconds(command: list[str]) -> str:
    """Return the least CPU time of a process, or why there is none."""
    times: list[float] = []
    while len(times) < TRIES and (not times or times[0] < LONG):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=60)
        except subprocess.TimeoutExpired:
            return "none in a minute"
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        if done.returncode:
            return "no packing"
    return f"{1000 * min(times):,.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--peer")
    parser.add_argument("--files", nargs="*", type=Path, default=[])
    args = parser.parse_args()
    rng = random.Random(0)
    print(
        "| buffers | capacity | drop-in, CPU ms | onchip pack, CPU ms"
        + (" | MiniMalloc, CPU ms |" if args.peer else " |")
    )
    print("|--:|--:|--:|--:|" + ("--:|" if args.peer else ""))
    with tempfile.TemporaryDirectory() as folder:
        cases = []
        for count in (10, 100, 300, 1000):
            made = Path(folder) / f"{count}.csv"
            write_buffers(made, cut(rng, count, 8 * count, 1 << 20))
            cases.append((made, 1 << 20))
        cases += [(file, int(file.stem.split(".")[-1])) for file in args.files]
        for source, capacity in cases:
            flags = [f"--capacity={capacity}", f"--input={source}", f"--output={folder}/out.csv"]
            ours = milliseconds([args.program, *flags])
            command = str(Path(sys.executable).with_name("onchip"))
            onchip = [command, "pack", str(source), "--capacity", str(capacity)]
            line = f"| {len(read_buffers(source).buffers)} | {capacity:,} | {ours} | {milliseconds(onchip)} |"
            print(line + (f" {milliseconds([args.peer, *flags])} |" if args.peer else ""))
    print("\n| buffers | best fit over the least: mean | most | onchip proved the least |\n|--:|--:|--:|--:|")
    for count in (5, 10, 20, 40):
        ratios, proved = [], 0
        for _ in range(500):
            rows = [
                Buffer(t := rng.randrange(count), t + rng.randrange(1, 1 + count // 2), rng.randrange(1, 999))
                for _ in range(count)
            ]
            least = minimise(rows, time_limit=2.0)
            proved += least.optimal
            ratios.append(best_fit(rows) / least.bytes)
        print(f"| {count} | {statistics.mean(ratios):.3f} | {max(ratios):.3f} | {proved} of 500 |")


if __name__ == "__main__":
    main()
