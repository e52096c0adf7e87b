"""Vela's three allocators and onchip on the same live ranges of `.tflite` files: a table of docs/peers.md.

    .venv/bin/python benchmarks/peers/vela_files.py --vela PROGRAM [--into docs/peers.md] MODEL.tflite ...

PROGRAM is Vela's own (`pip install ethos-u-vela`, in an environment of its own). It compiles every model for
an Ethos-U55 with 128 units and each of its tensor allocators, and prints the live ranges of its SRAM (feature
maps and weights on their way) with addresses and sizes. Onchip gets the same live ranges, aligned to 16 bytes
as Vela aligns them. Every answer is validated here, Vela's as well; all three runs must have the same ranges.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from onchip.planners.packing import Buffer, fault, max_load, minimise

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from page_marks import write

ALLOCATORS = ("LinearAlloc", "Greedy", "HillClimb")
ALIGNMENT = 16
ROW = re.compile(r"\s*(\d+) -\s+(\d+):\s+(0x[0-9a-f]+) -\s+(0x[0-9a-f]+):\s+(\d+):\s+\d+: ")


def allocated(vela: Path, model: Path, allocator: str, folder: str) -> dict[Buffer, list[int]]:
    """Return the live ranges of Vela's SRAM and the addresses of each."""
    command = [str(vela), str(model), "--accelerator-config", "ethos-u55-128", "--output-dir", folder]
    command += ["--tensor-allocator", allocator, "--verbose-allocation"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"Vela refuses it: {done.stderr.strip().splitlines()[-1][:200]}")
    printed = done.stdout
    section = re.search(r"Allocation, memory Sram.*?Allocation Peak Tensor Size", printed, re.DOTALL)
    if section is None:
        raise SystemExit(f"{model}: Vela printed no allocation of its SRAM")
    rows = {tuple(int(part, 0) for part in found) for found in ROW.findall(section[0])}
    ranges: dict[Buffer, list[int]] = {}
    for start, end, low, _, size in sorted(rows):
        ranges.setdefault(Buffer(start, end + 1, size, ALIGNMENT), []).append(low)
    return ranges


def extent(ranges: dict[Buffer, list[int]]) -> int:
    """Return one past the highest byte, and refuse addresses that are no packing."""
    pairs = [(b, at) for b, offsets in ranges.items() for at in offsets]
    top = max(at + b.size for b, at in pairs)
    wrong = fault([b for b, _ in pairs], [at for _, at in pairs], top)
    if wrong is not None:
        raise SystemExit(f"Vela's addresses: {wrong}")
    return top


def table(vela: Path, models: list[Path]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| file | live ranges | load | {' | '.join(f'Vela {name}' for name in ALLOCATORS)} | onchip |"
    yield "|---|--:|--:|" + "--:|" * (len(ALLOCATORS) + 1)
    for model in models:
        try:
            with tempfile.TemporaryDirectory() as folder:
                found = [allocated(vela, model, name, folder) for name in ALLOCATORS]
        except ValueError as refused:
            print(f"{model.name}: left out: {refused}", file=sys.stderr)
            continue
        counts = [{b: len(offsets) for b, offsets in ranges.items()} for ranges in found]
        buffers = [b for b, count in counts[-1].items() for _ in range(count)]
        if any(count != counts[-1] for count in counts):
            print(f"{model.name}: the live ranges of the allocators differ", file=sys.stderr)
        ours = minimise(buffers, time_limit=20.0)
        tops = " | ".join(f"{extent(ranges):,}" for ranges in found)
        yield f"| {model.stem} | {len(buffers)} | {max_load(buffers):,} | {tops} | {ours.bytes:,} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--vela", required=True, type=Path)
    parser.add_argument("--into", type=Path)
    args = parser.parse_args()
    write({"vela files": lambda: table(args.vela, args.models)}, args.into)


if __name__ == "__main__":
    main()
