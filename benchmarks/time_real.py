"""The real run: plans for the shortest time as two pinned threads on this machine, measured against the law.

    python benchmarks/time_real.py [NETWORK ...] [--cores 0 1] [--runs 1000] [--rounds 3] [--lock FILE]
                                   [--into docs/real-run.md]

First the chip: copies by themselves (`real_copy.py`) give the channel, steps by themselves (`real_steps.py`)
the clock of the array, the cycles of every step and the rate of vector operations. Then each network of
`real_networks.py` is planned for the shortest time on that chip, and becomes a C program of two threads
(`onchip export --to threads`): one serves the channel in the law's order, one runs the steps. The array's
sides are laid as the program lays them, and the checker prices that plan: *predicted*. The program runs
`--runs` times in each of `--rounds` rounds, with DRAM out of all caches before every run: *least*, and the
median of all. Its outputs are those of onnxruntime within 1e-4, its bytes the plan's. A second build notes
when every step and transfer begins and ends: *steps* and *transfers* are what they took together in the
quickest run, over what the law says. Nothing of the chip is fitted to these runs. Where both times
are more than 10 % apart, the operators and buffers follow by which they are.

Needs gcc, two quiet cores that share a cache, and `pip install 'onchip[run]'`. On a rented machine the
host may move them apart: a program begins only where a round trip of two counters has just taken no more
than `--near` nanoseconds. FILE is locked while programs are measured, so that other measurements can wait.
Of plans in FOLDER the nests are taken as they are, and priced on the chip as it is measured now.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import onnx
from page_marks import write
from real_copy import Copy, Trip, copies, fitted, predicted
from real_networks import REAL
from real_steps import ELEMENTS, PRODUCTS, TINY, Alone, Step, built, fitted_array, noted, ran

import onchip
from onchip.check import certify
from onchip.export.loops.lower import book_of
from onchip.export.threads.c_threads import MadeThreads
from onchip.export.threads.order import Order, order_of
from onchip.machines.chip import Chip
from onchip.machines.tile_rates import TileRates
from onchip.plans import Leaf, Loop, Nest, Plan, to_json
from onchip.readers.source import Source

T = TypeVar("T")
FAR, MOST_OFF = 0.1, 1e-4
TURNS, RUNS, HELD = 200, 1000, 40.0
"""Turns of copies, runs of steps by themselves, seconds that the lock is held."""
HEAD = (
    "| network | scratchpad, B | bytes | steps | transfers | predicted, us | least, us | median, us"
    " | least over predicted | steps | transfers |"
)


@dataclass(frozen=True)
class Case:
    """A network's plan and program in a folder of its own, built without and with notes."""

    name: str
    folder: Path
    plan: Plan
    order: Order
    plain: Path
    noting: Path
    source: Source
    made: MadeThreads


@dataclass(frozen=True)
class Measured:
    """The chip of this machine, and the copies and steps by themselves that it comes from."""

    tiles: TileRates
    copies: list[Copy]
    steps: list[Step]

    def lines(self) -> Iterator[str]:
        """Yield the chip as its file has it, and what was measured beside what the law makes of the chip."""
        tiles, [channel] = self.tiles, self.tiles.channels
        yield "```toml\n[tiles]"
        yield f"clock_hertz = {tiles.clock_hertz:_}\nstep_cycles = {tiles.step_cycles}"
        yield f"block_cycles = {tiles.block_cycles}\nown_operands = true"
        yield f"vector_operations_per_second = {tiles.vector_operations_per_second:_}"
        yield f"[[tiles.channel]]\nbytes_per_second = {channel.bytes_per_second:_}"
        yield f"transfer_picoseconds = {channel.transfer_picoseconds:_}"
        yield f"piece_picoseconds = {channel.piece_picoseconds:_}\nburst_bytes = {channel.burst_bytes}"
        for side in tiles.sides:
            yield f'[[tiles.side]]\nkind = "{side.kind}"\nsize = {side.size}'
        yield "```\n\n| bytes | pieces | of bytes | apart | loads, ns | law | stores, ns | law |"
        yield "|--:|--:|--:|--:|--:|--:|--:|--:|"
        stores = {(row.piece, row.count, row.apart): row.nanoseconds for row in self.copies if row.stored}
        for row in self.copies:
            if not row.stored and row.count * row.piece in (1024, 16384):
                law, other = predicted(row, channel), stores[row.piece, row.count, row.apart]
                yield (
                    f"| {row.count * row.piece:,} | {row.count} | {row.piece:,}"
                    f" | {row.piece * row.apart:,} | {row.nanoseconds:,.0f}"
                    f" | {law / row.nanoseconds - 1:+.0%} | {other:,.0f} | {law / other - 1:+.0%} |"
                )
        yield "\n| step alone | cycles | blocks | vector operations | ns | law |\n|---|--:|--:|--:|--:|--:|"
        for one in self.steps:
            blocks = tiles.block_cycles * one.blocks
            cycles = (one.cycles + blocks + tiles.step_cycles) * 1e9 / tiles.clock_hertz
            law = max(cycles, one.vector * 1e9 / (tiles.vector_operations_per_second or 1))
            yield (
                f"| {one.name} | {one.cycles:,} | {one.blocks:,} | {one.vector:,} | {one.nanoseconds:,.0f}"
                f" | {law / one.nanoseconds - 1:+.0%} |"
            )


@dataclass(frozen=True)
class Quiet:
    """When it is quiet: nobody else measures, and the cores are near each other."""

    trip: Trip
    most: float
    lock: Path | None

    def run(self, some: Sequence[Callable[[], T]]) -> list[T]:
        """Return what each makes; each begins while the cores are near.

        The lock is held for some `HELD` seconds at a time.
        """
        found: list[T] = []
        while len(found) < len(some):
            with open(self.lock or os.devnull, "w") as held:
                if self.lock is not None:
                    fcntl.flock(held, fcntl.LOCK_EX)
                end = time.monotonic() + HELD
                while len(found) < len(some) and time.monotonic() < end:
                    if self.trip.nanoseconds() <= self.most:
                        found.append(some[len(found)]())
                    else:
                        time.sleep(0.1)
        return found

    def steps(self, alone: Alone, rounds: int, cores: Sequence[int]) -> list[Step]:
        """Return all steps by themselves, the least of some rounds."""
        count = len(alone.programs)
        asked = [partial(alone.step, n, RUNS, cores) for n in range(count)]
        found = self.run(asked * rounds)
        return [min(found[n::count], key=lambda one: one.nanoseconds) for n in range(count)]


def measured(folder: Path, asked: argparse.Namespace, quiet: Quiet, alone: Alone) -> Measured:
    """Measure the machine: copies and steps by themselves in rounds, of which the least counts."""
    some = quiet.run([partial(copies, folder, TURNS, asked.cores)] * asked.rounds)
    rows = [min(same, key=lambda row: row.nanoseconds) for same in zip(*some, strict=True)]
    least = quiet.steps(alone, asked.rounds, asked.cores)
    clock, block = fitted_array(least, least[0].nanoseconds)
    vector = statistics.median(1e9 * one.vector / one.nanoseconds for one in least[1:] if not one.cycles)
    start = round(least[0].nanoseconds * clock / 1e9)
    channels = (fitted(rows),)
    tiles = TileRates(
        round(clock), channels, start, alone.sides, round(vector), block_cycles=block, own_operands=True
    )
    return Measured(tiles, rows, least)


def laid(plan: Plan, arrays: dict[str, tuple[tuple[int, ...], ...]] | None) -> Plan:
    """Return a plan with its products on the array as the program lays them, if given, certified anew."""
    products = {op.name for op in plan.network.operators if op.work}

    def put(item: Loop | Leaf) -> Loop | Leaf:
        if isinstance(item, Loop):
            return replace(item, body=tuple(put(inner) for inner in item.body))
        if arrays is None:
            return item
        return replace(item, array=arrays.get(item.operator, ()) if item.operator in products else ())

    groups = [
        replace(group, tiling=replace(group.tiling, body=tuple(put(item) for item in group.tiling.body)))
        if isinstance(group.tiling, Nest)
        else group
        for group in plan.groups
    ]
    return certify(
        plan.network, plan.chip, plan.budget, plan.program, groups=groups, status="feasible",
        lower_bound_bytes=0, seconds=0.0, options=plan.options,
    )  # fmt: skip


def case_of(name: str, folder: Path, chip: Chip, seconds: float, kept: Path | None) -> Case:
    """Plan a network, or take the nests of a plan that was kept, and build its program."""
    make, kib = REAL[name]
    folder.mkdir()
    onnx.save(make(), str(folder / "model.onnx"))
    source = onchip.load(str(folder / "model.onnx"), dtype="file")
    known = None if kept is None else kept / f"{name.replace(' ', '_')}.json"
    if known is not None and known.exists():
        plan = onchip.read(known)
        plan = laid(replace(plan, chip=replace(plan.chip, tiles=chip.tiles)), None)
    else:
        plan = onchip.plan(
            source,
            chip=chip,
            budget=kib * 1024,
            fuse=True,
            objective="latency",
            time_limit=seconds,
            dram_tiles=False,
        )
        if known is not None:
            known.write_text(to_json(plan))
    plain, made = built(folder, plan, source, noting=False)
    plan = laid(plan, made.arrays)
    noting, _ = built(folder, plan, source, noting=True)
    return Case(name, folder, plan, order_of(plan), plain, noting, source, made)


def right(case: Case, told: dict[str, int]) -> None:
    """Hold a run's outputs against onnxruntime's, and its bytes against the plan's.

    Raises `SystemExit` with one line that names the network, and what differs by how much.
    """
    book = book_of(case.plan, case.source)
    wanted, ids = book.engine.reference(book.engine.seeded_inputs(0)), case.plan.network.tensor_id
    data, at = (case.folder / "outputs").read_bytes(), 0
    for tensor, size in case.made.outputs:
        one = wanted[ids[tensor]].reshape(-1)
        found = np.frombuffer(data[at : at + size], one.dtype)
        at += size
        off = np.abs(found - one) / np.abs(one).max()
        if not off.max() <= MOST_OFF:  # nor is it right where a difference is no number
            raise SystemExit(
                f"{case.name}: {tensor} differs from onnxruntime's by up to {off.max():.1e} of its largest"
                f" element, in {(~(off <= MOST_OFF)).mean():.1%} of all by more than {MOST_OFF:.0e}"
            )
    planned = case.plan.result.dram_bytes
    if told["copied_bytes"] != planned:
        raise SystemExit(f"{case.name}: {told['copied_bytes']:,} bytes copied, {planned:,} planned")


def parts(case: Case, notes: str) -> Iterator[tuple[str, str, float, float]]:
    """Yield of steps and transfers kind, name, nanoseconds, and those that the law says."""
    rows = noted(notes)
    for step, (begin, end, _) in zip(case.order.steps, rows["step"], strict=True):
        yield "step", step.operator, end - begin, step.picoseconds / 1e3
    for moved, (begin, end, _) in zip(case.order.transfers, rows["transfer"], strict=True):
        way = "store" if moved.stored else "fetch"
        yield "transfer", f"{way} {moved.tensor}", end - begin, moved.picoseconds / 1e3


def reasons(some: Sequence[tuple[str, str, float, float]]) -> Iterator[str]:
    """Yield for every operator and buffer how long it took, longest differences first."""
    found: dict[tuple[str, str], list[float]] = {}
    for kind, name, took, law in some:
        row = found.setdefault((kind, name), [0.0, 0.0, 0.0])
        for n, more in enumerate((1.0, took, law)):
            row[n] += more
    for (kind, name), (count, took, law) in sorted(found.items(), key=lambda x: -abs(x[1][1] - x[1][2]))[:6]:
        yield (
            f"- {kind} {name}: {count:.0f} took {took / 1e3:.1f} us, by the law {law / 1e3:.1f}"
            f" ({took / law - 1:+.0%})"
        )


def runs(cases: Sequence[Case], asked: argparse.Namespace, quiet: Quiet) -> Iterator[str]:
    """Yield the rows of all cases, each run in every round, and the reasons of those that are far off."""
    told: dict[str, list[dict[str, int]]] = {case.name: [] for case in cases}
    notes: dict[str, tuple[int, str]] = {}
    for _ in range(asked.rounds):
        todo = [
            partial(ran, case.folder, binary, asked.runs, asked.cores)
            for case in cases
            for binary in (case.noting, case.plain)
        ]
        found = quiet.run(todo)
        for case, (other, text), (one, _) in zip(cases, found[::2], found[1::2], strict=True):
            right(case, one)
            told[case.name].append(one)
            notes[case.name] = min(notes.get(case.name, (1 << 62, "")), (other["least_nanoseconds"], text))
    yield f"{HEAD}\n|---|{'--:|' * 10}"
    close, far = 0, []
    for case in cases:
        some = list(parts(case, notes[case.name][1]))
        law = case.order.picoseconds / 1e6
        assert case.order.picoseconds == case.plan.result.latency_picoseconds
        least = min(one["least_nanoseconds"] for one in told[case.name]) / 1e3
        median = statistics.median(one["median_nanoseconds"] for one in told[case.name]) / 1e3
        sums = {
            kind: sum(took for k, _, took, _ in some if k == kind)
            / sum(s for k, _, _, s in some if k == kind)
            for kind in ("step", "transfer")
        }
        close += abs(least / law - 1) <= FAR
        yield (
            f"| {case.name} | {case.plan.result.extent_bytes:,} | {case.plan.result.dram_bytes:,}"
            f" | {len(case.order.steps)} | {len(case.order.transfers)} | {law:,.1f} | {least:,.1f}"
            f" | {median:,.1f} | {least / law:.2f} | {sums['step']:.2f} | {sums['transfer']:.2f} |"
        )
        if abs(least / law - 1) > FAR:
            far.append((case.name, some))
    yield f"\n{close} of {len(cases)} are within {FAR:.0%} of the law."
    for name, some in far:
        yield f"\n{name}:\n"
        yield from reasons(some)


def again(asked: argparse.Namespace, quiet: Quiet, alone: Alone, before: Sequence[Step]) -> str:
    """Measure the steps by themselves once more; return how far the products are off."""
    found = quiet.steps(alone, 1, asked.cores)
    ratios = [new.nanoseconds / old.nanoseconds for new, old in zip(found, before, strict=True) if old.cycles]
    return (
        "\nThe products by themselves, measured once more behind all runs, took"
        f" {min(ratios):.2f} to {max(ratios):.2f} of the times above."
    )


def main() -> int:
    """Print the chip, the table, and the reasons, or put them into a page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", default=list(REAL), metavar="NETWORK")
    parser.add_argument("--cores", nargs=2, type=int, default=[0, 1], help="of the channel, of the steps")
    parser.add_argument("--runs", type=int, default=1000, help="of each program in each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0, help="the planner's, for each network")
    parser.add_argument("--near", type=float, default=200.0, help="the most nanoseconds of a round trip")
    parser.add_argument("--lock", type=Path, help="a file that is locked while programs are measured")
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help="of plans, made once")
    parser.add_argument("--into", type=Path, metavar="PAGE")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        quiet = Quiet(Trip(folder, asked.cores), asked.near, asked.lock)
        alone = Alone(folder, {"one product of 16": TINY} | PRODUCTS | ELEMENTS)
        found = measured(folder, asked, quiet, alone)
        chip = Chip("this machine", 64, "float32", tiles=found.tiles)

        def ten() -> Iterator[str]:
            cases = [
                case_of(name, folder / str(n), chip, asked.seconds, asked.kept)
                for n, name in enumerate(asked.networks)
            ]
            for case in cases:  # before all are measured
                right(case, ran(case.folder, case.plain, 1, asked.cores)[0])
            yield from runs(cases, asked, quiet)
            yield again(asked, quiet, alone, found.steps)

        write({"chip": found.lines, "networks": ten}, asked.into, at_once=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
