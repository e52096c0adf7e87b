"""Addresses for the same live ranges by onchip and by whatever public planners are installed: docs/peers.md.

    python benchmarks/peers/addresses.py [--networks FOLDER] [--csv FOLDER] [--minimalloc BINARY]
                                         [--only PATTERN] [--seconds N] [--iterations N] [--into PAGE]

Live ranges: the built-in networks and those of a FOLDER of `onchip.network/1` files (`NAME.fused.json`), each
tensor whole-life at the network's own order; and minimalloc's CSV files. The peers are optional, each is left
out with a line: ExecuTorch (`pip install executorch`, needs torch), Vela (`pip install ethos-u-vela`),
MiniMalloc (the path of its binary, built by the user). TFLM's wheel offers its planner only inside its
interpreter: it is onchip's own version that is measured. Extents are relative to the largest load, which no
planner can go below; every answer is validated; seconds are of one process, each planner in turn.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onchip
from onchip import zoo
from onchip.comparison.baselines.whole_life import executorch, extent, lives, tflm
from onchip.network.json import read_network
from onchip.planners.packing import Buffer, fault, max_load, minimise, read_buffers
from onchip.planners.placement import Problem

Planner = Callable[[Sequence[Buffer]], tuple[int, ...] | None]
"""Offsets, or None when the planner gave up in its time."""

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


# -- the planners --------------------------------------------------------------------------------------------


def onchip_planner(seconds: float) -> Planner:
    def plan(buffers: Sequence[Buffer]) -> tuple[int, ...]:
        return tuple(minimise(buffers, time_limit=seconds).offsets)

    return plan


def real_executorch() -> Planner:
    """`greedy` of exir.memory_planning on plain objects that carry what it reads of a TensorSpec."""
    from executorch.exir.memory_planning import greedy

    class Spec(SimpleNamespace):
        __hash__ = object.__hash__
        __eq__ = object.__eq__

        def realign(self, alignment: int) -> int:
            return int(self.allocated_memory)

    def plan(buffers: Sequence[Buffer]) -> tuple[int, ...]:
        specs = [
            Spec(
                lifetime=[b.lower, b.upper - 1],
                allocated_memory=b.size,
                mem_id=None,
                storage_base=None,
                alignment=1,
            )
            for b in buffers
        ]
        made = greedy(1, dict.fromkeys(specs), SimpleNamespace(), None)
        return tuple(made.spec_dict[s].mem_offset for s in specs)

    return plan


def vela_hillclimb(iterations: int) -> Planner:
    from ethosu.vela.hillclimb_allocation import HillClimbAllocator

    def plan(buffers: Sequence[Buffer]) -> tuple[int, ...]:
        return tuple(HillClimbAllocator(vela_ranges(buffers), iterations, max_load(buffers)).allocate())

    return plan


def vela_greedy() -> Planner:
    from ethosu.vela.greedy_allocation import GreedyAllocator

    def plan(buffers: Sequence[Buffer]) -> tuple[int, ...]:
        ranges = vela_ranges(buffers)
        GreedyAllocator(SimpleNamespace(lrs=ranges)).allocate_live_ranges(1)
        return tuple(r.tensors[0].address for r in ranges)

    return plan


def vela_ranges(buffers: Sequence[Buffer]) -> list[Any]:
    """Vela's live ranges, both ends included, aligned to 1 byte.

    It goes through time step by step: steps in which nothing changes are left out.
    """
    from ethosu.vela.live_range import LiveRange

    when = {t: i for i, t in enumerate(sorted({t for b in buffers for t in (b.lower, b.upper)}))}
    ranges = []
    for i, b in enumerate(buffers):
        made = LiveRange(None, 1)
        made.start_time, made.end_time = when[b.lower], when[b.upper] - 1
        made.size, made.name = b.size, str(i)
        made.tensors = [SimpleNamespace(address=0)]
        ranges.append(made)
    return ranges


def minimalloc(binary: Path, seconds: float) -> Planner:
    """The binary, asked for the smallest capacity it finds."""

    def plan(buffers: Sequence[Buffer]) -> tuple[int, ...] | None:
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "in.csv", Path(folder) / "out.csv"
            with given.open("w", newline="") as file:
                rows = csv.writer(file, lineterminator="\n")
                rows.writerow(("id", "lower", "upper", "size"))
                rows.writerows((i, b.lower, b.upper, b.size) for i, b in enumerate(buffers))
            limit = f"--timeout={seconds}s"
            done = subprocess.run(
                [binary, f"--capacity={max_load(buffers)}", f"--input={given}", f"--output={made}", limit],
                check=False,
                capture_output=True,
                text=True,
                timeout=4 * seconds + 10,
            )
            if "DEADLINE_EXCEEDED" in done.stderr or "NOT_FOUND" in done.stderr:
                return None
            if done.returncode or not made.is_file():
                raise SystemExit(f"{binary}: {done.stderr.strip()[:200]}")
            with made.open(newline="") as file:
                found = {int(row["id"]): int(row["offset"]) for row in csv.DictReader(file)}
            return tuple(found[i] for i in range(len(buffers))) if len(found) == len(buffers) else None

    return plan


def planners(args: argparse.Namespace) -> Iterator[tuple[str, Planner]]:
    """Each planner that is here, with its version; a line for each that is not."""
    yield "onchip", onchip_planner(args.seconds)
    yield "TFLM greedy (ours)", tflm
    yield "ExecuTorch greedy (ours)", executorch
    for package, label, make in (
        ("executorch", "ExecuTorch greedy", real_executorch),
        ("ethos-u-vela", "Vela hill climb", partial(vela_hillclimb, args.iterations)),
        ("ethos-u-vela", "Vela greedy", vela_greedy),
    ):
        try:
            planner = make()
        except ImportError as problem:
            print(f"{label}: left out: pip install {package} ({problem})", file=sys.stderr)
            continue
        yield f"{label} {metadata.version(package)}", planner
    if args.minimalloc is None:
        print("MiniMalloc: left out: --minimalloc BINARY", file=sys.stderr)
    else:
        yield "MiniMalloc at the load", minimalloc(args.minimalloc.resolve(), args.seconds)


# -- the instances -------------------------------------------------------------------------------------------


def instances(args: argparse.Namespace) -> Iterator[tuple[str, tuple[Buffer, ...]]]:
    for name in fnmatch.filter(zoo.names(), args.only):
        yield name, whole_lives(onchip.load(f"zoo:{name}").network)
    for path in sorted(args.networks.glob(f"{args.only}.fused.json")) if args.networks else ():
        name = path.name.removesuffix(".fused.json")
        if name not in zoo.names():
            yield name, whole_lives(read_network(path))
    for path in sorted(args.csv.glob(f"{args.only}.csv")) if args.csv else ():
        yield path.stem, read_buffers(path).buffers


def whole_lives(network: onchip.Network) -> tuple[Buffer, ...]:
    return lives(Problem.of(network), network.order)[0]


# -- the comparison ------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--networks", type=Path, metavar="FOLDER")
    parser.add_argument("--csv", type=Path, metavar="FOLDER")
    parser.add_argument("--minimalloc", type=Path, metavar="BINARY")
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="for onchip and MiniMalloc, each instance"
    )
    parser.add_argument(
        "--iterations", type=int, default=99_999, help="of Vela's hill climb [its own default]"
    )
    parser.add_argument("--only", default="*", metavar="PATTERN")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    args = parser.parse_args()
    here = list(planners(args))
    print("\n".join(f"measured: {name}" for name, _ in here), file=sys.stderr)
    lines = [
        f"<!-- {platform.machine()}, {os.cpu_count()} cores; Python {platform.python_version()};"
        f" {args.seconds:g} s each for onchip and MiniMalloc, {args.iterations:,} iterations for Vela -->",
        "| live ranges | buffers | load | " + " | ".join(name for name, _ in here) + " |",
        "|---|--:|--:|" + "--:|" * len(here),
    ]
    for name, buffers in instances(args):
        load = max_load(buffers)
        cells = []
        for label, planner in here:
            began = time.perf_counter()
            offsets = planner(buffers)
            seconds = time.perf_counter() - began
            if offsets is None:
                cells.append(f"none ({seconds:.2f} s)")
                continue
            needs = extent(buffers, offsets)
            wrong = fault(buffers, offsets, needs)
            if wrong is not None:
                raise SystemExit(f"{label} on {name}: {wrong}")
            cells.append(f"{needs / load:.3f} ({seconds:.2f} s)")
        lines.append(f"| {name} | {len(buffers):,} | {load:,} | " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
    table = "\n".join(lines)
    if args.into is None:
        print(table)
        return
    text = args.into.read_text()
    if BEGIN not in text or END not in text:
        raise SystemExit(f"{args.into}: has no {BEGIN} ... {END}")
    new = f"{BEGIN}\n{table}\n{END}"
    args.into.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: new, text, flags=re.DOTALL))


if __name__ == "__main__":
    main()
