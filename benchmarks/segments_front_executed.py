"""Plans along the front of RAM and work, as C on the emulated core: every byte compared, RAM as planned.

    python benchmarks/segments_front_executed.py made:mcunet_vww --input again held --points 6

For each input mode the front is searched (kernels' workspaces counted), `--points` of its plans are taken,
evenly from the least work to the least RAM, written as C, linked with 40 bytes more stack than was used, and
run on the emulated Cortex-M4 with everything behind the linked RAM closed. Exit code 1 if a byte differs, or
the linked RAM is not the plan's extent, the few other statics and the stack.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from onchip.base.errors import OnchipError
from onchip.machines.board import Board
from onchip.microcontroller.emulator.verify import Verified, verify
from onchip.microcontroller.int8.model import Int8Model
from onchip.microcontroller.load import int8_model
from onchip.microcontroller.network import network_of
from onchip.microcontroller.project import sources_of
from onchip.microcontroller.segments import Front, FrontPoint, SegmentOptions, Space, front, plan_of

BOARD = Board("bench", "cortex-m4", 4 << 20, 4 << 20)

STATICS = 64
"""Bytes of other statics that a program may have: pointers of the driver, alignment."""


def some(points: Sequence[FrontPoint], count: int) -> list[FrontPoint]:
    """`count` of them, the first and the last among these."""
    if len(points) <= count:
        return list(points)
    return [points[i * (len(points) - 1) // (count - 1)] for i in range(count)]


def executed(
    found: Front, point: FrontPoint, model: Int8Model, options: SegmentOptions, runs: int
) -> Verified:
    """The point as C, run."""
    plan = plan_of(found.chain, point.choice, point.ram_bytes, options)
    assert (plan.result.extent_bytes, plan.result.macs) == (point.ram_bytes, point.macs)
    with tempfile.TemporaryDirectory() as folder:
        return verify(sources_of(plan, model), model, BOARD, Path(folder), runs=runs)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="FILE.tflite or made:NAME")
    parser.add_argument("--input", choices=("held", "once", "again"), nargs="+", default=["held", "again"])
    parser.add_argument("--strips", type=int, nargs="+", default=list(Space().strips))
    parser.add_argument("--points", type=int, default=6)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=None, help="seconds for each search")
    given = parser.parse_args()
    model = int8_model(given.model)
    good = True
    print(f"{model.name}, {model.sha256[:12]}\n")
    print(
        "| input | planned | work | linked RAM | statics | stack | instructions | against the first | bytes |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---|")
    for mode in given.input:
        options = SegmentOptions(mode, time_limit=given.time_limit)
        found = front(network_of(model), options, Space(strips=tuple(given.strips)))
        first = 0
        for point in some(found.points, given.points):
            head = f"| {mode} | {point.ram_bytes:,} | {point.factor:.4f} |"
            try:
                run = executed(found, point, model, options, given.runs)
            except OnchipError as problem:
                print(f"{head} {problem} |", flush=True)
                good = False
                continue
            stack = run.image.stack_bytes
            statics = run.image.ram_bytes - point.ram_bytes - stack
            first = first or run.total.instructions
            as_planned = run.match and 0 <= statics <= STATICS
            good &= as_planned
            ratio = run.total.instructions / first
            print(
                f"{head} {run.image.ram_bytes:,} | {statics} | {stack} | {run.total.instructions:,} |"
                f" {ratio:.3f} | {'equal' if run.match else f'{run.different:,} differ'} |",
                flush=True,
            )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
